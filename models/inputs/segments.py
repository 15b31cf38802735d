"""Segments: contiguous parts of documents, and the rows made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.protocols import Batch, Capability, Context, TokenisedCorpus

# Tokens [start, end) of a document.
SEGMENT = np.dtype([("document", np.int64), ("start", np.int64), ("end", np.int64)])


def several_documents(corpus: TokenisedCorpus, objective: str) -> np.ndarray:
    """Numbers of the documents with text.

    Raises:
        ContractViolation: There are fewer than two.
    """
    usable = np.flatnonzero(corpus.lengths > 0)
    if len(usable) < 2:
        raise ContractViolation(
            f"{objective}: needs two documents or more, so that a second segment can come from "
            f"another one; the corpus has {len(usable)} with text"
        )
    return usable


def write_row(
    batch: Batch,
    row: int,
    corpus: TokenisedCorpus,
    pieces: Iterable[tuple[int, int, int]],
    context: Context,
) -> int:
    """Write [CLS] and pieces (document, first, end), each followed by [SEP], to a row of a batch.

    Returns:
        The row's length.
    """
    ids, starts = batch[keys.TOKEN_IDS], batch[keys.UNIT_STARTS]
    ids[row, 0] = context.tokenizer.cls_id
    at = 1
    for document, first, end in pieces:
        tokens, _, unit_starts = corpus.document(document)
        behind = at + end - first
        ids[row, at:behind] = tokens[first:end]
        starts[row, at:behind] = unit_starts[first:end]
        ids[row, behind] = context.tokenizer.sep_id
        at = behind + 1
    batch[keys.PADDING_MASK][row, :at] = 1
    return at


def sentence_ends_of(corpus: TokenisedCorpus, document: int) -> np.ndarray:
    """Borders of the non-empty sentences in a document's tokens, from 0: (sentences + 1,)."""
    lengths = corpus.document(document)[1]
    return np.concatenate(([0], np.cumsum(lengths[lengths > 0], dtype=np.int64)))


def empty_rows(num_rows: int, context: Context) -> Batch:
    """A batch of padding only: (num_rows, T)."""
    shape = (num_rows, context.sequence_length)
    return {
        keys.TOKEN_IDS: np.full(shape, context.tokenizer.pad_id, np.int32),
        keys.SEGMENT_IDS: np.zeros(shape, np.int32),
        keys.PADDING_MASK: np.zeros(shape, np.int32),
        keys.UNIT_STARTS: np.zeros(shape, np.uint32),
    }


def with_entities(batch: Batch, context: Context) -> Batch:
    """Rows of text with the entities that they name, entity_ids (B, T) int32, 0 for none.

    Only for a network that reads them; rows without ``unit_starts`` are as they are.
    """
    if Capability.ENTITIES not in context.network or keys.UNIT_STARTS not in batch:
        return batch
    named = batch[keys.UNIT_STARTS] // keys.ENTITY_UNIT
    return batch | {keys.ENTITY_IDS: named.astype(np.int32)}


def room_for(sequence_length: int, special: int, least: int = 1) -> int:
    """Tokens of text that fit in a row.

    Args:
        sequence_length: T.
        special: Number of special tokens.
        least: Tokens of text needed.

    Raises:
        RecipeError: The sequence is too short.
    """
    if sequence_length < special + least:
        raise RecipeError(
            f"sequence_length: {sequence_length} leaves no room for text beside {special} special "
            f"tokens; at least {special + least} are needed"
        )
    return sequence_length - special


class Chance:
    """Uniform random numbers, drawn from a generator in blocks."""

    def __init__(self, rng: np.random.Generator, block: int = 1 << 14):
        self._rng, self._block = rng, block
        self._numbers: Iterator[float] = iter(())

    def uniform(self) -> float:
        """A number in [0, 1)."""
        number = next(self._numbers, None)
        if number is None:
            self._numbers = iter(self._rng.random(self._block).tolist())
            number = next(self._numbers)
        return number

    def below(self, limit: int) -> int:
        """An integer in [0, limit)."""
        return int(self.uniform() * limit)

    def sample(self, limit: int, count: int) -> list[int]:
        """`count` distinct integers in [0, limit), ascending."""
        chosen: list[int] = []
        for number in range(limit - count, limit):  # Floyd's algorithm: all sets equally likely
            drawn = self.below(number + 1)
            chosen.append(number if drawn in chosen else drawn)
        return sorted(chosen)
