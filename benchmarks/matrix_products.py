"""The floor of `pretraining_throughput`'s step: its matrix products alone.

``python -m benchmarks.matrix_products [--json]``. The network is that of `masked_lm_step`: 4 layers
of 256, 32 × 128 tokens, 20 positions a row against 8,192 pieces. Each product is timed by itself,
forward and the two of its gradient, in TensorFlow on whatever oneDNN picks; medians.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median

TOKENS, HIDDEN, WIDE, LAYERS = 32 * 128, 256, 1024, 4
HEADS, LENGTH, PREDICTED, VOCABULARY = 4, 128, 32 * 20, 8192
READ = 32 * 21  # of the last layer: the predicted positions and the first (decision 0017)
HEAD = HIDDEN // HEADS
# (times a step, leading batch, rows, inner, columns) of the products that go forward
PRODUCTS = {
    "queries, keys, values, output": (
        (4 * LAYERS - 2, (), TOKENS, HIDDEN, HIDDEN),
        (2, (), READ, HIDDEN, HIDDEN),
    ),
    "attention scores and means": (
        (2 * LAYERS - 2, (32 * HEADS,), LENGTH, HEAD, LENGTH),
        (1, (32 * HEADS,), READ // 32, HEAD, LENGTH),
        (1, (32 * HEADS,), READ // 32, LENGTH, HEAD),
    ),
    "feed-forward": (
        (LAYERS - 1, (), TOKENS, HIDDEN, WIDE),
        (LAYERS - 1, (), TOKENS, WIDE, HIDDEN),
        (1, (), READ, HIDDEN, WIDE),
        (1, (), READ, WIDE, HIDDEN),
    ),
    "head": ((1, (), PREDICTED, HIDDEN, VOCABULARY),),
}
REPEATS = 30


def seconds(batch: tuple[int, ...], rows: int, inner: int, columns: int, precision: str) -> float:
    """One product, the median of many."""
    import tensorflow as tf

    a = tf.cast(tf.random.normal((*batch, rows, inner)), precision)
    b = tf.cast(tf.random.normal((*batch, inner, columns)), precision)
    product = tf.function(lambda a, b: tf.matmul(a, b))
    product(a, b)
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        product(a, b).numpy()
        taken.append(time.perf_counter() - started)
    return median(taken)


def floor(precision: str) -> dict:
    """Milliseconds and GFLOP/s of each kind of product in a step, and of all together."""
    found: dict[str, dict[str, float]] = {}
    for name, products in PRODUCTS.items():
        taken, work = 0.0, 0
        for times, batch, rows, inner, columns in products:
            taken += times * (
                seconds(batch, rows, inner, columns, precision)
                + seconds(batch, rows, columns, inner, precision)  # the gradient of the left side
                + seconds(batch, inner, rows, columns, precision)  # and of the right one
            )
            work += times * 3 * 2 * rows * inner * columns * (batch[0] if batch else 1)
        found[name] = {"ms": 1e3 * taken, "gflops": work / taken / 1e9, "gflop": work / 1e9}
    total, work = (sum(each[key] for each in found.values()) for key in ("ms", "gflop"))
    found["all"] = {"ms": total, "gflops": 1e3 * work / total, "gflop": work}
    return {
        "products": {n: {k: round(v, 1) for k, v in each.items()} for n, each in found.items()},
        "tokens_per_second": round(1e3 * TOKENS / total),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {precision: floor(precision) for precision in ("float32", "bfloat16")}
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for precision, each in found.items():
        print(f"\n{precision}: at most {each['tokens_per_second']:,} tokens/s")
        for name, row in each["products"].items():
            print(f"  {name:<32}{row['ms']:>8.1f} ms{row['gflops']:>8.0f} GFLOP/s")


if __name__ == "__main__":
    main()
