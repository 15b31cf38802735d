"""Peak memory and seconds of a corpus and of one ten times larger: ``python -m benchmarks.memory``.

Each part runs in a process of its own, whose peak the operating system measures (``ru_maxrss``).
The text is made up: words of a Zipf law, documents of 40 to 260 of them, one in a hundred a near
copy of another. Seconds are those of the processor without imports, so that they hold on a busy
machine; waiting for the disk is in the seconds of the wall clock beside them (``--json``).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = ("preparation", "contract", "vocabulary", "tokenisation", "training")
STEPS = 20  # updates of the training part


def make_up(path: Path, documents: int) -> None:
    """Write the corpus."""
    rng = random.Random(7)
    syllables = "ba den ko lir mus na pel ro sti tan vu wes".split()
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(30_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    total = [sum(weights[:1])]
    for weight in weights[1:]:
        total.append(total[-1] + weight)
    before: list[str] = []
    with open(path, "w", encoding="utf-8") as stream:
        for number in range(documents):
            if number % 100 == 99:
                text = [*before, "again"]
            else:
                text = rng.choices(words, cum_weights=total, k=rng.randint(40, 260))
            before = text
            sentences = [" ".join(text[i : i + 12]) for i in range(0, len(text), 12)]
            record = {"id": f"d{number}", "text": ". ".join(sentences) + "."}
            stream.write(json.dumps(record) + "\n")


def preparation(folder: Path) -> Callable[[], Any]:
    """Read, clean, deduplicate, split."""
    from corpora.preparation import prepare_corpus
    from corpora.snapshot import take_snapshot
    from data_contracts.sources import parse_source

    facts = {"name": "made-up", "language": "en", "licence": "CC0-1.0"}
    source = parse_source({**facts, "files": str(folder / "corpus.jsonl")})
    prepared = folder / "prepared"
    prepared.mkdir()
    return lambda: prepare_corpus(source, take_snapshot(source), prepared)


def contract(folder: Path) -> Callable[[], Any]:
    """Hold the profile against the suite for corpora."""
    import pandas

    from data_contracts.check import check, load_suite

    profile = folder / "prepared" / "profile.parquet"
    return lambda: check(pandas.read_parquet(profile), load_suite("corpus"), subject="made-up")


class _Texts:
    """The prepared text, as often as it is asked for."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __iter__(self):
        from corpora.prepared import prepared_documents

        return (each.text for each in prepared_documents(self.folder))


def vocabulary(folder: Path) -> Callable[[], Any]:
    """Learn 8,000 pieces."""
    from models.tokenizers.wordpiece import WordPiece, learn

    def work() -> None:
        pieces = learn(_Texts(folder / "prepared"), vocabulary_size=8_000, lowercase=True)
        WordPiece(pieces, lowercase=True).save(folder / "tokenizer")

    return work


def tokenisation(folder: Path) -> Callable[[], Any]:
    """Text to shards."""
    from corpora.pieces import Pieces
    from corpora.prepared import prepared_documents
    from corpora.tokens import tokenize
    from models.tokenizers.wordpiece import WordPiece

    tokenizer = WordPiece.load(folder / "tokenizer")
    tokenizer.encode(["builds the ops"])
    tokens = folder / "tokens"
    tokens.mkdir()
    documents = (
        (each.id, each.text, each.split) for each in prepared_documents(folder / "prepared")
    )
    files = tokens / "documents.arrow", tokens / "profile.parquet"
    return lambda: tokenize(*files, Pieces(tokenizer, "en"), documents)


def training(folder: Path) -> Callable[[], Any]:
    """A few updates of BERT on masked words and next sentences."""
    from corpora.shards import TokenisedCorpus
    from fourstage.recipe.defaults import STAGES
    from models.catalogue import literals
    from models.tokenizers.wordpiece import WordPiece
    from models.training.gradient import train
    from models.training.job import TrainingJob
    from models.training.stage import Budget, Optimizer, Phase, StageSettings

    def work() -> None:
        path = folder / "tokens" / "documents.arrow"
        stage = StageSettings(
            kind="general",
            family="bert",
            network=literals("families", "bert")["SIZES"]["tiny"],
            phases=(Phase(128),),
            batch_size=16,
            budget=Budget("steps", STEPS),
            optimizer=Optimizer("adamw", STAGES["general"].adamw),
            objectives={"masked_lm": {}, "next_sentence": {}},
        )
        job = TrainingJob(
            stage,
            WordPiece.load(folder / "tokenizer"),
            corpora={"made-up": (TokenisedCorpus(path, "train"), 1.0)},
        )
        train(job, folder / "stage")

    return work


def run_part(part: str, folder: Path) -> None:
    """In the child: do the part, print its seconds."""
    work = globals()[part](folder)
    began, spent = time.perf_counter(), time.process_time()
    work()
    wall, processor = time.perf_counter() - began, time.process_time() - spent
    print(json.dumps({"seconds": round(processor, 2), "wall_seconds": round(wall, 2)}))


def measure(part: str, folder: Path) -> dict[str, float]:
    """In the parent: run the part, ask the system for its peak."""
    command = [sys.executable, "-m", "benchmarks.memory", "--part", part, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{part} of {folder.name} failed; run it: {' '.join(command)}")
    return {"megabytes": round(usage.ru_maxrss / 1024, 1), **json.loads(out.splitlines()[-1])}


def main() -> None:
    """Print a table, or with ``--json`` one object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000, help="of the smaller corpus")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--part", nargs=2, metavar=("PART", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        run_part(options.part[0], Path(options.part[1]))
        return
    found: dict[str, Any] = {"documents": [options.documents, 10 * options.documents]}
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["FOURSTAGE_HOME"] = temporary
        folders = [Path(temporary) / name for name in ("one", "ten")]
        for folder, documents in zip(folders, found["documents"], strict=True):
            folder.mkdir()
            make_up(folder / "corpus.jsonl", documents)
        found["bytes"] = [(folder / "corpus.jsonl").stat().st_size for folder in folders]
        for part in PARTS:
            one, ten = (measure(part, folder) for folder in folders)
            found[part] = {
                "one": one,
                "ten": ten,
                "memory_ratio": round(ten["megabytes"] / one["megabytes"], 3),
                "seconds_ratio": round(ten["seconds"] / max(one["seconds"], 0.01), 2),
            }
    if options.json:
        print(json.dumps(found))
        return
    small, large = found["documents"]
    megabytes = [f"{size / 1e6:.0f} MB" for size in found["bytes"]]
    print(f"{small:,} and {large:,} documents, {' and '.join(megabytes)} of JSON lines")
    print(f"{'':14}{'peak MB':>18}{'ratio':>8}{'CPU seconds':>18}{'ratio':>8}")
    for part in PARTS:
        row = found[part]
        peaks, seconds = (
            f"{row['one'][key]:.1f} → {row['ten'][key]:.1f}" for key in ("megabytes", "seconds")
        )
        print(
            f"{part:14}{peaks:>18}{row['memory_ratio']:>8.2f}"
            f"{seconds:>18}{row['seconds_ratio']:>8.1f}"
        )


if __name__ == "__main__":
    main()
