"""Tokenise text into memory-mapped shards, and profile them for the token contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.folds import fold_rows
from corpora.pictures import PreparedRegions
from corpora.pieces import Pieces
from corpora.prepared import prepared_groups
from corpora.tokens import BATCH, batches, tokenize
from corpora.unlabelled import unlabelled
from tasks.steps.durable import durable
from tasks.steps.tokens import DOCUMENTS, PROFILE, ROWS, linked_entities, load_tokenizer
from tasks.store.artifacts import Findings, Input
from tasks.store.kept import kept_rows, kept_texts, quarantined
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from corpora.prepared import PreparedRow
    from corpora.shards import RowWriter, TokenisedRows
    from models.protocols import Tokenizer

_SHOWN = 3  # ids of rows


@durable()
def tokenize_corpus(step: Bound, folder: Path) -> Findings:
    """Tokenise a corpus by sentence, without quarantined documents and those ``seen`` before."""
    corpus = step.inputs["data"]
    kept = kept_texts(corpus, step.inputs["contract"])
    if "seen" in step.inputs:
        kept = _new_texts(kept, corpus, step.inputs["seen"], step.inputs["seen contract"])
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    return Findings(_tokenised(folder, _pieces(step, tokenizer), kept))


@durable()
def tokenize_dataset(step: Bound, folder: Path) -> Findings:
    """Tokenise labelled rows, and their distinct texts as a corpus for the task stage.

    In the corpus, train rows become training documents and dev rows held-out documents, without
    labels, but with answers that are texts. Test rows are left out: Gururangan et al. 2020 adapt on
    the training text alone.
    """
    from corpora.shards import RowWriter, TokenisedRows

    dataset = step.inputs["data"]
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    rows = list(kept_rows(dataset, step.inputs["contract"]))
    markings = step.step.settings.get("markings", [])
    if "fold" in step.step.settings:
        number, folds = step.step.settings["fold"]
        rows = fold_rows(rows, number, folds, markings, prepared_groups(dataset.folder))
    pieces = _pieces(step, tokenizer)
    with RowWriter(folder / ROWS) as writer:
        regions = PreparedRegions(dataset.folder) if any(row.picture for row in rows) else None
        for some in batches(rows, BATCH):
            if step.step.settings.get("words"):
                _add_word_by_word(writer, tokenizer, some)
            else:
                _add_rows(writer, pieces, some, regions)
    documents = unlabelled(rows, markings, dataset.facts["answers"])
    facts = _tokenised(folder, pieces, documents)
    labels = dataset.facts["labels"]  # in the order of a head's outputs
    if dataset.facts["answers"] == "spans" and step.step.settings.get("words"):
        facts["spans_within_words"] = _within_words(TokenisedRows(folder / ROWS))
    facts["row_tokens"] = int(TokenisedRows(folder / ROWS, "train").lengths.sum())
    return Findings({**facts, "rows": len(rows), "labels": labels, "markings": markings})


def _within_words(rows: TokenisedRows) -> dict[str, Any]:
    """How many spans tags of words can't say, and the first ids of their rows."""
    from models.inputs.passages import spans_within_words

    ids = spans_within_words(rows)
    return {"count": len(ids), "first_ids": list(dict.fromkeys(ids))[:_SHOWN]}


def _add_rows(
    writer: RowWriter,
    pieces: Pieces,
    rows: Sequence[PreparedRow],
    regions: PreparedRegions | None,
) -> None:
    every = [text for row in rows for text in row.texts]
    encoded = iter(pieces.tokenizer.encode(every))
    named = iter(pieces.named(every) if pieces.entities is not None else ())
    for row in rows:
        texts = [next(encoded) for _ in row.texts]
        entities = list(islice(named, len(texts)))
        seen, told = None, None
        if regions is not None and row.picture:
            seen, told = regions.of(row.picture), regions.classes_of(row.picture)
        writer.add_row(
            row.id, row.split, texts, row.label, regions=seen, entities=entities, classes=told
        )


def _add_word_by_word(writer: RowWriter, tokenizer: Tokenizer, rows: Sequence[PreparedRow]) -> None:
    """Add rows whose last text's words are tokenised one by one, with the blanks before them."""
    from models.served.words import words_of

    words = [words_of(row.texts[-1]) for row in rows]
    encoded = iter(tokenizer.encode([word for own in words for word in own]))
    before = iter(tokenizer.encode([text for row in rows for text in row.texts[:-1]]))
    for row, own in zip(rows, words, strict=True):
        pieces = [next(encoded) for _ in own]
        texts = [next(before) for _ in row.texts[:-1]]
        texts.append(np.concatenate(pieces) if pieces else np.zeros(0, np.int32))
        lengths = [len(piece) for piece in pieces]
        writer.add_row(row.id, row.split, texts, row.label, row.texts[-1], lengths)


def _tokenised(
    folder: Path, pieces: Pieces, documents: Iterable[tuple[str, str, str]]
) -> dict[str, Any]:
    """Write shards and profile; returns the counts and the unigram loss."""
    from models.evaluation.unigram_loss import unigram_loss

    facts, often = tokenize(folder / DOCUMENTS, folder / PROFILE, pieces, documents)
    return {**facts, "unigram_loss": unigram_loss(often["train"], often["heldout"])}


def _pieces(step: Bound, tokenizer: Tokenizer) -> Pieces:
    settings = step.step.settings
    return Pieces(
        tokenizer,
        settings["language"],
        settings.get("segmenter", {}).get("name"),
        step.step.given["gazetteer"] if "gazetteer" in settings else None,
        settings.get("case", False),
        settings.get("sentences", "rules") == "lines",
        linked_entities(step) if "entities" in settings else (),
    )


def _new_texts(
    texts: Iterable[tuple[str, str, str]], corpus: Input, seen: Input, contract: Input
) -> Iterator[tuple[str, str, str]]:
    """The texts that an earlier version of the corpus did not have, or its contract quarantined."""
    import pandas

    def digests(artifact: Input) -> dict[str, str]:
        profile = pandas.read_parquet(artifact.path(PROFILE), columns=["id", "digest"])
        return dict(zip(profile["id"], profile["digest"], strict=True))

    now, before, aside = digests(corpus), digests(seen), quarantined(contract)
    read = {digest for name, digest in before.items() if name not in aside}
    return (text for text in texts if now[text[0]] not in read)
