"""Chinese words by longest match against rjieba: ``python -m benchmarks.chinese_words FILE…``.

Each file is a compressed CSV whose last column is text (`.csv.gz`), or compressed lines of text. Of
all texts 2,000, evenly spaced, are held out; the vocabulary is learned from the others.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from itertools import accumulate, pairwise
from pathlib import Path

from corpora.words import segmenter
from models.served.pieces import is_cjk
from models.tokenizers.word import Word

HELD_OUT = 2_000
SIZES = (10_000, 30_000)


def texts_of(path: Path) -> list[str]:
    """The file's texts that are not empty."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = (row[-1] for row in csv.reader(file) if row) if ".csv" in path.suffixes else file
        return [text.strip() for text in rows if text.strip()]


def main(files: list[str]) -> None:
    """Print, for each size of vocabulary, the share of the segmenter's words that are found."""
    cut = segmenter("rjieba")
    texts = [text for file in files for text in texts_of(Path(file))]
    held_out = texts[:: max(1, len(texts) // HELD_OUT)][:HELD_OUT]
    left_out = set(held_out)
    others = [text for text in texts if text not in left_out]
    megabytes = sum(len(text.encode()) for text in others) / 1e6
    for size in SIZES:
        for how in (cut, None):
            made = Word.learned(others, vocabulary_size=size, lowercase=True, cut=how)
            made.encode(held_out)  # builds what is built once
            started = time.process_time()
            made.encode(others)
            seconds = time.process_time() - started
            asked = words = found = unknown = tokens = 0
            for text, ids, starts, ends in made.encode_with_places(held_out):
                places = {*zip(starts.tolist(), ends.tolist(), strict=True)}
                cuts = pairwise(accumulate(map(len, cut(text)), initial=0))
                wanted = {(a, b) for a, b in cuts if all(map(is_cjk, text[a:b]))}
                asked += len(wanted)
                found += len(wanted & places)
                words += sum(is_cjk(text[a]) for a, _ in places)
                unknown += int((ids == made.unknown_id).sum())
                tokens += len(ids)
            print(
                f"{size:,} tokens at most, {'words' if how else 'characters'}:"
                f" {made.vocabulary_size:,}; {found / asked:.1%} of {asked:,} Chinese words of"
                f" {len(held_out):,} held-out texts are found, {found / words:.1%} of what is found"
                f" are such words; {unknown / tokens:.1%} of all tokens are unknown;"
                f" {megabytes / seconds:.1f} MB a second of one core",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
