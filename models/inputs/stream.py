"""A corpus as one stream of tokens, of which rows can be read that follow one another.

[CLS] first document [SEP] [CLS] second document [SEP] …
"""

from __future__ import annotations

import numpy as np

from fourstage.errors import ContractViolation
from models.protocols import Context, Index, TokenisedCorpus


class Stream:
    """The documents of a corpus that have tokens, each between [CLS] and [SEP].

    Args:
        corpus: Tokenised documents.
        cls_id: Id of [CLS].
        sep_id: Id of [SEP].

    Raises:
        ContractViolation: The corpus has no tokens.
    """

    def __init__(self, corpus: TokenisedCorpus, cls_id: int, sep_id: int):
        self._corpus, self._cls_id, self._sep_id = corpus, cls_id, sep_id
        self._documents = np.flatnonzero(corpus.lengths > 0)
        self._ends = np.cumsum(corpus.lengths[self._documents].astype(np.int64) + 2)
        if not len(self._ends):
            raise ContractViolation("stream: the corpus has no tokens")

    def __len__(self) -> int:
        return int(self._ends[-1])

    def rows(self, length: int) -> Index:
        """The stream cut every `length` tokens, as starts of rows.

        A row reads the tokens that another one follows, so that each row predicts `length` tokens.
        Only the last row may be shorter.
        """
        starts = np.arange(0, len(self) - 1, length, dtype=np.int64)
        lengths = np.minimum(length, len(self) - 1 - starts)
        return Index(starts, lengths, details={"padding": 1.0 - float(lengths.mean()) / length})

    def begins(self, start: int, count: int) -> np.ndarray:
        """(n,) bool: which of the tokens from `start` on are the [CLS] of a document.

        Where one token is [CLS] and [SEP], its id does not tell.
        """
        places = np.arange(start, min(start + count, len(self)), dtype=np.int64)
        ended = [np.searchsorted(self._ends, places, side=side) for side in ("left", "right")]
        return (places == 0) | (ended[0] < ended[1])

    def read(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens from `start` on.

        Args:
            start: Place in the stream, from 0.
            count: How many tokens; fewer where the stream ends.

        Returns:
            Their ids (n,) int32, and the kinds of units that start at each, (n,) uint32.
        """
        ids, starts, missing = [], [], count
        place = int(np.searchsorted(self._ends, start, side="right"))
        while missing > 0 and place < len(self._documents):
            tokens, _, unit_starts = self._corpus.document(int(self._documents[place]))
            whole = len(tokens) + 2
            first = start - (int(self._ends[place]) - whole)
            last = min(first + missing, whole)
            body = slice(max(first - 1, 0), last - 1)  # a slice ends where the document does
            front = [self._cls_id] * (first == 0)
            back = [self._sep_id] * (last == whole)
            ids.append(np.concatenate((front, tokens[body], back)).astype(np.int32))
            kinds = ([0] * len(front), unit_starts[body], [0] * len(back))
            starts.append(np.concatenate(kinds).astype(np.uint32))
            missing -= last - first
            start, place = int(self._ends[place]), place + 1
        if not ids:
            return np.zeros(0, np.int32), np.zeros(0, np.uint32)
        return np.concatenate(ids), np.concatenate(starts)


class Streams:
    """The stream of the corpus that was read last: its ends are summed up once.

    Args:
        context: The stage's constants.
    """

    def __init__(self, context: Context):
        self._tokenizer = context.tokenizer
        self._last: tuple[TokenisedCorpus, Stream] | None = None

    def of(self, corpus: TokenisedCorpus) -> Stream:
        """The corpus as a stream."""
        if self._last is None or self._last[0] is not corpus:
            made = Stream(corpus, self._tokenizer.cls_id, self._tokenizer.sep_id)
            self._last = corpus, made
        return self._last[1]
