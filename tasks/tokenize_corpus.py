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
    return _write(folder, tokenizer, _Pieces(step, tokenizer), kept)


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
    details = _write(folder, tokenizer, _Pieces(step, tokenizer), documents.values())
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


class _Pieces:
    """Texts cut into sentences, sentences into tokens, and what starts at each token."""

    def __init__(self, step: Bound, tokenizer: Any):
        from corpora.gazetteer import Gazetteer, read_gazetteer

        self.tokenizer = tokenizer
        settings = step.step.settings
        self.language = settings["language"]
        self.segmenter = settings.get("segmenter", {}).get("name")
        self.gazetteer = None
        if "gazetteer" in settings:
            names = read_gazetteer(step.step.given["gazetteer"])
            # As the tokenizer reads texts, so that case and accents count where they do there.
            normal = tokenizer.encode_with_places([name for name, _ in names])
            self.gazetteer = Gazetteer(
                (text.strip(), kind) for (text, *_), (_, kind) in zip(normal, names, strict=True)
            )

    def of(self, texts: Sequence[str]) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
        """(ids, unit starts) of each sentence of each text."""
        from corpora.sentences import split_sentences

        sentences = [split_sentences(text, self.language) for text in texts]
        encoded = iter(self._encoded([part for parts in sentences for part in parts]))
        return ([next(encoded) for _ in parts] for parts in sentences)

    def _encoded(self, sentences: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        from corpora.units import unit_starts, word_starts
        from corpora.words import word_numbers

        tokenizer = self.tokenizer
        if self.segmenter is None and self.gazetteer is None:
            return [(ids, tokenizer.unit_starts(ids)) for ids in tokenizer.encode(sentences)]
        placed = tokenizer.encode_with_places(sentences)
        numbers: list[np.ndarray | None] = [None] * len(placed)
        if self.segmenter is not None:
            numbers = list(word_numbers([text for text, *_ in placed], self.segmenter))
        found = []
        for (text, ids, starts, ends), number in zip(placed, numbers, strict=True):
            basic = tokenizer.unit_starts(ids)
            words = basic if number is None else word_starts(basic, starts, number)
            if self.gazetteer is not None:
                names = self.gazetteer.matches(text)
                words = unit_starts(basic, words, starts, ends, names)
            found.append((ids, words))
        return found


def _write(
    folder: Path, tokenizer: Any, pieces: _Pieces, documents: Iterable[tuple[str, str, str]]
) -> dict:
    from corpora.shards import TokenWriter
    from corpora.units import ENTITY, PHRASE, covered

    in_names = dict.fromkeys(("phrase", "entity"), 0)
    profile: dict[str, list] = {
        name: [] for name in ("id", "split", "num_tokens", "unknown_share", "pieces_per_word")
    }
    with TokenWriter(folder / DOCUMENTS) as writer:
        for some in batches(documents, BATCH):
            encoded = pieces.of([text for _, text, _ in some])
            for (name, _, split), parts in zip(some, encoded, strict=True):
                ids, units, lengths = _joined(parts)
                writer.add_document(name, split, ids, lengths, units)
                if pieces.gazetteer is not None:
                    in_names["phrase"] += covered(units, PHRASE)
                    in_names["entity"] += covered(units, ENTITY)
                basic = tokenizer.unit_starts(ids)
                profile["id"].append(name)
                profile["split"].append(split)
                profile["num_tokens"].append(len(ids))
                profile["unknown_share"].append(_share(ids == tokenizer.unknown_id))
                profile["pieces_per_word"].append(len(ids) / max(1, int(basic.sum())))
    details = {"documents": len(profile["id"]), **_totals(profile, folder)}
    if pieces.gazetteer is not None:
        total = max(1, sum(profile["num_tokens"]))
        details["coverage"] = {kind: count / total for kind, count in in_names.items()}
    return details


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


def _joined(
    sentences: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, unit starts and sentence lengths of a document, empty sentences left out."""
    sentences = [sentence for sentence in sentences if len(sentence[0])]
    if not sentences:
        return np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int32)
    ids, starts = (np.concatenate(parts) for parts in zip(*sentences, strict=True))
    return ids, starts, np.array([len(part) for part, _ in sentences], np.int32)


def _share(which: np.ndarray) -> float:
    return float(which.mean()) if len(which) else 0.0


def _totals(profile: dict[str, list], folder: Path) -> dict[str, Any]:
    """Write the profile and say how many tokens each split has."""
    import pandas

    pandas.DataFrame(profile).to_parquet(folder / PROFILE)
    counts = np.array(profile["num_tokens"], np.int64)
    splits = np.array(profile["split"])
    return {
        "tokens": {str(name): int(counts[splits == name].sum()) for name in np.unique(splits)},
        "unknown_share": float(np.dot(profile["unknown_share"], counts) / max(1, counts.sum())),
    }
