"""Tokenised text in memory: what Arrow shards hold, small enough to write down in a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured

from models.features import CAPITALISED, CASED, ENTITY_UNIT, WORD
from models.protocols import Context, Index


class MemoryCorpus:
    """Documents as lists of sentences, a sentence as a list of token ids."""

    def __init__(
        self,
        documents: Sequence[Sequence[Sequence[int]]],
        unit_starts: Sequence[Sequence[int]] | None = None,
    ):
        self._ids = [np.array([t for s in d for t in s], np.int32) for d in documents]
        self._sentences = [np.array([len(s) for s in d], np.int32) for d in documents]
        self._units = (
            [np.ones(len(ids), bool) for ids in self._ids]
            if unit_starts is None
            else [np.array(starts, np.uint32) for starts in unit_starts]
        )

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(ids) for ids in self._ids], np.int64)

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._ids[i], self._sentences[i], self._units[i]


class MemoryCaptions(MemoryCorpus):
    """One sentence a document, each with a picture: boxes (n, 4) and features (n, E).

    With answers, "" for none, they are questions. With classes, (n, 2) and the confidence in each,
    a detector tells them.
    """

    def __init__(
        self,
        captions: Sequence[Sequence[int]],
        pictures: Sequence[tuple[np.ndarray, np.ndarray]],
        answers: Sequence[str] = (),
        classes: Sequence[tuple[np.ndarray, np.ndarray]] = (),
    ):
        super().__init__([[caption] for caption in captions])
        self.has_classes = bool(classes)
        self._classes = list(classes)
        self.answers = list(answers) or [""] * len(captions)
        self._pictures = list(pictures)
        self.most_regions = max(len(boxes) for boxes, _ in pictures)

    def regions(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return self._pictures[i]

    def classes(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return self._classes[i]


class MemoryRows:
    """Labelled rows: (token ids, second token ids or None, label); each token is one word."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]):
        self.rows = list(rows)
        self._rows = [
            tuple(np.array(ids, np.int32) for ids in texts if ids is not None) for *texts, _ in rows
        ]
        self.answers = [label for *_, label in rows]
        self.ids = [f"r{i}" for i in range(len(rows))]

    def __len__(self) -> int:
        return len(self._rows)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return self._rows[i]

    def passage(self, i: int) -> str:
        return " ".join(map(str, self._rows[i][-1].tolist()))

    def word_lengths(self, i: int) -> np.ndarray:
        return np.ones(len(self._rows[i][-1]), np.int32)

    def entities(self, i: int) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros(0, np.int32) for _ in self._rows[i])

    @property
    def most_regions(self) -> int:
        return 0

    @property
    def has_classes(self) -> bool:
        return False

    def regions(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((0, 4), np.float32), np.zeros((0, 0), np.float32)

    def classes(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((0, 2), np.int32), np.zeros((0, 2), np.float32)


@dataclass(frozen=True)
class PlainTokenizer:
    """A tokenizer for texts that are numbers already."""

    vocabulary_size: int = 100
    pad_id: int = 0
    unknown_id: int = 1
    cls_id: int = 2
    sep_id: int = 3
    mask_id: int = 4
    special_ids: tuple[int, ...] = (0, 1, 2, 3, 4)
    sentinel_ids: tuple[int, ...] = ()
    digest: str = "plain"

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.array([int(word) for word in text.split()], np.int32) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(str(i) for i in ids)

    def served(self) -> dict[str, Any]:
        return {"pieces": [str(i) for i in range(self.vocabulary_size)], "bytes": False}

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        return np.ones(len(ids), bool)

    def module(self) -> None:
        return None


def random_corpus(
    num_documents: int,
    vocabulary_size: int,
    seed: int = 0,
    sentences: tuple[int, int] = (1, 12),
    words: tuple[int, int] = (3, 30),
    entities: int = 0,
) -> MemoryCorpus:
    """Documents of random ordinary tokens; a third of the tokens continue a word.

    Half of the words have case, and a third of those a capital. With a number of entities a fifth
    of the words name one.
    """
    rng = np.random.default_rng(seed)
    documents = [
        [
            rng.integers(5, vocabulary_size, rng.integers(*words)).tolist()
            for _ in range(rng.integers(*sentences))
        ]
        for _ in range(num_documents)
    ]
    starts = [[True, *(rng.random(sum(len(s) for s in d) - 1) > 1 / 3).tolist()] for d in documents]
    case = np.random.default_rng(seed + 1)
    kinds = [
        np.where(
            words,
            case.choice(
                [WORD, WORD + CASED, WORD + CASED + CAPITALISED],
                len(words),
                p=[1 / 2, 1 / 3, 1 / 6],
            ),
            0,
        )
        for words in starts
    ]
    if entities:
        kinds = [
            own + ENTITY_UNIT * (own > 0) * case.binomial(1, 0.2, len(own)) * drawn
            for own in kinds
            for drawn in [case.integers(1, entities, len(own))]
        ]
    return MemoryCorpus(documents, kinds)


def random_captions(
    number: int, vocabulary_size: int, region_dim: int, seed: int = 0
) -> MemoryCaptions:
    """Captions of random tokens with two to five regions, each of one class of three groups.

    Three of four have an answer.
    """
    rng = np.random.default_rng(seed)
    captions, pictures = [], []
    for _ in range(number):
        captions.append(rng.integers(5, vocabulary_size, rng.integers(3, 20)).tolist())
        count = rng.integers(2, 6)
        shares = np.eye(8)[rng.integers(0, 8, (count, 3))].reshape(count, 24)
        features = np.concatenate([shares, rng.random((count, region_dim - 24))], axis=1)
        boxes = np.sort(rng.random((count, 2, 2)), axis=1).reshape(count, 4)
        pictures.append((boxes.astype(np.float32), features.astype(np.float32)))
    answers = [("red", "blue", "two", "")[i % 4] for i in range(number)]
    return MemoryCaptions(captions, pictures, answers)


def drawn(objective: type, text: MemoryCorpus, length: int, rng: np.random.Generator) -> Index:
    """The examples of one pass that an objective draws from a corpus of a hundred tokens."""
    return objective(Context(PlainTokenizer(100), length)).index(text, rng)


def columns(entries: np.ndarray) -> np.ndarray:
    """The numbers of structured entries, (numbers of one, entries)."""
    return structured_to_unstructured(entries).T
