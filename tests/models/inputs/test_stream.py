"""A corpus as one stream, and rows of it that follow one another."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.inputs.stream import Stream, Streams
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus

CLS, SEP = 2, 3
TEXT = MemoryCorpus([[[10, 11], [12]], [[]], [[20]]], [[1, 0, 1], [], [1]])
WHOLE = [CLS, 10, 11, 12, SEP, CLS, 20, SEP]
STARTS = [0, 1, 0, 1, 0, 0, 1, 0]


def test_every_document_with_tokens_stands_between_its_special_tokens():
    stream = Stream(TEXT, CLS, SEP)
    assert len(stream) == len(WHOLE)
    for start in range(len(WHOLE) + 1):
        for count in range(1, len(WHOLE) + 2):
            ids, starts = stream.read(start, count)
            assert ids.tolist() == WHOLE[start : start + count]
            assert starts.tolist() == STARTS[start : start + count]


@pytest.mark.parametrize("sep", [SEP, CLS])
def test_where_documents_begin_is_known_even_if_one_token_begins_and_ends_them(sep):
    stream = Stream(TEXT, CLS, sep)
    begins = [True, False, False, False, False, True, False, False]
    for start in range(len(WHOLE) + 1):
        for count in range(1, len(WHOLE) + 2):
            assert stream.begins(start, count).tolist() == begins[start : start + count]


def test_rows_follow_one_another_and_each_token_but_the_first_follows_one():
    corpus = random_corpus(20, 100, seed=1)
    stream = Stream(corpus, CLS, SEP)
    index = stream.rows(13)
    read = [stream.read(start, 13)[0] for start in index.entries.tolist()]
    assert len(read[-1]) == index.lengths[-1] + 1  # the last token is predicted and not read
    read[-1] = read[-1][:-1]
    assert np.concatenate(read).tolist() == stream.read(0, len(stream) - 1)[0].tolist()
    assert (index.lengths[:-1] == 13).all()


def test_the_stream_of_a_corpus_is_made_once():
    streams = Streams(Context(PlainTokenizer(), 8))
    assert streams.of(TEXT) is streams.of(TEXT)
    assert len(streams.of(random_corpus(2, 50))) != len(streams.of(TEXT))


def test_a_corpus_without_tokens_is_refused():
    with pytest.raises(ContractViolation, match="no tokens"):
        Stream(MemoryCorpus([[[]]], [[]]), CLS, SEP)
