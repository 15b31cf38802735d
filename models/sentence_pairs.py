"""Base class of objectives that choose pairs of segments and predict their relation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fourstage.errors import ContractViolation
from models.inputs.pairs import Relation, lengths_of, pack, rows_of
from models.inputs.segments import Chance, several_documents
from models.protocols import Batch, Index, TokenisedCorpus
from models.row_classes import RowClasses


class SentencePairs(RowClasses):
    """Both halves of such an objective; subclasses define `relation`.

    Attributes:
        relations: The relation of each of `classes`.
        alone: Whether a single sentence may be segment A, with a partner from elsewhere.
    """

    relations: ClassVar[tuple[Relation, ...]]
    alone: ClassVar[bool] = True

    def relation(self, collected: int, chance: Chance) -> Relation:
        """Draw the relation of the next pair, given the number of collected sentences."""
        raise NotImplementedError

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Pairs of segments; the details are the shares of padding and of each relation.

        Raises:
            ContractViolation: The corpus lacks a second document (for random segments) or a
                document of two sentences.
        """
        usable = np.flatnonzero(corpus.lengths > 0)
        if Relation.RANDOM in self.relations:
            usable = several_documents(corpus, self.name)
        length = self.context.sequence_length
        pairs = pack(corpus, usable, length, rng, self.relation, alone=self.alone)
        if not len(pairs):
            raise ContractViolation(
                f"{self.name}: needs documents of two sentences or more; the corpus has none"
            )
        lengths = lengths_of(pairs)
        shares = np.bincount(pairs["relation"], minlength=len(Relation)) / len(pairs)
        details = {f"{each.name.lower()}_pairs": float(shares[each]) for each in self.relations}
        padding = 1.0 - float(lengths.mean()) / length
        return Index(pairs, lengths, details={"padding": padding, **details})

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The rows of the pairs and their labels."""
        label_of = np.zeros(len(Relation), np.int32)
        label_of[list(self.relations)] = np.arange(len(self.relations))
        rows = rows_of(corpus, entries, self.context)
        return rows | {self.labels: label_of[entries["relation"]]}
