"""Image-text match: is a caption that of the picture?

A share of the rows has the picture of another caption. With several candidates the one whose
regions look most like the right picture's is taken, which is a hard negative.

Reference:
    Tan and Bansal 2019, arXiv 1908.07490, 3.1.3; Chen et al. 2020, arXiv 1909.11740, 3.2. Hard
    negatives: Li et al. 2020, arXiv 1908.06066, 3.2.
"""

from __future__ import annotations

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.captions import answers_of, has_pictures, pictures_of
from models.inputs.windows import document_index, windows
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus
from models.row_classes import RowClasses

NEEDS = ("pooled_output", "regions")
PROVIDES = ("matched_pairs",)
CHOOSES = 2
PREPARES = False
PAIR = np.dtype([("document", np.int64), ("start", np.int64), ("picture", np.int64)])
_ROUNDS = 20  # of drawing candidates anew where none will do


class ImageTextMatch(RowClasses):
    """Both halves of image-text match.

    Args:
        context: The stage's constants.
        negatives: Share of rows with another caption's picture, 0-1.
        candidates: Pictures that are drawn for each of these, from which the most similar one is
            taken: by the distance of the means of their regions' features. 1 for any.

    Raises:
        RecipeError: A setting is out of range.
    """

    name = "image_text_match"
    classes = ("mismatched", "matched")
    needs = frozenset(Capability(name) for name in NEEDS)
    provides = frozenset(Capability(name) for name in PROVIDES)

    def __init__(self, context: Context, *, negatives: float = 0.5, candidates: int = 1):
        super().__init__(context)
        if not 0.0 < negatives < 1.0 or candidates < 1:
            raise RecipeError(
                "objectives.image_text_match: expected negatives in (0, 1) and candidates from 1,"
                f" got {negatives} and {candidates}"
            )
        self.negatives = negatives
        self.candidates = candidates

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Captions with their own picture or another one.

        Raises:
            ContractViolation: The corpus has no pictures, or no two captions of different ones.
        """
        if not has_pictures(corpus):
            raise ContractViolation(
                "image_text_match: needs captions with pictures; name only datasets with pictures"
                " among the corpora of the stage"
            )
        found = document_index(corpus, self.context.sequence_length)
        entries = np.empty(len(found), PAIR)
        for field in ("document", "start"):
            entries[field] = found.entries[field]
        entries["picture"] = entries["document"]
        wanted = np.flatnonzero(rng.random(len(found)) < self.negatives)
        entries["picture"][wanted] = self._others(corpus, entries["document"][wanted], rng)
        share = float((entries["picture"] != entries["document"]).mean())
        return Index(entries, found.lengths, details={**found.details, "mismatched_pairs": share})

    def _others(
        self, corpus: TokenisedCorpus, documents: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """For each document one whose picture and caption are others, (n,) int64."""
        looks, captions = _looks(corpus), _captions(corpus)
        found, left = documents.copy(), np.arange(len(documents))
        for _ in range(_ROUNDS):
            drawn = rng.integers(0, len(corpus), (len(left), self.candidates))
            own = documents[left]
            gaps = np.square(looks[drawn] - looks[own][:, None]).sum(axis=-1)
            gaps[(gaps == 0) | (captions[drawn] == captions[own][:, None])] = np.inf
            best = np.argmin(gaps, axis=1)[:, None]
            fits = np.isfinite(np.take_along_axis(gaps, best, 1)[:, 0])
            found[left[fits]] = np.take_along_axis(drawn, best, 1)[fits, 0]
            left = left[~fits]
            if not len(left):
                return found
        raise ContractViolation(
            f"image_text_match: {len(left)} captions found no other caption with another picture;"
            " add captions"
        )

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The captions, their pictures, 1 for their own, and answers about these, if asked."""
        rows = windows(corpus, entries[["document", "start"]], self.context, joined=False)
        matched = (entries["picture"] == entries["document"]).astype(np.int32)
        rows |= pictures_of(corpus, entries["picture"], self.context) | {self.labels: matched}
        for key, labels in answers_of(corpus, entries["document"], self.context).items():
            rows[key] = np.where(matched > 0, labels, np.int32(-1))
        return rows


def _looks(corpus: TokenisedCorpus) -> np.ndarray:
    """The mean of the features of each document's regions, (documents, E); 0 for none."""
    features = [corpus.regions(i)[1] for i in range(len(corpus))]  # pyright: ignore
    width = max(each.shape[1] for each in features)
    return np.array([each.mean(axis=0) if len(each) else np.zeros(width) for each in features])


def _captions(corpus: TokenisedCorpus) -> np.ndarray:
    """A number for each document's text, the same for the same text, (documents,)."""
    numbers: dict[bytes, int] = {}
    texts = (corpus.document(i)[0].tobytes() for i in range(len(corpus)))
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts])
