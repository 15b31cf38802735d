"""Learning and running the tokenizers: ``python -m benchmarks.tokenizer [FILE…]``.

Without files it reads the documentation strings and comments of the installed packages.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def english(files: list[str], characters: int) -> list[str]:
    """Texts of about `characters` in all, out of the files or the installed packages' sources."""
    paths = [Path(f) for f in files] or sorted(Path(sysconfig.get_path("purelib")).rglob("*.py"))
    texts: list[str] = []
    total = 0
    for path in paths:
        text = path.read_text("utf-8", errors="ignore")
        parts = text.split("\n\n") if files else text.split('"""')[1::2]
        for part in parts:
            if len(part) > 100 and total < characters:
                texts.append(part)
                total += len(part)
        if total >= characters:
            break
    return texts


def main(files: list[str]) -> None:
    """Print, of each scheme, the time to learn 8,000 pieces and the speed of encoding."""
    from tokenizers import ByteLevelBPETokenizer

    from models.catalogue import names
    from models.saved_tokenizer import learn_tokenizer

    texts = english(files, 12_000_000)
    megabytes = sum(len(t.encode()) for t in texts) / 1e6
    learned = {}
    for scheme in names("tokenizers"):
        started = time.perf_counter()
        tokenizer = learn_tokenizer(
            scheme, texts, vocabulary_size=8_000, lowercase=scheme == "wordpiece"
        )
        seconds = time.perf_counter() - started
        print(
            f"{scheme}: learned {tokenizer.vocabulary_size} pieces from {megabytes:.1f} MB in"
            f" {seconds:.1f} s"
        )
        _tell_speed(scheme, tokenizer.encode, texts, megabytes)
        learned[scheme] = tokenizer
    with tempfile.TemporaryDirectory() as folder:
        learned["byte_bpe"].save(folder)
        names = [str(Path(folder) / name) for name in ("vocab.json", "merges.txt")]
        rust = ByteLevelBPETokenizer(*names, unicode_normalizer="nfc")
    _tell_speed("byte_bpe in Rust", rust.encode_batch, texts, megabytes)


def _tell_speed(
    name: str, encode: Callable[[list[str]], list], texts: list[str], mb: float
) -> None:
    encode(texts[:100])  # builds what is built once
    started, worked = time.perf_counter(), time.process_time()
    tokens = sum(map(len, encode(texts)))
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    print(
        f"{name}: encodes {mb / seconds:.1f} MB/s on {os.cpu_count()} cores, {mb / worked:.1f} MB a"
        f" second of one core ({tokens:,} tokens, {mb * 1e6 / tokens:.2f} bytes each)"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
