"""Tokenised text on disk: memory-mapped Arrow with random access, in constant memory.

A file is written once, batch by batch, and appears under its name when it is complete. A reader
maps it: the arrays of a document are views of the file, valid as long as the reader exists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import accumulate, pairwise
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow

from corpora.arrow_files import TableWriter
from corpora.units import ENTITY_UNIT

_NONE = np.zeros(0, np.int32)
_NO_CLASSES = np.zeros((0, 2), np.int32), np.zeros((0, 2), np.float32)
TOKENS = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.string(), nullable=False),
        pyarrow.field("split", pyarrow.string(), nullable=False),
        pyarrow.field("token_ids", pyarrow.list_(pyarrow.int32()), nullable=False),
        pyarrow.field("sentence_lengths", pyarrow.list_(pyarrow.int32()), nullable=False),
        # The kinds of unit that a token starts, see corpora.units.
        pyarrow.field("unit_starts", pyarrow.list_(pyarrow.uint8()), nullable=False),
        # The entity that is named from each token on, 0 for none; empty where none is linked.
        pyarrow.field("entities", pyarrow.list_(pyarrow.int32()), nullable=False),
    ]
)
# What the contract of the tokens is checked on: numbers, no text.
TOKEN_PROFILE = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.string(), nullable=False),
        pyarrow.field("split", pyarrow.string(), nullable=False),
        pyarrow.field("num_tokens", pyarrow.int64()),
        pyarrow.field("unknown_share", pyarrow.float64()),
        pyarrow.field("pieces_per_word", pyarrow.float64()),
    ]
)
ROWS = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.string(), nullable=False),
        pyarrow.field("split", pyarrow.string(), nullable=False),
        pyarrow.field("token_ids", pyarrow.list_(pyarrow.int32()), nullable=False),
        pyarrow.field("text_lengths", pyarrow.list_(pyarrow.int32()), nullable=False),
        # The last text and the tokens of each of its words, if a head reads words.
        pyarrow.field("passage", pyarrow.string(), nullable=True),
        pyarrow.field("word_lengths", pyarrow.list_(pyarrow.int32()), nullable=False),
        # The entity that is named from each token on, 0 for none; empty where none is linked.
        pyarrow.field("entities", pyarrow.list_(pyarrow.int32()), nullable=False),
        # Place of the row's picture in the file beside it; -1 without one.
        pyarrow.field("picture", pyarrow.int32(), nullable=False),
        pyarrow.field("answer", pyarrow.string(), nullable=False),
    ]
)
# Each picture once, however many rows ask about it: (n, 4) and (n, E), row by row; and (n, 2) each
# what a detector tells of its regions, empty for nothing.
PICTURES = pyarrow.schema(
    [
        pyarrow.field("boxes", pyarrow.list_(pyarrow.float32()), nullable=False),
        pyarrow.field("features", pyarrow.list_(pyarrow.float32()), nullable=False),
        pyarrow.field("classes", pyarrow.list_(pyarrow.int32()), nullable=False),
        pyarrow.field("confidences", pyarrow.list_(pyarrow.float32()), nullable=False),
    ]
)


class TokenWriter(TableWriter):
    """Writes tokenised documents.

    Args:
        path: The file, there once the ``with`` block ends well.
    """

    def __init__(self, path: Path):
        super().__init__(Path(path), TOKENS)

    def add_document(
        self,
        id: str,  # noqa: A002 (the column's name)
        split: str,
        token_ids: np.ndarray,
        sentence_lengths: np.ndarray,
        unit_starts: np.ndarray,
    ) -> None:
        """Add one document.

        Args:
            id: The document's.
            split: ``train`` or ``heldout``.
            token_ids: (n,) int32.
            sentence_lengths: (s,) int32, summing to n.
            unit_starts: (n,) integers: the kinds of unit that each token starts and the entity
                named there (`corpora.units`), or bool for words only.
        """
        tokens = np.ascontiguousarray(token_ids, dtype=np.int32)
        sentences = np.ascontiguousarray(sentence_lengths, dtype=np.int32)
        starts = np.ascontiguousarray(unit_starts, dtype=np.uint32)
        named = starts // ENTITY_UNIT
        if int(sentences.sum()) != len(tokens) or len(starts) != len(tokens):
            raise ValueError(
                f"expected sentence lengths that sum to {len(tokens)} tokens and as many unit "
                f"starts, got {int(sentences.sum())} and {len(starts)}"
            )
        self.add(
            {
                "id": id,
                "split": split,
                "token_ids": tokens,
                "sentence_lengths": sentences,
                "unit_starts": (starts % ENTITY_UNIT).astype(np.uint8),
                "entities": named.astype(np.int32) if named.any() else _NONE,
            },
            5 * len(tokens) + 4 * len(sentences) + 64,
        )


class RowWriter(TableWriter):
    """Writes tokenised rows, and beside them the regions of their pictures, if they have any.

    Args:
        path: The file, there once the ``with`` block ends well.
    """

    def __init__(self, path: Path):
        super().__init__(Path(path), ROWS)
        self._pictures = ExitStack()
        self._places: dict[bytes, int] = {}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pictures.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    def add_row(
        self,
        id: str,  # noqa: A002 (the column's name)
        split: str,
        texts: Sequence[np.ndarray],
        answer: str,
        passage: str | None = None,
        word_lengths: Sequence[int] = (),
        regions: tuple[np.ndarray, np.ndarray] | None = None,
        entities: Sequence[np.ndarray] = (),
        classes: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Add one row.

        Args:
            id: The row's.
            split: ``train``, ``dev`` or ``test``.
            texts: Token ids of each text, one or more of (n,) int32.
            answer: What is right, as the dataset writes it; empty for none.
            passage: The last text as written, if a head reads its words.
            word_lengths: (words,) tokens of each word of the passage, summing to those of the last
                text.
            regions: Boxes (n, 4) and features (n, E) of the regions of the row's picture.
            entities: Of each text, (n,) the entity that is named from each token on.
            classes: Classes (n, 2) of the regions, object and attribute, and the detector's
                confidence in each; None or (0, 2) where it tells none.
        """
        words = np.array(word_lengths, dtype=np.int32)
        if passage is not None and int(words.sum()) != len(texts[-1]):
            raise ValueError(
                f"expected word lengths that sum to {len(texts[-1])} tokens, got {words.sum()}"
            )
        tokens = np.concatenate(texts).astype(np.int32)
        self.add(
            {
                "id": id,
                "split": split,
                "token_ids": tokens,
                "text_lengths": np.array([len(text) for text in texts], np.int32),
                "passage": passage,
                "word_lengths": words,
                "entities": np.concatenate(entities or [[]]).astype(np.int32),
                "picture": -1
                if regions is None
                else self._place_of(*regions, *(classes or _NO_CLASSES)),
                "answer": answer,
            },
            4 * len(tokens) + 4 * len(words) + 4 * len(passage or "") + 64,
        )

    def _place_of(self, *arrays: np.ndarray) -> int:
        """The place of a picture in its file, which begins with the first one."""
        row = {
            field.name: np.ascontiguousarray(each, field.type.value_type.to_pandas_dtype()).ravel()
            for field, each in zip(PICTURES, arrays, strict=True)
        }
        look = hashlib.sha256(b"".join(each.tobytes() for each in row.values())).digest()
        if look not in self._places:
            if not self._places:
                self._file = TableWriter(pictures_file(self.path), PICTURES)
                self._pictures.enter_context(self._file)
            self._places[look] = len(self._places)
            self._file.add(row, sum(each.nbytes for each in row.values()))
        return self._places[look]


