"""Sentence reordering: a paragraph's pieces are shuffled, the network predicts their order.

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.2.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.segments import Chance, empty_rows, room_for, sentence_ends_of, write_row
from models.protocols import Batch, Context, Index, TokenisedCorpus
from models.row_classes import RowClasses

NEEDS = ("pooled_output",)
PROVIDES = ()
CHOOSES = 2
PREPARES = False
MOST = 5  # pieces; 1! + 2! + … + 5! = 153 classes


def orders(most: int) -> tuple[tuple[int, ...], ...]:
    """All orders of 1 to `most` pieces: sorted by number of pieces, then lexicographically.

    An order lists the pieces as they appear in the row: (1, 0) is the second piece, then the
    first. Up to three pieces have 1! + 2! + 3! = 9 orders.
    """
    return tuple(order for count in range(1, most + 1) for order in permutations(range(count)))


class SentenceReordering(RowClasses):
    """Both halves of sentence reordering; it chooses the segments of its stage.

    Args:
        context: The stage's constants.
        max_pieces: Largest number of pieces per paragraph (m in the paper), 2-5. The number of
            pieces and their order are drawn uniformly.

    Differs from the paper:
        The paper does not say where paragraphs are cut or how pieces are separated. Here paragraphs
        are cut between sentences, and each piece ends with [SEP].

    Raises:
        RecipeError: The number is out of range.
    """

    name = "sentence_reordering"

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
        """Paragraphs of as many sentences as fit in a row, cut into pieces and shuffled.

        The number of pieces (at most that of the sentences), the cuts and the order are uniform. A
        sentence longer than a row is cut at its end. An entry always has `max_pieces` + 1 borders;
        with fewer pieces, the last border is repeated.

        Raises:
            ContractViolation: No paragraph has two sentences.
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
        """Rows of [CLS] and the shuffled pieces, each followed by [SEP]; labels are orders."""
        batch = empty_rows(len(entries), self.context)
        for row, (document, borders, order) in enumerate(entries.tolist()):
            pieces = [(document, borders[i], borders[i + 1]) for i in self.classes[order]]
            write_row(batch, row, corpus, pieces, self.context)
        return batch | {self.labels: entries["order"].astype(np.int32)}
