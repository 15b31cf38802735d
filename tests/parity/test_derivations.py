"""UniLM's masks and MASS's positions by their papers' equations, in NumPy and float64.

No class of transformers is either of them: `make_goldens.py` gives its BERT four-dimensional masks,
`make_variant_goldens.py` gives its BART's table of positions row by row. Here each row is computed
alone, without padding or masks: a token's scores are those of the tokens that it sees.

Reference:
    Dong et al. 2019, arXiv 1905.03197, 2.2 and figure 1; Song et al. 2019, arXiv 1905.02450, 3.1
    and 3.2; Vaswani et al. 2017, arXiv 1706.03762, 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy.special import erf, softmax

HERE = Path(__file__).parent
HEADS = 4
TOLERANCE = 5e-6  # theirs is float32
BERT = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "norm": "attention.output.LayerNorm",
    "in": "intermediate.dense",
    "out": "output.dense",
    "last norm": "output.LayerNorm",
}
BART = {"in": "fc1", "out": "fc2", "last norm": "final_layer_norm"}
BART_ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


class Block:
    """A post-LN block, of weights by their names.

    Args:
        weights: All of them.
        start: How the block's begin.
        names: Their name of each part.
        epsilon: Of LayerNorms.
    """

    def __init__(
        self,
        weights: Mapping[str, np.ndarray],
        start: str,
        names: Mapping[str, str],
        epsilon: float,
    ):
        self.weights, self.start, self.names, self.epsilon = weights, start, names, epsilon

    def of(self, part: str, kind: str) -> np.ndarray:
        return self.weights[f"{self.start}{self.names[part]}.{kind}"].astype(np.float64)

    def dense(self, part: str, x: np.ndarray) -> np.ndarray:
        return x @ self.of(part, "weight").T + self.of(part, "bias")

    def norm(self, part: str, x: np.ndarray) -> np.ndarray:
        apart = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((apart**2).mean(-1, keepdims=True) + self.epsilon)
        return apart / deviation * self.of(part, "weight") + self.of(part, "bias")

    def attend(self, x: np.ndarray, to: np.ndarray, seen: Sequence[Sequence[int]]) -> np.ndarray:
        """Token i of `x` sees the tokens `seen[i]` of `to`."""
        query, keys, values = (
            self.dense(part, each) for part, each in (("query", x), ("key", to), ("value", to))
        )
        size = x.shape[1] // HEADS
        mixed = np.zeros_like(x)
        for i, head in np.ndindex(len(x), HEADS):
            part, there = slice(head * size, (head + 1) * size), list(seen[i])
            weights = softmax(keys[there, part] @ query[i, part] / np.sqrt(size))
            mixed[i, part] = weights @ values[there, part]
        return self.norm("norm", x + self.dense("output", mixed))

    def feed_forward(self, x: np.ndarray) -> np.ndarray:
        inner = self.dense("in", x)
        return self.norm(
            "last norm", x + self.dense("out", inner * (1 + erf(inner / np.sqrt(2))) / 2)
        )


def seen_in(mode: str, first: int, length: int) -> list[list[int]]:
    """What each token sees where the first text has so many tokens, by figure 1."""
    every = list(range(length))
    match mode:
        case "bidirectional":
            return [every] * length
        case "left_to_right":
            return [every[: i + 1] for i in every]
        case "right_to_left":
            return [every[i:] for i in every]
    return [every[:first]] * first + [every[: i + 1] for i in every[first:]]


# Of the first text and of the second: each way to read has vectors of its own.
SEGMENTS = {
    "bidirectional": (0, 1),
    "left_to_right": (2, 2),
    "right_to_left": (3, 3),
    "sequence_to_sequence": (4, 5),
}


@pytest.mark.parametrize("draw", ["large", "small"])
@pytest.mark.parametrize("mode", SEGMENTS)
def test_under_unilms_masks_their_bert_sees_what_the_paper_lets_it_see(mode, draw):
    weights = load_file(HERE / "unilm" / draw / "model.safetensors")
    start = "bert.embeddings."
    tokens, positions, segments = (
        weights[f"{start}{kind}_embeddings.weight"].astype(np.float64)
        for kind in ("word", "position", "token_type")
    )
    with np.load(HERE / "unilm" / draw / "numbers.npz") as numbers:
        batch = {key: numbers[f"33/{key}"] for key in ("token_ids", "segment_ids", "padding_mask")}
        theirs = [numbers[f"33/{mode}/hidden_{layer}"] for layer in range(4)]
    for row, real in enumerate(batch["padding_mask"].astype(bool)):
        ids, second = batch["token_ids"][row, real], batch["segment_ids"][row, real] > 0
        seen = seen_in(mode, int((~second).sum()), len(ids))
        rows = np.where(second, *SEGMENTS[mode][::-1])
        x = tokens[ids] + positions[: len(ids)] + segments[rows]
        x = Block(weights, start, {"norm": "LayerNorm"}, 1e-12).norm("norm", x)
        for layer, expected in enumerate(theirs):
            error = np.abs(x - expected[row, real]).max()
            assert error < TOLERANCE, f"row {row} after {layer} blocks: {error}"
            if layer < 3:
                block = Block(weights, f"bert.encoder.layer.{layer}.", BERT, 1e-12)
                x = block.feed_forward(block.attend(x, x, seen))


@pytest.mark.parametrize("draw", ["large", "small"])
def test_masss_decoder_stands_where_the_fragment_stood_and_sees_no_mask(draw):
    with np.load(HERE / "variants" / f"mass-{draw}.npz") as numbers:
        held = {key: numbers[key] for key in numbers.files}
    weights = {k.removeprefix("weights/"): v for k, v in held.items() if k.startswith("weights/")}
    batch = {k.removeprefix("batch/"): v for k, v in held.items() if k.startswith("batch/")}
    tokens = weights["shared.weight"].astype(np.float64)
    width = tokens.shape[1]

    def read(side: str, ids: np.ndarray, places: Sequence[int]) -> np.ndarray:
        table = weights[f"{side}.embed_positions.weight"][2:].astype(np.float64)
        x = np.sqrt(width) * tokens[ids] + table[list(places)]
        return Block(weights, f"{side}.", {"norm": "layernorm_embedding"}, 1e-5).norm("norm", x)

    def block(side: str, layer: int, attention: str) -> Block:
        names = {part: f"{attention}.{name}" for part, name in BART_ATTENTION.items()}
        names |= {"norm": f"{attention}_layer_norm", **BART}
        return Block(weights, f"{side}.layers.{layer}.", names, 1e-5)

    def check(x: np.ndarray, name: str, row: int) -> None:
        error = np.abs(x - held[f"found/{name}"][row, : len(x)]).max()
        assert error < TOLERANCE, f"row {row}, {name}: {error}"

    for row in range(4):
        length, size = (int(batch[key][row].sum()) for key in ("padding_mask", "target_mask"))
        every, written = list(range(length)), list(range(size))
        x = read("encoder", batch["token_ids"][row, :length], every)
        for layer in range(3):
            check(x, f"encoder_{layer}", row)
            own = block("encoder", layer, "self_attn")
            x = own.feed_forward(own.attend(x, x, [every] * length))
        check(x, "encoder_3", row)
        attended = [place for place in every if batch["token_ids"][row, place] != 4]  # no [MASK]
        places = batch["target_positions"][row, :size].tolist()
        y = read("decoder", batch["target_ids"][row, :size], places)
        for layer in range(2):
            check(y, f"decoder_{layer}", row)
            own, across = (block("decoder", layer, f"{kind}_attn") for kind in ("self", "encoder"))
            y = own.attend(y, y, [written[: i + 1] for i in written])
            y = across.feed_forward(across.attend(y, x, [attended] * size))
        check(y, "decoder_2", row)
