"""Windows: full rows of contiguous text."""

from __future__ import annotations

import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.inputs.captions import answers_of, has_pictures, pictures_of
from models.inputs.segments import empty_rows, room_for
from models.protocols import Batch, Context, Index, TokenisedCorpus

WINDOW = np.dtype([("document", np.int64), ("start", np.int64)])


class Windows:
    """The data half of an objective that reads full windows if no other chooses the segments.

    Attributes:
        context: The stage's constants.
        across_documents: Whether a row continues with the next document where one ends.
        closed: Whether a [SEP] ends each row, wherever that is in the text.
    """

    context: Context
    across_documents = True
    closed = True

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Full windows over the whole corpus, or over each document or caption."""
        index = window_index if self._joined(corpus) else document_index
        again = not self.context.remembers
        return index(corpus, self.context.sequence_length, closed=self.closed, again=again)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The windows before noise, with captions' pictures, and their answers if asked."""
        joined = self._joined(corpus)
        rows = windows(corpus, entries, self.context, joined=joined, closed=self.closed)
        documents = entries["document"]
        seen = pictures_of(corpus, documents, self.context)
        return rows | seen | answers_of(corpus, documents, self.context)

    def _joined(self, corpus: TokenisedCorpus) -> bool:
        """Whether rows go on with the next document: never from one picture to another."""
        return self.across_documents and not has_pictures(corpus)


def window_index(
    corpus: TokenisedCorpus, sequence_length: int, *, closed: bool = True, again: bool = True
) -> Index:
    """Full windows over the corpus as one stream, in which documents are joined by [SEP].

    Every token is in a window. Windows do not overlap, except that the last one starts early enough
    to be full. A corpus shorter than one window gives a single padded row.

    Args:
        corpus: Tokenised documents.
        sequence_length: T; a window has T - 2 tokens of the stream, between [CLS] and [SEP].
        closed: Whether a [SEP] ends each row; without it, a window has T - 1 tokens.
        again: Whether the last window reads tokens again to be full, instead of being padded.

    Returns:
        An index of `WINDOW` entries; a start equal to the document's length means the [SEP] after
        the document.

    Raises:
        ContractViolation: The corpus has no tokens.
    """
    special = 1 + closed
    room = room_for(sequence_length, special)
    ends = np.cumsum(corpus.lengths.astype(np.int64) + 1)  # + 1: the [SEP] after each document
    total = int(ends[-1]) if len(ends) else 0
    if closed:
        total -= 1  # without the last [SEP]: the window adds its own
    if not total or not corpus.num_tokens:
        raise ContractViolation("masked windows: the corpus has no tokens")
    starts = np.arange(0, max(total - room, 0) + 1, room, dtype=np.int64)
    if starts[-1] + room < total:
        starts = np.append(starts, total - room if again else starts[-1] + room)
    document = np.searchsorted(ends, starts, side="right")
    offset = starts - (ends[document] - corpus.lengths[document] - 1)
    lengths = np.minimum(room, total - starts) + special
    return Index(
        _entries(document, offset),
        lengths,
        details={"padding": 1.0 - float(lengths.mean()) / sequence_length},
    )


def document_index(
    corpus: TokenisedCorpus, sequence_length: int, *, closed: bool = True, again: bool = True
) -> Index:
    """Windows within single documents, as SpanBERT's blocks.

    As `window_index`, but per document: the last window of each document starts early enough to be
    full; a document shorter than a window gives a padded row.

    Args:
        corpus: Tokenised documents.
        sequence_length: T.
        closed: Whether a [SEP] ends each row; without it, only where the document ends.
        again: Whether the last window of a document reads tokens again to be full, instead of being
            padded.

    Returns:
        An index of `WINDOW` entries.

    Raises:
        ContractViolation: The corpus has no tokens.
    """
    special = 1 + closed
    room = room_for(sequence_length, special)
    lengths = corpus.lengths.astype(np.int64)
    if not closed:
        lengths += lengths > 0  # the [SEP] after each document
    counts = -(-lengths // room)  # 0 for an empty document
    if not counts.any():
        raise ContractViolation("masked windows: the corpus has no tokens")
    document = np.repeat(np.arange(len(lengths)), counts)
    place = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    held = np.minimum(lengths[document], room)
    start = np.minimum(place * room, lengths[document] - held)
    if not again:
        start = place * room
        held = np.minimum(lengths[document] - start, room)
    return Index(
        _entries(document, start),
        held + special,
        details={"padding": 1.0 - float((held + special).mean()) / sequence_length},
    )


def windows(
    corpus: TokenisedCorpus,
    entries: np.ndarray,
    context: Context,
    *,
    joined: bool = True,
    closed: bool = True,
) -> Batch:
    """Rows of `window_index` or `document_index`: [CLS] text [SEP], all in segment 0.

    Args:
        corpus: Tokenised documents.
        entries: (B,) of `WINDOW`.
        context: The stage's constants.
        joined: Whether a row continues with the next document where one ends.
        closed: Whether a [SEP] ends each row.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint32.
    """
    batch = empty_rows(len(entries), context)
    ids, starts = batch[keys.TOKEN_IDS], batch[keys.UNIT_STARTS]
    room = context.sequence_length - 1 - closed
    for row, (document, offset) in enumerate(entries.tolist()):
        at = 1
        ids[row, 0] = context.tokenizer.cls_id
        while True:
            tokens, _, unit_starts = corpus.document(document)
            piece = tokens[offset : offset + room + 1 - at]
            ids[row, at : at + len(piece)] = piece
            starts[row, at : at + len(piece)] = unit_starts[offset : offset + len(piece)]
            at += len(piece)
            document, offset = document + 1, 0
            last = not joined or document >= len(corpus)
            if at > room or (closed and last):
                break
            ids[row, at] = context.tokenizer.sep_id
            at += 1
            if at > room or last:
                break
        if closed:
            ids[row, at] = context.tokenizer.sep_id
            at += 1
        batch[keys.PADDING_MASK][row, :at] = 1
    return batch


def _entries(document: np.ndarray, start: np.ndarray) -> np.ndarray:
    entries = np.empty(len(document), WINDOW)
    entries["document"], entries["start"] = document, start
    return entries
