"""Next sentence prediction: pairs worked out by hand, and what holds for every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation
from models.inputs.pairs import Relation
from models.objectives.next_sentence import NextSentence
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, columns, drawn, random_corpus
from tests.models.scripted_chance import ScriptedChance

CLS, SEP = 2, 3
CONTEXT = Context(PlainTokenizer(100), sequence_length=12)


def scripted(numbers: list[float], cuts: tuple[list[int], list[int]]) -> ScriptedChance:
    return ScriptedChance(numbers + [0.0] * ((1 << 14) - len(numbers)), *cuts)


def test_twelve_tokens_by_hand():
    # Room for 12 - 3 = 9 tokens of text.
    corpus = MemoryCorpus(
        [
            [[10, 11, 12], [13, 14, 15, 16], [17, 18, 19]],  # 10 tokens in three sentences
            [[20, 21]],  # one sentence: never a true successor
        ]
    )
    chance = scripted(
        [
            0.5,  # not short: target 9; all three sentences are needed to reach it
            0.0,  # A ends behind the first sentence
            0.7,  # a true pair: A = 10-12, B = 13-19, one token too many
            0.5,  # second document: target 9, a single sentence, so B is random
            0.0,  # from the other document there is,
            0.4,  # its second sentence (of three) on: 13 … 19 reaches 9 - 2 = 7 tokens
        ],
        ([0, 0], [1, 0]),  # of the first pair's B, one token is cut in front
    )
    objective = NextSentence(CONTEXT)
    index = objective.index(corpus, chance)
    assert index.entries.tolist() == [
        ((0, 0, 3), (0, 4, 10), Relation.NEXT),
        ((1, 0, 2), (0, 3, 10), Relation.RANDOM),
    ]
    rows = objective.segments(corpus, index.entries, chance)
    assert rows["token_ids"].tolist() == [
        [CLS, 10, 11, 12, SEP, 14, 15, 16, 17, 18, 19, SEP],
        [CLS, 20, 21, SEP, 13, 14, 15, 16, 17, 18, 19, SEP],
    ]
    assert rows["segment_ids"].tolist() == [[0] * 5 + [1] * 7, [0] * 4 + [1] * 8]
    assert rows["padding_mask"].tolist() == [[1] * 12, [1] * 12]
    assert rows["next_sentence_labels"].tolist() == [0, 1]
    assert index.details["random_pairs"] == 0.5


def test_sentences_left_over_by_a_random_pair_are_used_again():
    corpus = MemoryCorpus([[[10] * 4, [11] * 4], [[20] * 9]])
    chance = scripted(
        [
            0.5,  # target 9
            0.0,  # A = the first sentence
            0.2,  # a random pair
            0.0,  # from the other document
            0.0,  # its first sentence
            0.5,  # again in the first document, from its second sentence: one only, so random
            0.0,
            0.0,
            0.5,  # second document, random
            0.0,
            0.0,
        ],
        ([0, 0, 4], [4, 4, 4]),
    )
    entries = drawn(NextSentence, corpus, 12, chance).entries
    assert entries["first"]["document"].tolist() == [0, 0, 1]
    assert entries["second"]["document"].tolist() == [1, 1, 0]
    assert (entries["relation"] == Relation.RANDOM).all()
    assert entries[1]["first"].tolist() == (0, 4, 8)


corpora = st.builds(
    random_corpus,
    num_documents=st.integers(2, 9),
    vocabulary_size=st.just(100),
    seed=st.integers(0, 10**6),
    sentences=st.sampled_from([(1, 2), (1, 5), (3, 20)]),
    words=st.sampled_from([(1, 4), (2, 30)]),
)


@given(corpora, st.integers(5, 64), st.integers(0, 10**6))
@settings(max_examples=60)
def test_what_holds_for_every_pair(corpus, length, seed):
    index = drawn(NextSentence, corpus, length, np.random.default_rng(seed))
    again = drawn(NextSentence, corpus, length, np.random.default_rng(seed))
    assert (index.entries == again.entries).all()
    doc_a, a, a_end, doc_b, b, b_end, is_random = columns(index.entries)
    assert ((a < a_end) & (b < b_end)).all(), "neither segment is empty"
    assert ((a >= 0) & (a_end <= corpus.lengths[doc_a])).all()
    assert ((b >= 0) & (b_end <= corpus.lengths[doc_b])).all()
    assert (a_end - a + b_end - b <= length - 3).all()
    assert ((doc_a != doc_b) == (is_random == 1)).all(), "random means another document"
    assert (b >= a_end)[is_random == 0].all(), "a true B comes after its A"
    assert (index.lengths == a_end - a + b_end - b + 3).all()

    rows = NextSentence(Context(PlainTokenizer(100), length)).segments(
        corpus, index.entries, np.random.default_rng(0)
    )
    assert (rows["padding_mask"].sum(1) == index.lengths).all()
    assert ((rows["token_ids"] > 0) == (rows["padding_mask"] > 0)).all()
    assert ((rows["token_ids"] == SEP).sum(1) == 2).all()


@given(corpora, st.integers(0, 10**6))
@settings(max_examples=30)
def test_where_nothing_is_cut_every_token_is_used_once(corpus, seed):
    index = drawn(NextSentence, corpus, 4 * corpus.num_tokens + 3, np.random.default_rng(seed))
    used = [np.zeros(n, int) for n in corpus.lengths]
    for doc_a, a, a_end, doc_b, b, b_end, is_random in columns(index.entries).T.tolist():
        used[doc_a][a:a_end] += 1
        if not is_random:
            used[doc_b][b:b_end] += 1
    assert all((count == 1).all() for count in used)


def test_half_of_the_pairs_are_random_and_a_tenth_is_short():
    corpus = random_corpus(60, 100, 3, sentences=(400, 600), words=(5, 12))
    index = drawn(NextSentence, corpus, 128, np.random.default_rng(0))
    random_share = index.details["random_pairs"]
    assert 0.5 < random_share < 0.6  # above a half: a document's last sentence has no successor
    short = (index.lengths < 100).mean()  # of 126 targets, 98 are that short: 0.1 · 0.78
    assert 0.06 < short < 0.11


def test_a_corpus_of_one_document_is_refused_with_the_number():
    with pytest.raises(ContractViolation, match=r"two documents or more.* has 1 with text"):
        drawn(NextSentence, MemoryCorpus([[[10, 11]], []]), 12, np.random.default_rng(0))
