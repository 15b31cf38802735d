"""Prepares a source for training: cleans, deduplicates, splits, profiles and counts.

A corpus is prepared in one pass with constant memory: what has to be remembered of each document
is in a scratch database. A dataset is spooled to disk once, because what happens to a row depends
on later rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Set
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow

from corpora.arrow_files import TableWriter
from corpora.cleaning import clean
from corpora.datasets import DatasetWriter, Overlap
from corpora.decontamination import EvaluationTexts
from corpora.evaluation_rows import EvaluationRows
from corpora.identity import normal_form, text_digest, text_key
from corpora.near_duplicates import NearDuplicates
from corpora.profile import measure
from corpora.readers.python_docs import library_names
from corpora.reading import read_documents
from corpora.rejections import Counts, RejectionLog, nothing_left
from corpora.scratch import SeenDocuments, scratch_database
from corpora.snapshot import Snapshot
from corpora.splits import HeldOutSplit
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.digests import unfinished
from fourstage.errors import ContractViolation

DOCUMENTS = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.string(), nullable=False),
        pyarrow.field("text", pyarrow.string(), nullable=False),
        pyarrow.field("split", pyarrow.string(), nullable=False),
        pyarrow.field("location", pyarrow.string(), nullable=False),
    ]
)
MEASURES = [
    pyarrow.field("id", pyarrow.string(), nullable=False),
    pyarrow.field("split", pyarrow.string(), nullable=False),
    pyarrow.field("num_chars", pyarrow.int64()),
    pyarrow.field("num_words", pyarrow.int64()),
    pyarrow.field("longest_word", pyarrow.int64()),
    pyarrow.field("replacement_share", pyarrow.float64()),
    pyarrow.field("script_share", pyarrow.float64()),
    pyarrow.field("control_removed", pyarrow.int64()),
    pyarrow.field("special_token_strings", pyarrow.int64()),
    pyarrow.field("digest", pyarrow.string()),
    pyarrow.field("num_duplicates", pyarrow.int64()),
]
CORPUS_PROFILE = pyarrow.schema(MEASURES)


def prepare_corpus(
    source: Source,
    snapshot: Snapshot,
    folder: Path,
    *,
    evaluation_texts: Iterable[str] = (),
    heldout_share: float = 0.02,
) -> Counts:
    """Write ``documents.arrow``, ``profile.parquet``, ``rejected.jsonl`` and ``counts.json``.

    Args:
        source: The corpus.
        snapshot: Its files.
        folder: Where to write; must exist.
        evaluation_texts: Texts that must not be trained on; documents with one are removed.
        heldout_share: Share of documents held out of training, 0-1; more of a small corpus
            (`corpora.splits.HeldOut`), at least one if there are two or more.

    Returns:
        What was read, kept, quarantined and removed.

    Raises:
        ContractViolation: A file cannot be read, or nothing is left.
    """
    # Labelled passages of the same packages are without the names of the libraries.
    names = normal_form(" ".join(library_names(source.packages))).split()
    evaluation = EvaluationTexts(evaluation_texts, source.markings, ignored=names)
    writer = _CorpusWriter(source, folder, evaluation, heldout_share)
    return writer.write(snapshot)


def prepare_dataset(
    source: Source,
    snapshot: Snapshot,
    folder: Path,
    *,
    overlap: Overlap = "drop_from_train",
    elsewhere: EvaluationRows | None = None,
    training_rows: tuple[int, int] | None = None,
) -> Counts:
    """Write ``rows.arrow``, ``labels.json`` and what `prepare_corpus` writes, except documents.

    If the source names groups, also ``groups.json``, with the group of each row. A split that the
    source does not list is carved out of train by hash. Rows of one group, and near duplicates,
    stay on one side.

    Args:
        source: The dataset.
        snapshot: Its files.
        folder: Where to write; must exist.
        overlap: What happens to training rows whose text (without markings) also occurs in dev or
            test: ``drop_from_train``, ``refuse`` (an error that lists their ids) or ``report``.
        elsewhere: Evaluation rows of the dataset that it is learnt beside: they count as its own.
        training_rows: How many training rows to keep, and the seed that draws them
            (`corpora.training_rows`); None: all. Other rows are the same for every draw.

    Returns:
        What was read, kept, quarantined and removed; the details hold the overlap as found.

    Raises:
        ContractViolation: A file cannot be read; labels are of several kinds, near-equal or unseen
            in train; rows overlap although the policy refuses it; nothing is left.
        RecipeError: There are not as many training rows as asked for, or more labels.
    """
    writer = DatasetWriter(source, folder, overlap, MEASURES, elsewhere, training_rows)
    return writer.write(snapshot)


class _CorpusWriter:
    """The one pass over a corpus."""

    def __init__(
        self, source: Source, folder: Path, evaluation: EvaluationTexts, heldout_share: float
    ):
        self._source = source
        self._folder = folder
        self._evaluation = evaluation
        self._heldout_share = heldout_share

    def write(self, snapshot: Snapshot) -> Counts:
        with scratch_database(unfinished(self._folder / "met.db")) as database:
            return self._write(snapshot, database)

    def _write(self, snapshot: Snapshot, database: sqlite3.Connection) -> Counts:
        self._met = SeenDocuments(database)
        # Every kept document is added, so that both use the same numbers.
        self._near = NearDuplicates(database=database)
        cleaned_away: dict[str, int] = {}
        chosen, heldout = HeldOutSplit(self._heldout_share), 0
        measured = unfinished(self._folder / "profile.arrow")
        with ExitStack() as stack:
            ledger = stack.enter_context(RejectionLog(self._folder))
            # Duplicate counts are known only at the end, so the profile is written twice.
            profile = stack.enter_context(TableWriter(measured, CORPUS_PROFILE))
            documents = stack.enter_context(
                TableWriter(self._folder / "documents.arrow", DOCUMENTS)
            )
            for item in read_documents(self._source, snapshot):
                ledger.counts.read += 1
                if isinstance(item, Rejected):
                    ledger.reject(item)
                    continue
                if not self._met.is_new(item.id):
                    ledger.reject(Rejected(item.id, item.location, "an id that was there before"))
                    continue
                cleaned = clean(item.text)
                for kind, count in cleaned.removed.items():
                    cleaned_away[kind] = cleaned_away.get(kind, 0) + count
                measures = measure(cleaned.text, self._source.language, cleaned.removed)
                normal = normal_form(cleaned.text, self._source.markings)
                key = text_key(cleaned.text, self._source.markings, normal)
                digest = text_digest(cleaned.text, key)
                reason, detail = self._why_removed(cleaned.text, normal, digest, measures)
                if reason:
                    ledger.remove(item.id, item.location, reason, detail)
                    continue
                split = "heldout" if chosen.takes(digest) else "train"
                heldout += split == "heldout"
                self._met.keep(item.id, digest)
                row = {"id": item.id, "split": split}
                documents.add(
                    {**row, "text": cleaned.text, "location": item.location},
                    len(cleaned.text) + 256,
                )
                profile.add({**row, **measures, "digest": digest, "num_duplicates": 0})
            kept = self._met.kept
            if not kept:
                raise ContractViolation(nothing_left(self._source, snapshot, ledger))
            others = chosen.others()
            heldout += len(others)
            ledger.counts.details = {
                "characters_removed": dict(sorted(cleaned_away.items())),
                "splits": {"train": kept - heldout, "heldout": heldout},
                "evaluation_texts": len(self._evaluation),
            }
            ledger.finish(kept)
        if others:
            _hold_out(self._folder / "documents.arrow", others)
            _hold_out(measured, others)
        self._finish_profile(measured)
        return ledger.counts

    def _why_removed(
        self, text: str, normal: str, digest: str, measures: dict[str, Any]
    ) -> tuple[str, str]:
        if not text:
            return "empty", ""
        if measures["num_words"] < self._source.minimum_words:
            return "shorter than minimum_words", str(measures["num_words"])
        first = self._met.number_of(digest)
        if first is not None:
            return "exact duplicate", self._met.repeat(first)
        if self._evaluation.touches(text, normal):
            return "holds an evaluation text", ""
        first = self._near.match_or_add(normal)
        if first is not None:
            return "near duplicate", self._met.repeat(first)
        return "", ""

    def _finish_profile(self, measured: Path) -> None:
        position = CORPUS_PROFILE.get_field_index("num_duplicates")
        start = 0
        with (
            pyarrow.OSFile(str(measured)) as stream,  # a memory map would fill memory as it is read
            TableWriter(self._folder / "profile.parquet", CORPUS_PROFILE) as profile,
        ):
            reader = pyarrow.ipc.open_file(stream)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                counts = self._met.repetitions(start, batch.num_rows)
                start += batch.num_rows
                array = pyarrow.array(counts, type=pyarrow.int64())
                profile.add_batch(batch.set_column(position, "num_duplicates", array))
        measured.unlink()


def _hold_out(path: Path, numbers: Set[int]) -> None:
    """Rewrite a table with some rows, counted from 0, moved to the held-out split."""
    with pyarrow.OSFile(str(path)) as stream:
        reader = pyarrow.ipc.open_file(stream)
        column = reader.schema.get_field_index("split")
        with TableWriter(path, reader.schema) as table:
            start = 0
            for batch in map(reader.get_batch, range(reader.num_record_batches)):
                splits = batch.column(column).to_pylist()
                for number in numbers & set(range(start, start + batch.num_rows)):
                    splits[number - start] = "heldout"
                start += batch.num_rows
                array = pyarrow.array(splits)
                table.add_batch(batch.set_column(column, reader.schema[column], array))
