"""Image-text match: is a caption that of the picture?

A share of the rows has the picture of another caption. With several candidates the one whose
regions look most like the right picture's is taken, which is a hard negative.

With two captions, the first is always the picture's own. The second is another one of the same
picture or, in a share of the rows, a caption of another picture.

Reference:
    Tan and Bansal 2019, arXiv 1908.07490, 3.1.3; Chen et al. 2020, arXiv 1909.11740, 3.2. Hard
    negatives: Li et al. 2020, arXiv 1908.06066, 3.2. Two captions: Li et al. 2019,
    arXiv 1908.03557, 3.3.
"""

from __future__ import annotations

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.caption_table import CaptionTable
from models.inputs.captions import answers_of, has_pictures, pictures_of
from models.inputs.pairs import cut_to_room, lengths_of, rows_of
from models.inputs.segments import SEGMENT, room_for
from models.inputs.windows import document_index, windows
from models.protocols import Batch, Context, Index, TokenisedCorpus
from models.row_classes import RowClasses

NEEDS = ("pooled_output", "regions")
PROVIDES = ("matched_pairs",)
CHOOSES = 2
PREPARES = False
PAIRS_CAPTIONS = "captions"
ONE = np.dtype([("document", np.int64), ("start", np.int64), ("picture", np.int64)])
TWO = np.dtype(
    [("first", SEGMENT), ("second", SEGMENT), ("picture", np.int64), ("matched", np.int32)]
)


class ImageTextMatch(RowClasses):
    """Both halves of image-text match.

    Args:
        context: The stage's constants.
        negatives: Share of rows with another caption's picture, or with another picture's caption
            as the second one, 0-1.
        candidates: Pictures that are drawn for each of these, from which the most similar one is
            taken: by the distance of the means of their regions' features. 1 for any.
        captions: Captions of a row, 1 or 2. With 2, a caption without another one of its picture
            is no row's first.

    Raises:
        RecipeError: A setting is out of range.
    """

    name = "image_text_match"
    classes = ("mismatched", "matched")

    def __init__(
        self,
        context: Context,
        *,
        negatives: float = 0.5,
        candidates: int = 1,
        captions: int = 1,
    ):
        super().__init__(context)
        if not 0.0 < negatives < 1.0 or candidates < 1 or captions not in (1, 2):
            raise RecipeError(
                "objectives.image_text_match: expected negatives in (0, 1), candidates from 1 and"
                f" captions 1 or 2, got {negatives}, {candidates} and {captions}"
            )
        self.negatives = negatives
        self.candidates = candidates
        self.captions = captions

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Captions with their own picture or another one, or pictures with two captions.

        Raises:
            ContractViolation: The corpus has no pictures, no two captions of different ones or,
                with two captions, no two of the same.
        """
        if not has_pictures(corpus):
            raise ContractViolation(
                "image_text_match: needs captions with pictures; name only datasets with pictures"
                " among the corpora of the stage"
            )
        table = CaptionTable(corpus)
        return (
            self._pairs(corpus, table, rng)
            if self.captions == 2
            else self._ones(corpus, table, rng)
        )

    def _ones(
        self, corpus: TokenisedCorpus, table: CaptionTable, rng: np.random.Generator
    ) -> Index:
        """Captions, each with a picture."""
        found = document_index(corpus, self.context.sequence_length)
        entries = np.empty(len(found), ONE)
        for field in ("document", "start"):
            entries[field] = found.entries[field]
        entries["picture"] = entries["document"]
        wanted = np.flatnonzero(rng.random(len(found)) < self.negatives)
        entries["picture"][wanted] = table.another_picture(
            entries["document"][wanted], self.candidates, rng
        )
        share = float((entries["picture"] != entries["document"]).mean())
        return Index(entries, found.lengths, details={**found.details, "mismatched_pairs": share})

    def _pairs(
        self, corpus: TokenisedCorpus, table: CaptionTable, rng: np.random.Generator
    ) -> Index:
        """Pictures, each with a caption of its own and a second one."""
        length = self.context.sequence_length
        room = room_for(length, 3, least=2)
        first = table.with_another()
        if not len(first):
            raise ContractViolation(
                f"image_text_match: with two captions a row needs a picture that has several; each"
                f" of the {len(table.documents)} captions is the only one of its picture; name a"
                " dataset with several captions of a picture, or leave out captions: 2"
            )
        second = table.another_of_picture(first, rng)
        other = rng.random(len(first)) < self.negatives
        second[other] = table.another_caption(first[other], self.candidates, rng)
        entries = np.zeros(len(first), TWO)
        for field, documents in (("first", first), ("second", second)):
            entries[field]["document"] = documents
            entries[field]["end"] = corpus.lengths[documents]
        entries["picture"], entries["matched"] = first, ~other
        entries = cut_to_room(entries, room, rng)
        lengths = lengths_of(entries)
        details = {
            "padding": 1.0 - float(lengths.mean()) / length,
            "mismatched_pairs": float(other.mean()),
            "captions_alone": len(table.documents) - len(first),
        }
        return Index(entries, lengths, details=details)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The captions, the pictures, 1 where both fit, and answers about one's own, if asked."""
        seen = pictures_of(corpus, entries["picture"], self.context)
        if self.captions == 2:
            return rows_of(corpus, entries, self.context) | seen | {self.labels: entries["matched"]}
        rows = windows(corpus, entries[["document", "start"]], self.context, joined=False)
        matched = (entries["picture"] == entries["document"]).astype(np.int32)
        rows |= seen | {self.labels: matched}
        for key, labels in answers_of(corpus, entries["document"], self.context).items():
            rows[key] = np.where(matched > 0, labels, np.int32(-1))
        return rows
