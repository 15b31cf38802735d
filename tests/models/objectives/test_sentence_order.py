"""Sentence order and sentence structure: pairs by hand in two languages, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation
from models.inputs.pairs import Relation
from models.objectives.next_sentence import NextSentence
from models.objectives.sentence_order import SentenceOrder
from models.objectives.sentence_structure import SentenceStructure
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, columns, drawn, random_corpus
from tests.models.objectives.twelve_tokens import CONTEXT, corpus, words
from tests.models.scripted_chance import ScriptedChance


def scripted(numbers: list[float], *cuts: list[int]) -> ScriptedChance:
    return ScriptedChance(numbers + [0.0] * ((1 << 14) - len(numbers)), *cuts)


def test_sentence_order_by_hand():
    text = corpus(
        ["it rained", "all night long", "news from new york", "to ##day"],
        ["我爱北京", "天安门", "和长城"],
    )
    chance = scripted(
        [
            *(0.5, 0.0, 0.7),  # target 9: three sentences; the first, then the rest; in order
            *(0.5, 0.0, 0.3),  # one sentence left: with the one before it once more; swapped
            *(0.5, 0.9, 0.2),  # three Chinese sentences; two, then the last; swapped
        ],
        [0, 0, 0],
        [0, 0, 0],  # the longer side, 我爱北京天安门, loses a character behind
    )
    objective = SentenceOrder(CONTEXT)
    index = objective.index(text, chance)
    rows = objective.segments(text, index.entries, chance)
    assert [words(row) for row in rows["token_ids"]] == [
        "[CLS] it rained [SEP] all night long news from new york [SEP]",
        "[CLS] to ##day [SEP] news from new york [SEP] [PAD] [PAD] [PAD]",
        "[CLS] 和 长 城 [SEP] 我 爱 北 京 天 安 [SEP]",
    ]
    assert rows["sentence_order_labels"].tolist() == [0, 1, 1]
    assert rows["segment_ids"][2].tolist() == [0] * 5 + [1] * 7, "the order, not the segment ids"
    assert "next_sentence_labels" not in rows


def test_sentence_structure_by_hand():
    text = corpus(
        ["it rained", "all night long", "new york"],
        ["我爱北京", "天安门"],
        ["今夜下了", "一场大雨", "你"],
    )
    chance = scripted(
        [
            *(0.5, 0.0, 0.1),  # target 9: three sentences; A = it rained; the next
            *(0.5, 0.0, 0.4),  # two sentences; A = 我爱北京; the previous
            *(0.5, 0.0, 0.8),  # three; A = 今夜下了; random
            *(0.0, 0.4),  # from the first document, its second sentence on
            *(0.5, 0.0, 0.1),  # what is left over: A = 一场大雨, the next
        ],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    )
    objective = SentenceStructure(CONTEXT)
    index = objective.index(text, chance)
    rows = objective.segments(text, index.entries, chance)
    assert [words(row).removesuffix(" [PAD]") for row in rows["token_ids"][:4]][:3] == [
        "[CLS] it rained [SEP] all night long new york [SEP] [PAD]",
        "[CLS] 天 安 门 [SEP] 我 爱 北 京 [SEP] [PAD]",
        "[CLS] 今 夜 下 了 [SEP] all night long new york [SEP]",
    ]
    assert rows["sentence_structure_labels"].tolist() == [0, 1, 2, 0]


corpora = st.builds(
    random_corpus,
    num_documents=st.integers(2, 9),
    vocabulary_size=st.just(100),
    seed=st.integers(0, 10**6),
    sentences=st.sampled_from([(2, 4), (1, 5), (3, 20)]),
    words=st.sampled_from([(1, 4), (2, 30)]),
)


@given(corpora, st.integers(5, 64), st.integers(0, 10**6))
@settings(max_examples=60)
def test_what_holds_for_every_ordered_pair(text, length, seed):
    if all(len(text.document(i)[1]) < 2 for i in range(len(text))):
        return
    index = drawn(SentenceOrder, text, length, np.random.default_rng(seed))
    again = drawn(SentenceOrder, text, length, np.random.default_rng(seed))
    assert (index.entries == again.entries).all()
    doc_a, a, a_end, doc_b, b, b_end, relation = columns(index.entries)
    assert (doc_a == doc_b).all(), "another document would be another question"
    assert ((a < a_end) & (b < b_end)).all()
    assert (a_end - a + b_end - b <= length - 3).all()
    assert np.where(relation == Relation.PREVIOUS, b_end <= a, a_end <= b).all()


@given(corpora, st.integers(0, 10**6))
@settings(max_examples=40)
def test_every_sentence_that_has_a_neighbour_is_in_some_ordered_pair(text, seed):
    if all(len(text.document(i)[1]) < 2 for i in range(len(text))):
        return
    used = [np.zeros(n, int) for n in text.lengths]
    index = drawn(SentenceOrder, text, 4 * text.num_tokens + 3, np.random.default_rng(seed))
    for doc_a, a, a_end, doc_b, b, b_end, _ in columns(index.entries).T.tolist():
        used[doc_a][a:a_end] += 1
        used[doc_b][b:b_end] += 1
    for i, count in enumerate(used):
        assert (count > 0).all() or len(text.document(i)[1]) == 1


@given(corpora, st.integers(5, 64), st.integers(0, 10**6))
@settings(max_examples=60)
def test_what_holds_for_every_pair_of_three_kinds(text, length, seed):
    index = drawn(SentenceStructure, text, length, np.random.default_rng(seed))
    doc_a, a, a_end, doc_b, b, b_end, relation = columns(index.entries)
    assert ((doc_a != doc_b) == (relation == Relation.RANDOM)).all()
    assert (a_end <= b)[relation == Relation.NEXT].all()
    assert (b_end <= a)[relation == Relation.PREVIOUS].all()
    assert (a_end - a + b_end - b <= length - 3).all()


def test_halves_and_thirds():
    text = random_corpus(60, 100, 3, sentences=(400, 600), words=(5, 12))
    rng = np.random.default_rng(0)
    swapped = drawn(SentenceOrder, text, 128, rng).details["previous_pairs"]
    assert swapped == pytest.approx(0.5, abs=0.03)
    details = drawn(SentenceStructure, text, 128, rng).details
    for kind in ("next_pairs", "previous_pairs", "random_pairs"):
        assert details[kind] == pytest.approx(1 / 3, abs=0.05), kind


def test_documents_of_one_sentence_are_refused():
    with pytest.raises(ContractViolation, match="two sentences or more"):
        drawn(SentenceOrder, MemoryCorpus([[[10]], [[11, 12]]]), 12, np.random.default_rng(0))


def test_negatives_are_from_the_whole_corpus_not_from_the_batch():
    # Batches of two and ten thousand documents: a random segment that stood in its batch would
    # teach to compare rows. Issue 4: 95 in 100 or more lie outside.
    from models.inputs.batches import batches

    text = random_corpus(10_000, 100, 1, sentences=(2, 5), words=(3, 8))
    for objective in (NextSentence, SentenceStructure):
        made = objective(Context(PlainTokenizer(100), 32))
        fed = batches({"text": (text, 1.0)}, [made], made.context, 2, seed=3)
        entries = fed.feeds[0].index.entries
        outside = total = 0
        for k in range(2000):
            rows = entries[[example for _, example in fed.members(k)]]
            here, there = rows["first"]["document"], rows["second"]["document"]
            random = there[here != there]
            total += len(random)
            outside += sum(document not in here for document in random)
        assert total > 1000
        assert outside / total >= 0.95
    index = drawn(NextSentence, text, 32, np.random.default_rng(0)).entries
    random = index["second"]["document"][index["relation"] == Relation.RANDOM]
    assert len(np.unique(random)) > 0.5 * len(random), "not a few documents again and again"
