"""The n-grams of documents, written out by hand, whatever tokens begin and end them."""

from __future__ import annotations

import numpy as np
import pytest

from models.counting.ngrams import texts
from models.counting.packing import Packing
from tests.models.memory_corpus import MemoryCorpus

DOCUMENTS = [[5, 6, 5], [], [7], [6, 6]]
CORPUS = MemoryCorpus([[document] for document in DOCUMENTS])


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize(("begin", "end"), [(2, 3), (3, 3)])
def test_every_token_and_end_of_a_document_ends_one_n_gram(
    begin: int, end: int, order: int, size: int
):
    packing = Packing(order, 10)
    expected = []
    for document in filter(None, DOCUMENTS):
        whole = [begin] * (order - 1) + [*document, end]
        expected += [whole[i : i + order] for i in range(len(document) + 1)]
    read = list(texts(CORPUS, order, begin, end, size))
    keys = np.concatenate([text.ngrams(packing) for text in read])
    assert keys.tolist() == [int(packing.ngrams(np.array(each))[0]) for each in expected]
    assert len(keys) == sum(int(text.lengths.sum()) for text in read)
