"""Passages: texts that are read word by word, in several windows where they are long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.rows import framed
from models.protocols import Batch, Context, Index, TokenisedRows
from models.served.windows import windows
from models.served.words import word_spans

ENTRY = np.dtype([("row", np.int64), ("start", np.int32), ("end", np.int32)])
_LEAST_ROOM = 2  # tokens of the passage in a window
_KEPT = 64  # passages whose words are remembered: a batch has many windows of a long one


@dataclass(frozen=True)
class Passages:
    """The windows of rows whose last text is a passage; a text before it stands in every window.

    Args:
        context: The stage's constants.
        stride: Tokens from the start of a window to that of the next; None for half of what a
            window holds of the passage.

    Raises:
        RecipeError: The stride is below 1.
    """

    context: Context
    stride: int | None = None

    def __post_init__(self) -> None:
        if self.stride is not None and self.stride < 1:
            raise RecipeError(f"head: stride: expected 1 or more tokens, got {self.stride}")

    def windows(self, rows: TokenisedRows, row: int) -> list[tuple[int, int]]:
        """First word, and word after the last, of each window of a row; one at least."""
        room = self._room(self._before(rows, row))
        return windows(rows.word_lengths(row), room, self.stride)

    def index(self, rows: TokenisedRows) -> Index:
        """Every window of every row, in order.

        Raises:
            ContractViolation: There are no rows.
            RecipeError: The sequence length leaves no room for the passage.
        """
        if not len(rows):
            raise ContractViolation("the dataset has no rows in this split")
        entries: list[tuple[int, int, int]] = []
        lengths: list[int] = []
        several, cut = 0, []
        for row in range(len(rows)):
            before = self._before(rows, row)
            frame = 2 + (len(before) + 1 if before is not None else 0)
            of_words, found = rows.word_lengths(row), self.windows(rows, row)
            several += len(found) > 1
            if before is not None and len(before) < (whole := len(rows.texts(row)[0])):
                cut.append(whole)
            for start, end in found:
                entries.append((row, start, end))
                tokens = min(int(of_words[start:end].sum()), self._room(before))
                lengths.append(frame + tokens)
        return Index(
            np.array(entries, ENTRY),
            np.array(lengths, np.int64),
            by_length=True,
            details={
                "windows": len(entries),
                "rows_of_several_windows": several,
                "truncated_rows": len(cut),  # of the text before the passage
                "longest_row": max(cut, default=0),
            },
        )

    def segments(self, rows: TokenisedRows, entries: np.ndarray) -> tuple[Batch, list[np.ndarray]]:
        """The windows of a batch, and where their words lie.

        Args:
            rows: Tokenised rows, with words.
            entries: (B,) of `ENTRY`.

        Returns:
            token_ids, segment_ids and padding_mask (B, T); and for each window (words, 2) the
            positions of the first and the last token of each of its `words`.
        """
        texts, places = [], []
        for row, start, end in entries.tolist():
            before = self._before(rows, row)
            lengths = rows.word_lengths(row)
            room = self._room(before)
            first = int(lengths[:start].sum())
            ends = np.minimum(np.cumsum(lengths[start:end]), room)
            window = rows.texts(row)[-1][first : first + (int(ends[-1]) if len(ends) else 0)]
            begin = 1 if before is None else 2 + len(before)
            starts = np.concatenate([[0], ends])[:-1]
            read = ends > starts
            places.append(begin + np.stack([starts[read], ends[read] - 1], axis=1))
            texts.append((window,) if before is None else (before, window))
        return framed(texts, self.context), places

    def words(self, rows: TokenisedRows, row: int, start: int, end: int) -> np.ndarray:
        """Numbers of the words of a window that have tokens."""
        return start + np.flatnonzero(rows.word_lengths(row)[start:end])

    def _before(self, rows: TokenisedRows, row: int) -> np.ndarray | None:
        """The text before the passage, cut to half of the sequence; None if there is none."""
        texts = rows.texts(row)
        if len(texts) == 1:
            return None
        return texts[0][: max((self.context.sequence_length - 3) // 2, 0)]

    def _room(self, before: np.ndarray | None) -> int:
        """Tokens of the passage that fit in a window."""
        frame = 2 if before is None else 3 + len(before)
        room = self.context.sequence_length - frame
        if room < _LEAST_ROOM:
            raise RecipeError(
                f"sequence_length: {self.context.sequence_length} leaves {room} tokens of a window"
                " for the passage; raise it"
            )
        return room


@lru_cache(maxsize=_KEPT)
def word_places(passage: str) -> np.ndarray:
    """`models.served.words.word_spans`, found once for all windows of a passage; read-only."""
    found = word_spans(passage)
    found.flags.writeable = False
    return found


def slots(places: Sequence[np.ndarray], width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where a batch's words are read, one slot per word.

    Args:
        places: As `Passages.segments` returns them.
        width: T.

    Returns:
        (B, T) int32 positions of the first tokens; of the last; and 1 where a slot has a word.
    """
    first = np.zeros((len(places), width), np.int32)
    last, mask = np.zeros_like(first), np.zeros_like(first)
    for row, of_words in enumerate(places):
        first[row, : len(of_words)] = of_words[:, 0]
        last[row, : len(of_words)] = of_words[:, 1]
        mask[row, : len(of_words)] = 1
    return first, last, mask


def words_of_span(places: np.ndarray, start: int, end: int) -> tuple[int, int]:
    """First word, and word after the last, that characters `start` to `end` touch.

    Args:
        places: (words, 2) as `word_places` returns them.
        start: First character.
        end: The character after the last.
    """
    return (
        int(np.searchsorted(places[:, 1], start, side="right")),
        int(np.searchsorted(places[:, 0], end, side="left")),
    )


def spans_within_words(rows: TokenisedRows) -> list[str]:
    """The row's id of each span that no tags of words say: it begins or ends within a word.

    So does a span that begins or ends with a word without tokens.

    Args:
        rows: Tokenised rows, with words, answered by spans or not at all.
    """
    found = []
    for row in range(len(rows)):
        places = word_places(rows.passage(row))[rows.word_lengths(row) > 0]
        for start, end, _ in json.loads(rows.answers[row] or "[]"):
            if start not in places[:, 0] or end not in places[:, 1]:
                found.append(rows.ids[row])
    return found
