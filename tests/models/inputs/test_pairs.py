"""Pairs packed from sentences: how often each sentence of a document is read for its own sake."""

from __future__ import annotations

import numpy as np
import pytest

from models.inputs.pairs import Relation, pack
from models.inputs.segments import Chance
from tests.models.memory_corpus import MemoryCorpus

SENTENCES, LENGTH = 10, 6
# A token is a sentence, so that no pair is too long and a place is the number of a sentence.
CORPUS = MemoryCorpus([[[5]] * SENTENCES] * 100)


@pytest.mark.parametrize("elsewhere", [Relation.RANDOM, Relation.APART])
def test_the_end_of_a_document_is_read_once_whatever_the_pair_is(elsewhere: Relation):
    def relation(collected: int, chance: Chance) -> Relation:
        return elsewhere if chance.uniform() < 0.7 else Relation.NEXT

    rng = np.random.default_rng(0)
    pairs = pack(CORPUS, np.arange(100), LENGTH, rng, relation, alone=False)
    read = np.zeros((100, SENTENCES), int)
    for first, second, how in pairs.tolist():
        for document, start, end in [first] + [second] * (how == Relation.NEXT):
            read[document, start:end] += 1
    assert (read[:, :-2] == 1).all()
    assert (read[:, -1] == 1).all()
    # It is joined to the last one again where that was left alone and its pair is no other text's.
    assert set(np.unique(read[:, -2])) == {1, 2}
    assert (read[:, -2] == 2).mean() < 0.5
