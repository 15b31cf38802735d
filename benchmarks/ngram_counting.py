"""Counting and scoring n-grams: ``python -m benchmarks.ngram_counting FILE…``.

Files are text, one document a line. The vocabulary is of words that occur twice, at most 20,000.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.documents import Documents
from models.counting.ngram_model import NGramModel, Smoothing, discounts_of, num_events
from models.counting.ngrams import orders, texts
from models.counting.packing import Packing
from models.counting.sums import MOST, summed
from models.tokenizers.word import Word

SMOOTHING = "modified_kneser_ney"


def _once(
    documents: Documents, tokenizer: Word, packing: Packing, most: int
) -> tuple[np.ndarray, int]:
    """Seconds by the clock and of a core, (2, 2), of counting all orders and of scoring all text.

    Beside them, how many n-grams of all orders there are.
    """
    begin, end = tokenizer.cls_id, tokenizer.sep_id
    with tempfile.TemporaryDirectory() as name:
        started = _now()
        keys = (t.ngrams(packing, begin) for t in texts(documents, packing.order, begin, end))
        longest = summed(((k, np.ones((len(k), 1), np.int64)) for k in keys), Path(name), most=most)
        tables = orders(longest, packing, Path(name), continuations=True, most=most)
        counted = _now()
        discounts, _ = discounts_of(tables, SMOOTHING, None)
        smoothing = Smoothing(SMOOTHING, 1.0, 0.5, discounts)
        model = NGramModel(tables, packing, smoothing, num_events(tokenizer))
        for text in texts(documents, packing.order, begin, end):
            model.probabilities(text.ngrams(packing, begin))
        scored = _now()
        seconds = np.array([counted - started, scored - counted])
        return seconds, sum(len(each.ngrams) for each in tables)


def _now() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def main() -> None:
    """Print tokens a second, in memory and in blocks on disk, and the load while it ran."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("files", nargs="+", type=Path)
    asked.add_argument("--order", type=int, default=3)
    asked.add_argument("--runs", type=int, default=5)
    said = asked.parse_args()
    lines = [line for file in said.files for line in file.read_text("utf-8").splitlines() if line]
    tokenizer = Word.learned(lines, vocabulary_size=20_000, lowercase=True)
    documents = Documents(tokenizer.encode(lines))
    packing = Packing(said.order, tokenizer.vocabulary_size)
    print(
        f"{documents.num_tokens:,} words in {len(documents):,} documents, vocabulary"
        f" {tokenizer.vocabulary_size:,}, order {said.order}, keys of"
        f" {'numbers' if packing.in_numbers else 'bytes'}"
    )
    for name, most in (("in memory", MOST), ("on disk, runs of 300,000", 300_000)):
        runs = [_once(documents, tokenizer, packing, most) for _ in range(said.runs)]
        median = documents.num_tokens / np.median([seconds for seconds, _ in runs], axis=0)
        for what, (clock, core) in zip(("counts", "scores"), median, strict=True):
            print(
                f"{name}: {what} {clock:,.0f} tokens/s, {core:,.0f} tokens a second of one core;"
                f" median of {said.runs}, {runs[0][1]:,} n-grams of all orders"
            )
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
