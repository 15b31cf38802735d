"""Rows as the wide part of a head reads them, and what it learns from those of training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.blend import EQUAL
from models.inputs.hashed_ngrams import BUCKETS, KINDS, Ngrams
from models.keras_ops import ops
from models.layers.wide import both_ids, compared
from models.linear_machine import Machine, inverse_frequency, learned
from models.protocols import Batch, Context, TokenisedRows

_AT_ONCE = 256  # rows whose n-grams are counted together
_MOST = 1 << 24  # numbers of the kernel that are read at once, 64 MB


class Texts(Protocol):
    """Tokenised rows as far as they are counted."""

    def __len__(self) -> int: ...

    def texts(self, i: int, /) -> tuple[np.ndarray, ...]:
        """Token ids of the texts of row `i`, one or two."""
        ...


def check_can_tell(head: str, wide: WideRows | None, network: Any) -> None:
    """Check that a head without a wide part has a network.

    Raises:
        RecipeError: The family has none.
    """
    if wide is None and getattr(network, "counts_only", False):
        raise RecipeError(
            f"head.{head}.wide: expected true with a family that has no network, got false; nothing"
            " else can tell rows apart"
        )


class WideRows:
    """The n-grams of rows; of training rows the logits of a machine that has not seen them.

    Args:
        context: The stage's constants.
        labels: Returns the labels of rows, as `linear_machine.learned` takes them.
    """

    def __init__(self, context: Context, labels: Callable[[TokenisedRows], np.ndarray]):
        self.context = context
        self.labels = labels
        self._counted: tuple[TokenisedRows, np.ndarray] | None = None
        self.ngrams = Ngrams(context.tokenizer)

    def features(self, rows: TokenisedRows, entries: np.ndarray) -> Batch:
        """ngram_ids and ngram_counts (b, K); of rows whose logits are known ngram_logits (b, N)."""
        if rows is self.context.rows:
            return {keys.NGRAM_LOGITS: self.machine.unseen[entries]}
        if self._counted is not None and rows is self._counted[0]:
            return {keys.NGRAM_LOGITS: self._counted[1][entries]}
        return self.of_rows(rows, entries)

    def of(self, columns: Sequence[Any]) -> dict[str, Any]:
        """The n-grams of the columns' texts, in a graph."""
        return self.ngrams.of(columns)

    def of_rows(self, rows: TokenisedRows, entries: Sequence[int] | np.ndarray) -> Batch:
        """The n-grams of some rows."""
        return self.ngrams.of_texts([rows.texts(int(row)) for row in entries])

    @cached_property
    def machine(self) -> Machine:
        """What is learned from the training rows; the same rows give the same bits."""
        if self.context.machine is not None:
            return self.context.machine
        rows = self.context.rows
        assert rows is not None, "asked for while training"
        return self.learned(rows, [self._text(rows, row) for row in range(len(rows))])

    def learned(self, rows: TokenisedRows, groups: Sequence[bytes]) -> Machine:
        """What is learned from rows, of which those of one group have the same text."""
        counts, num_labels = self.counts(rows), len(self.context.label_names)
        alike = self.alike(rows, counts)
        return learned(counts, self.labels(rows), num_labels, groups, KINDS, alike)

    def count_once(self, wide: Any, rows: TokenisedRows) -> None:
        """Let the `features` of rows that are read again and again be their logits.

        Args:
            wide: The head's wide part, which has learned.
            rows: The rows; training rows have theirs already.
        """
        if rows is self.context.rows or (self._counted and rows is self._counted[0]):
            return
        self._counted = rows, self.scores(wide, rows)

    def scores(self, wide: Any, rows: Texts) -> np.ndarray:
        """(rows, N) scores of the wide part."""
        found = []
        for part in self._ngrams(rows):
            size = max(1, _MOST // (part[keys.NGRAM_COUNTS][0].size * wide.size))
            for start in range(0, len(part[keys.NGRAM_IDS]), size):
                some = {name: values[start : start + size] for name, values in part.items()}
                found.append(ops.convert_to_numpy(wide(some)))
        return np.concatenate(found)

    def teach(self, scorer: Any) -> None:
        """Give a head what was learned."""
        scorer.wide.learn(self.machine, EQUAL if scorer.blends else (1.0, 1.0))

    def counts(self, rows: Texts) -> Any:
        """(rows, BUCKETS) sparse counts; a bucket may be there twice, of either text of a pair."""
        return _sparse(self._ngrams(rows))

    def alike(self, rows: Texts, counts: Any) -> np.ndarray | None:
        """(rows, A) how alike the two texts of each row are; None for rows of one text."""
        if len(rows.texts(0)) == 1:
            return None
        idf = inverse_frequency(counts).astype(np.float32)
        # Counted again: the n-grams of all rows at once may not fit in memory.
        found = [ops.convert_to_numpy(compared(part, idf)) for part in self._ngrams(rows)]
        return np.concatenate(found).astype(np.float64)

    def _ngrams(self, rows: Texts) -> Iterator[Batch]:
        """The n-grams of all rows, some at a time."""
        for start in range(0, len(rows), _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, len(rows)))
            yield self.ngrams.of_texts([rows.texts(row) for row in some])

    def _text(self, rows: TokenisedRows, row: int) -> bytes:
        """The tokens of a row's texts without its markers: equal for rows of one text."""
        marks = [token for mark in self.context.marks for token in mark]
        ids = np.concatenate(rows.texts(row))
        return ids[~np.isin(ids, marks)].astype(np.int32).tobytes()


class WideHead:
    """A head that may have a wide part, which learns from the training rows before the network."""

    wide: WideRows | None

    @property
    def learns_first(self) -> bool:
        """Whether there is one."""
        return self.wide is not None

    def learn(self, scorer: Any) -> None:
        """Learn the wide part, if there is one."""
        if self.wide is not None:
            self.wide.teach(scorer)


def _sparse(found: Iterable[Batch]) -> Any:
    """N-grams of rows as one sparse matrix (rows, BUCKETS)."""
    from scipy.sparse import csr_matrix, vstack

    made = []
    for part in found:
        ids, counts = part[keys.NGRAM_IDS], part[keys.NGRAM_COUNTS]
        if counts.ndim > ids.ndim:
            shape = len(ids), -1
            ids = ops.convert_to_numpy(both_ids(ids)).reshape(shape)
            counts = counts.reshape(shape)
        there = counts > 0
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        values = counts[there].astype(np.float64)
        made.append(csr_matrix((values, ids[there], ends), (len(ids), BUCKETS)))
    return vstack(made, format="csr")
