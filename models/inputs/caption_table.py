"""Captions by picture: which text is a caption of which picture."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation

_ROUNDS = 20  # of drawing anew where no candidate will do, before all captions are looked at


class CaptionTable:
    """The captions of a corpus, and what they say is true: each text of each picture that has it.

    Pictures with the same regions are one picture, and texts with the same tokens are one text.

    Args:
        corpus: Captions (`models.inputs.captions`); those without tokens are left out.

    Attributes:
        documents: (captions,) their numbers in the corpus, in order.
    """

    def __init__(self, corpus: Any):
        self.documents = np.flatnonzero(corpus.lengths > 0)
        pictures: dict[bytes, int] = {}
        texts: dict[bytes, int] = {}
        looks: list[np.ndarray] = []  # of each picture, the mean of its regions' features
        rows = []
        for document in self.documents.tolist():
            boxes, features = corpus.regions(document)
            # Documents without a picture share none.
            seen = boxes.tobytes() + features.tobytes() or b"%d" % document
            picture = pictures.setdefault(hashlib.blake2b(seen).digest(), len(pictures))
            if picture == len(looks):
                looks.append(features.mean(axis=0) if len(features) else np.zeros(1))
            tokens = corpus.document(document)[0].tobytes()
            rows.append((picture, texts.setdefault(tokens, len(texts))))
        width = max(map(len, looks), default=0)
        self._looks = np.array([each if len(each) == width else np.zeros(width) for each in looks])
        self._pictures, self._texts = np.array(rows, np.int64).reshape(-1, 2).T
        self._num_texts = len(texts)
        # What is true, in order, and of each a caption that says it.
        self._true, self._sayer = np.unique(
            self._pair(self._pictures, self._texts), return_index=True
        )

    def with_another(self) -> np.ndarray:
        """The captions whose picture has another one with another text, (n,) documents."""
        first, end = self._of_picture(np.arange(len(self.documents)))
        return self.documents[end - first > 1]

    def another_of_picture(self, documents: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Of each caption's picture another caption with another text, (n,).

        Args:
            documents: (n,) captions, of `with_another`.
            rng: Random generator.
        """
        own = self._places(documents)
        first, end = self._of_picture(own)
        at = np.searchsorted(self._true, self._pair(self._pictures[own], self._texts[own])) - first
        count = end - first
        chosen = first + (at + 1 + rng.integers(0, count - 1)) % count
        return self.documents[self._sayer[chosen]]

    def another_picture(
        self, documents: np.ndarray, candidates: int, rng: np.random.Generator
    ) -> np.ndarray:
        """For each caption a document whose picture it is not known to be true of, (n,).

        Args:
            documents: (n,) captions.
            candidates: Documents that are drawn for each, from which the one is taken whose picture
                looks most like the caption's own: by the mean of its regions' features. Pictures
                that look the same are never taken for each other.
            rng: Random generator.

        Raises:
            ContractViolation: There is none for a caption.
        """
        return self._others(documents, candidates, rng, own_text=True)

    def another_caption(
        self, documents: np.ndarray, candidates: int, rng: np.random.Generator
    ) -> np.ndarray:
        """For each caption another one that is not known to be true of its picture, (n,).

        The arguments and what is raised are as of `another_picture`.
        """
        return self._others(documents, candidates, rng, own_text=False)

    def _others(
        self, documents: np.ndarray, candidates: int, rng: np.random.Generator, *, own_text: bool
    ) -> np.ndarray:
        own = self._places(documents)
        found, left = own.copy(), np.arange(len(own))
        for _ in range(_ROUNDS):
            drawn, mine = rng.integers(0, len(self.documents), (len(left), candidates)), own[left]
            mine = np.broadcast_to(mine[:, None], drawn.shape)
            seen, told = (drawn, mine) if own_text else (mine, drawn)
            gaps = self._looks[self._pictures[drawn]] - self._looks[self._pictures[mine]]
            gaps = np.square(gaps).sum(axis=-1)
            gaps[(gaps == 0) | self._is_true(self._pictures[seen], self._texts[told])] = np.inf
            best = np.argmin(gaps, axis=1)[:, None]
            fits = np.isfinite(np.take_along_axis(gaps, best, 1)[:, 0])
            found[left[fits]] = np.take_along_axis(drawn, best, 1)[fits, 0]
            left = left[~fits]
            if not len(left):
                return self.documents[found]
        # Where one picture has most of the captions, few draws find another: draw from what fits.
        for place in left.tolist():
            fitting = self._fitting(own[place], own_text)
            if not len(fitting):
                raise ContractViolation(
                    f"image_text_match: document {documents[place]} of {len(self.documents)} with a"
                    " text found no other caption with another picture; add captions"
                )
            drawn = fitting[rng.integers(0, len(fitting), candidates)]
            gaps = self._looks[self._pictures[drawn]] - self._looks[self._pictures[own[place]]]
            found[place] = drawn[np.argmin(np.square(gaps).sum(axis=-1))]
        return self.documents[found]

    def _fitting(self, mine: int, own_text: bool) -> np.ndarray:
        """The places of all captions that `_others` may find for the one at a place."""
        alike = (self._looks == self._looks[self._pictures[mine]]).all(axis=1)
        every = np.arange(len(self.documents))
        seen, told = (every, [mine]) if own_text else ([mine], every)
        known = self._is_true(self._pictures[seen], self._texts[told])
        return np.flatnonzero(~alike[self._pictures] & ~known)

    def _pair(self, pictures: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """A number for each picture with a text."""
        return pictures * self._num_texts + texts

    def _is_true(self, pictures: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Whether texts are captions of pictures, of the same shape."""
        pairs = self._pair(pictures, texts)
        places = np.minimum(np.searchsorted(self._true, pairs), len(self._true) - 1)
        return self._true[places] == pairs

    def _of_picture(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where in `_true` the texts of each caption's picture begin and end, (n,) each."""
        first = self._pictures[own] * self._num_texts
        return (
            np.searchsorted(self._true, first),
            np.searchsorted(self._true, first + self._num_texts),
        )

    def _places(self, documents: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.documents, documents)
