"""Captions: texts that come with a picture each, as documents of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models import features as keys
from models.inputs.rows import seen_regions
from models.protocols import Batch, Context, TokenisedRows, Tokenizer


class Captions:
    """A `TokenisedCorpus` of rows with pictures: a document is a row's texts, each a sentence.

    Args:
        rows: Tokenised rows.
        tokenizer: Theirs, which knows where words begin.
    """

    def __init__(self, rows: TokenisedRows, tokenizer: Tokenizer):
        self._rows = rows
        self._tokenizer = tokenizer
        self.lengths = np.array(
            [sum(map(len, rows.texts(i))) for i in range(len(rows))], dtype=np.int64
        )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> Sequence[str]:
        """The id of each row."""
        return self._rows.ids

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all documents."""
        return int(self.lengths.sum())

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Document `i`: token ids (n,), lengths of its texts (s,), unit starts (n,)."""
        texts = self._rows.texts(i)
        ids = np.concatenate(texts)
        starts = self._tokenizer.unit_starts(ids).astype(np.uint8) * keys.WORD
        return ids, np.array([len(text) for text in texts], np.int32), starts

    @property
    def most_regions(self) -> int:
        """The most regions that a picture has."""
        return self._rows.most_regions

    def regions(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Boxes (n, 4) and features (n, E) float32 of document `i`'s picture."""
        return self._rows.regions(i)


def has_pictures(corpus: Any) -> bool:
    """Whether the documents of a corpus come with pictures."""
    return getattr(corpus, "most_regions", 0) > 0


def pictures_of(corpus: Any, documents: np.ndarray, context: Context) -> Batch:
    """The regions of documents' pictures, as `seen_regions`; nothing for a corpus without."""
    return seen_regions(corpus, documents, context) if has_pictures(corpus) else {}