class _Mapped:
    """A memory-mapped file and the positions of one split's rows in it."""

    def __init__(self, path: Path | str, split: str | None, schema: pyarrow.Schema):
        self.path = Path(path)
        self.split = split
        self._mapped = pyarrow.memory_map(str(self.path))
        reader = pyarrow.ipc.open_file(self._mapped)
        if not reader.schema.equals(schema):
            raise ValueError(
                f"{self.path}: expected the columns {schema.names}, got {reader.schema.names}"
            )
        # Record batches are views of the map, so keeping them costs hardly any memory.
        self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        batch_numbers, rows = [], []
        for number, batch in enumerate(self._batches):
            chosen = np.arange(batch.num_rows, dtype=np.int32)
            if split is not None:
                splits = batch.column("split").to_numpy(zero_copy_only=False)
                chosen = chosen[splits == split]
            batch_numbers.append(np.full(len(chosen), number, dtype=np.int32))
            rows.append(chosen)
        self._batch_of = _joined(batch_numbers)  # (rows,)
        self._row_of = _joined(rows)  # (rows,)
        self._views: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}

    def __len__(self) -> int:
        return len(self._batch_of)

    def __reduce__(self) -> tuple[type, tuple[str, str | None]]:
        # A worker process maps the file again instead of receiving a copy.
        return type(self), (str(self.path), self.split)

    @property
    def ids(self) -> list[str]:
        """The id of each document or row, in order."""
        return self._strings("id")

    def _strings(self, column: str) -> list[str]:
        columns = [batch.column(column) for batch in self._batches]
        return [
            columns[batch][int(row)].as_py()
            for batch, row in zip(self._batch_of, self._row_of, strict=True)
        ]

    def _view(self, column: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Offsets and values of a list column, by batch, without a copy."""
        if column not in self._views:
            self._views[column] = [
                (
                    batch.column(column).offsets.to_numpy(),
                    batch.column(column).values.to_numpy(),
                )
                for batch in self._batches
            ]
        return self._views[column]

    def _slice(self, column: str, i: int) -> np.ndarray:
        offsets, values = self._view(column)[self._batch_of[i]]
        row = self._row_of[i]
        return values[offsets[row] : offsets[row + 1]]

    def _lengths(self, column: str) -> np.ndarray:
        """Length of a list column in each row, (rows,) int64."""
        parts = []
        for number, (offsets, _) in enumerate(self._view(column)):
            rows = self._row_of[self._batch_of == number]
            parts.append((offsets[rows + 1] - offsets[rows]).astype(np.int64))
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def _check(self, i: int) -> int:
        if not -len(self) <= i < len(self):
            raise IndexError(f"{i} of {len(self)}")
        return i % len(self)


class TokenisedCorpus(_Mapped):
    """Tokenised documents.

    Args:
        path: A file written by `TokenWriter`.
        split: Only the documents of this split; None for all.
    """

    def __init__(self, path: Path | str, split: str | None = None):
        super().__init__(path, split, TOKENS)
        self._token_lengths = self._lengths("token_ids")

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all documents."""
        return int(self._token_lengths.sum())

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each document, (documents,) int64."""
        return self._token_lengths

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Document `i`: token ids (n,) int32, sentence lengths (s,) int32, unit starts (n,).

        A unit start is the sum of the kinds of unit that begin there, uint8, and where entities
        are linked `ENTITY_UNIT` times the one that is named, uint32 (`corpora.units`). The arrays
        are views of the file; do not write to them.
        """
        i = self._check(i)
        starts, named = self._slice("unit_starts", i), self._slice("entities", i)
        if len(named):
            starts = starts + ENTITY_UNIT * named.astype(np.uint32)
        return self._slice("token_ids", i), self._slice("sentence_lengths", i), starts


class TokenisedRows(_Mapped):
    """Tokenised rows with an answer each.

    Args:
        path: A file written by `RowWriter`.
        split: Only the rows of this split; None for all.
    """

    def __init__(self, path: Path | str, split: str | None = None):
        super().__init__(path, split, ROWS)
        self._answers = self._strings("answer")
        pictures = pictures_file(self.path)
        self._pictures = _Mapped(pictures, None, PICTURES) if pictures.exists() else None
        numbers = [] if self._pictures is None else self._pictures._lengths("boxes")
        self._most_regions = int(max(numbers, default=0)) // 4
        told = [] if self._pictures is None else self._pictures._lengths("classes")
        self._has_classes = int(max(told, default=0)) > 0

    @property
    def answers(self) -> list[str]:
        """What is right for each row, as the dataset writes it; empty for none."""
        return self._answers

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each row, of all its texts, (rows,) int64."""
        return self._lengths("token_ids")

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        """Token ids (n,) int32 of each text of row `i`; views."""
        return self._of_texts("token_ids", i)

    def entities(self, i: int) -> tuple[np.ndarray, ...]:
        """The entity named from each token of each text of row `i` on, (n,) int32; views.

        (0,) where none is linked.
        """
        return self._of_texts("entities", i)

    def _of_texts(self, column: str, i: int) -> tuple[np.ndarray, ...]:
        i = self._check(i)
        values, lengths = self._slice(column, i), self._slice("text_lengths", i).tolist()
        ends = [*accumulate(lengths, initial=0)]
        return tuple(values[start:end] for start, end in pairwise(ends))

    def passage(self, i: int) -> str:
        """The last text of row `i` as written; empty if no head reads its words."""
        i = self._check(i)
        column = self._batches[self._batch_of[i]].column("passage")
        return column[int(self._row_of[i])].as_py() or ""

    def word_lengths(self, i: int) -> np.ndarray:
        """Tokens of each word of `passage`, (words,) int32; a view."""
        return self._slice("word_lengths", self._check(i))

    @property
    def most_regions(self) -> int:
        """The most regions that a row of the file has, of any split; 0 without pictures."""
        return self._most_regions

    def regions(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Boxes (n, 4) and features (n, E) float32 of row `i`'s picture; views; n may be 0."""
        place = self._place_of(i)
        if place < 0 or self._pictures is None:
            return np.zeros((0, 4), np.float32), np.zeros((0, 0), np.float32)
        boxes = self._pictures._slice("boxes", place).reshape(-1, 4)
        return boxes, self._pictures._slice("features", place).reshape(
            len(boxes), -1 if len(boxes) else 0
        )

    @property
    def has_classes(self) -> bool:
        """Whether a detector told the classes of any picture's regions."""
        return self._has_classes

    def classes(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """What a detector tells of the regions of row `i`'s picture: classes and confidences.

        Views, (n, 2) int32 and float32: of objects, then of attributes; n is 0 for nothing.
        """
        place = self._place_of(i)
        if place < 0 or self._pictures is None:
            return _NO_CLASSES
        classes, sure = (self._pictures._slice(name, place) for name in ("classes", "confidences"))
        return classes.reshape(-1, 2), sure.reshape(-1, 2)

    def _place_of(self, i: int) -> int:
        """The place of row `i`'s picture in its file; -1 for none."""
        i = self._check(i)
        return self._batches[self._batch_of[i]].column("picture")[int(self._row_of[i])].as_py()


def pictures_file(rows: Path) -> Path:
    """The file of the pictures of a file of rows."""
    return rows.with_name(f"{rows.stem}-pictures.arrow")


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
