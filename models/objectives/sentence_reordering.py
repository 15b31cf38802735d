"""Sentence reordering: a paragraph in a few pieces, shuffled; in which order are they?

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.2.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.segments import Chance, empty_rows, room_for, sentence_ends_of, write_row
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus
from models.row_classes import RowClasses

NEEDS = ("pooled_output",)
PROVIDES = ()
CHOOSES = 2
PREPARES = False
MOST = 5  # pieces: 153 classes


def orders(most: int) -> tuple[tuple[int, ...], ...]:
    """Every order of 1 … `most` pieces: few pieces first, and those of as many as in a dictionary.

    An order says which piece of the paragraph stands at each place of the row. There are
    Σ k! of them: 1 + 2 + 6 = 9 for three pieces.
    """
    return tuple(order for count in range(1, most + 1) for order in permutations(range(count)))


class SentenceReordering(RowClasses):
    """Both halves of sentence reordering; it chooses the segments of its stage.

    Args:
        context: What is fixed for the stage.
        max_pieces: Most pieces of a paragraph (m in the paper), 2-5. Each number of them is as
            likely as another, and so is each order of as many.

    Differs from the paper:
        It does not say where a paragraph is cut nor what parts the pieces; here paragraphs are cut
        between sentences and each piece ends with [SEP].

    Raises:
        RecipeError: If the number is out of range.
    """

    name = "sentence_reordering"
    needs = frozenset(Capability(name) for name in NEEDS)

    def __init__(self, context: Context, *, max_pieces: int = 3):
        if not 2 <= max_pieces <= MOST:
            raise RecipeError(
                "objectives.sentence_reordering.max_pieces: expected a whole number from 2 to "
                f"{MOST}, got {max_pieces}"
            )
        super().__init__(context)
        self.max_pieces = max_pieces
        self.classes = orders(max_pieces)

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Paragraphs: sentences that fill a row, cut into pieces and shuffled.

        Each number of pieces that a paragraph has sentences for is as likely as another, and so
        are the places where it is cut and the orders. A sentence longer than a row is cut at the
        end. A paragraph of fewer pieces than the most has its last border several times.

        Raises:
            ContractViolation: If no paragraph has two sentences.
        """
        most, orders = self.max_pieces, self.classes
        room = room_for(self.context.sequence_length, 1 + most, least=most)
        counts = np.array([len(order) for order in orders])
        first_order = np.searchsorted(counts, np.arange(1, most + 2)).tolist()
        chance = Chance(rng)
        entries: list[tuple[int, list[int], int]] = []
        several = False
        for document in np.flatnonzero(corpus.lengths > 0).tolist():
            ends = sentence_ends_of(corpus, document)
            first = 0
            while first < len(ends) - 1:
                last = int(np.searchsorted(ends, ends[first] + room, side="right")) - 1
                last = max(last, first + 1)
                several = several or last > first + 1
                count = 1 + chance.below(min(most, last - first))
                cuts = chance.sample(last - first - 1, count - 1)
                end = min(int(ends[last]), int(ends[first]) + room)
                inner = [int(ends[first + 1 + cut]) for cut in cuts]
                borders = [int(ends[first]), *inner, *[end] * (most - count + 1)]
                order = first_order[count - 1]
                order += chance.below(first_order[count] - order)
                entries.append((document, borders, order))
                first = last
        if not several:
            raise ContractViolation(
                "sentence_reordering: nowhere in the corpus do two sentences in a row fit in "
                f"{room} tokens, so that they could change places; lengthen the sequences or add "
                "text"
            )
        borders = ("borders", np.int64, (most + 1,))
        made = np.array(entries, [("document", np.int64), borders, ("order", np.int64)])
        borders = made["borders"]
        lengths = borders[:, -1] - borders[:, 0] + 1 + counts[made["order"]]
        padding = 1.0 - float(lengths.mean()) / self.context.sequence_length
        whole = float((made["order"] == 0).mean())
        return Index(made, lengths, details={"padding": padding, "in_one_piece": whole})

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """[CLS] and the pieces in their new order, a [SEP] behind each; the order's number."""
        batch = empty_rows(len(entries), self.context)
        for row, (document, borders, order) in enumerate(entries.tolist()):
            pieces = [(document, borders[i], borders[i + 1]) for i in self.classes[order]]
            write_row(batch, row, corpus, pieces, self.context)
        return batch | {self.labels: entries["order"].astype(np.int32)}
