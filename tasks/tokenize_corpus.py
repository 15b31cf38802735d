"""From text to memory-mapped token shards, and the profile the token contract is held against."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tasks.artifacts import Artifact
from tasks.durable import durable
from tasks.steps import Bound
from tasks.train_tokenizer import kept_texts

DOCUMENTS = "documents.arrow"
ROWS = "rows.arrow"
PROFILE = "profile.parquet"
BATCH = 1000  # documents tokenised at a time: memory stays flat, tensorflow-text stays busy


@durable()
def tokenize_corpus(step: Bound, folder: Path) -> dict:
    """Tokenise a corpus by sentence; quarantined documents stay out, and those ``seen`` before."""
    corpus = step.inputs["data"]
    kept = kept_texts(corpus, step.inputs["contract"])
    if "seen" in step.inputs:
        kept = _new_texts(kept, corpus, step.inputs["seen"])
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    language = step.step.settings["language"]
    return tokenize(folder, tokenizer, language, kept)


@durable()
def tokenize_dataset(step: Bound, folder: Path) -> dict:
    """Tokenise labelled rows, and once more their distinct texts as a corpus for the task stage.

    Training rows' text becomes training documents, dev rows' text held-out ones, labels dropped;
    test rows are in no corpus (Gururangan et al. 2020 adapt on the training text alone).
    """
    from corpora.prepared import prepared_rows
    from corpora.shards import RowWriter

    dataset = step.inputs["data"]
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    quarantined = json.loads(step.inputs["contract"].path("quarantined.json").read_text("utf-8"))
    labels = {name: i for i, name in enumerate(dataset.details["labels"])}
    rows = [row for row in prepared_rows(dataset.folder) if row.id not in quarantined]
    with RowWriter(folder / ROWS) as writer:
        for some in batches(rows, BATCH):
            first = tokenizer.encode([row.text for row in some])
            second = tokenizer.encode([row.text_pair or "" for row in some])
            for row, ids, pair_ids in zip(some, first, second, strict=True):
                pair = None if row.text_pair is None else pair_ids
                writer.add_row(row.id, row.split, ids, pair, labels.get(row.label, -1))
    # A sentence that stands in several rows is one document; train wins over dev.
    documents: dict[str, tuple[str, str, str]] = {}
    for split, role in (("train", "train"), ("dev", "heldout")):
        for row in rows:
            if row.split == split and row.whole not in documents:
                documents[row.whole] = (row.id, row.whole, role)
    details = tokenize(folder, tokenizer, step.step.settings["language"], documents.values())
    return {**details, "rows": len(rows), "labels": dataset.details["labels"]}


def load_tokenizer(artifact: Artifact) -> Any:
    """The tokenizer of an artifact."""
    from models.tokenizers.wordpiece import WordPiece

    return WordPiece.load(artifact.folder)


def batches(items: Iterable, size: int) -> Iterator[list]:
    """Lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some


def tokenize(
    folder: Path, tokenizer: Any, language: str, documents: Iterable[tuple[str, str, str]]
) -> dict:
    """Write the shards and the profile of documents, in memory that does not grow with them.

    Args:
        folder: Where to.
        tokenizer: The recipe's.
        language: Of the documents; decides where sentences end.
        documents: (id, text, split).

    Returns:
        Number of documents, tokens of each split, share of unknown ones.
    """
    from corpora.arrow_files import TableWriter
    from corpora.sentences import split_sentences
    from corpora.shards import TOKEN_PROFILE, TokenWriter

    count = unknown = 0
    tokens: dict[str, int] = {}
    with (
        TokenWriter(folder / DOCUMENTS) as writer,
        TableWriter(folder / PROFILE, TOKEN_PROFILE) as profile,
    ):
        for some in batches(documents, BATCH):
            sentences = [split_sentences(text, language) for _, text, _ in some]
            encoded = iter(tokenizer.encode([part for parts in sentences for part in parts]))
            for (name, _, split), parts in zip(some, sentences, strict=True):
                ids, lengths = _joined([next(encoded) for _ in parts])
                units = tokenizer.unit_starts(ids)
                writer.add_document(name, split, ids, lengths, units)
                unknown_here = int(np.count_nonzero(ids == tokenizer.unknown_id))
                profile.add(
                    {
                        "id": name,
                        "split": split,
                        "num_tokens": len(ids),
                        "unknown_share": unknown_here / max(1, len(ids)),
                        "pieces_per_word": len(ids) / max(1, int(units.sum())),
                    }
                )
                count += 1
                unknown += unknown_here
                tokens[split] = tokens.get(split, 0) + len(ids)
    return {
        "documents": count,
        "tokens": dict(sorted(tokens.items())),
        "unknown_share": unknown / max(1, sum(tokens.values())),
    }


def _new_texts(
    texts: Iterable[tuple[str, str, str]], corpus: Artifact, seen: Artifact
) -> Iterator[tuple[str, str, str]]:
    """Those whose text an earlier version of the corpus had not."""
    import pandas

    def digests(artifact: Artifact) -> dict[str, str]:
        profile = pandas.read_parquet(artifact.path(PROFILE), columns=["id", "digest"])
        return dict(zip(profile["id"], profile["digest"], strict=True))

    now, before = digests(corpus), set(digests(seen).values())
    return (text for text in texts if now[text[0]] not in before)


def _joined(pieces: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    pieces = [piece for piece in pieces if len(piece)]
    if not pieces:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    return np.concatenate(pieces), np.array([len(piece) for piece in pieces], np.int32)
