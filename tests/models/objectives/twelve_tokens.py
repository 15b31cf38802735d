"""Rows of twelve tokens in English and Chinese, as words instead of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer

VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *"un ##believ ##able news from new york city to ##day it rained all night long".split(),
    *"我爱北京天安门和长城今夜下了一场大雨你",
]
CONTEXT = Context(PlainTokenizer(len(VOCABULARY)), sequence_length=12)


def ids(tokens: str | Sequence[str]) -> list[int]:
    """Numbers of words parted by blanks, or of single characters."""
    if isinstance(tokens, str):
        tokens = tokens.split() if " " in tokens or tokens in VOCABULARY else list(tokens)
    return [VOCABULARY.index(token) for token in tokens]


def words(numbers: np.ndarray) -> str:
    """The tokens of a row, parted by blanks."""
    return " ".join(VOCABULARY[i] for i in numbers)


def row(tokens: Sequence[str]) -> dict[str, np.ndarray]:
    """A clean batch of one row."""
    return {
        "token_ids": np.array([ids(tokens)], np.int32),
        "padding_mask": np.ones((1, len(tokens)), np.int32),
        "unit_starts": np.ones((1, len(tokens)), np.uint8),
    }


def corpus(*documents: Sequence[str]) -> MemoryCorpus:
    """Documents as lists of sentences."""
    return MemoryCorpus([[ids(sentence) for sentence in document] for document in documents])
