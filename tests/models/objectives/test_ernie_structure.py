"""ERNIE 2.0's questions about structure: by hand in two languages, and their laws."""

from __future__ import annotations

from itertools import chain
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.pairs import Relation
from models.objectives.sentence_distance import SentenceDistance
from models.objectives.sentence_reordering import SentenceReordering, orders
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, columns, drawn, random_corpus
from tests.models.objectives.twelve_tokens import CONTEXT, corpus, words
from tests.models.scripted_chance import ScriptedChance


def scripted(numbers: list[float], *cuts: list[int]) -> ScriptedChance:
    return ScriptedChance(numbers + [0.0] * ((1 << 14) - len(numbers)), *cuts)


def test_sentence_distance_by_hand():
    text = corpus(
        ["it rained", "all night long", "news from", "new york", "city"],
        ["我爱北京", "天安门", "和长城", "今夜下了"],
    )
    chance = scripted(
        [
            *(0.5, 0.0, 0.5),  # target 9, four sentences; A = it rained; same document:
            0.4,  # three places are not beside A; the second, "new york", up to the end
            *(0.5, 0.4, 0.1),  # again four; A = all night long, news from; the next
            *(0.5, 0.0, 0.9),  # three Chinese sentences; A = 我爱北京; another document:
            *(0.0, 0.9),  # the first one, its last sentence
            *(0.5, 0.0, 0.5),  # A = 天安门; same document, with one place that is not beside A:
            0.6,  # 今夜下了, as 我爱北京 and 和长城 are
            *(0.5, 0.9, 0.5),  # A = 和长城; 我爱北京 alone is neither A nor beside it
            0.9,
            *(0.5, 0.0, 0.0),  # a sentence alone has no next: another document,
            *(0.0, 0.0),  # from its beginning
        ],
        [0] * 6,
        [0] * 6,
    )
    objective = SentenceDistance(CONTEXT)
    index = objective.index(text, chance)
    rows = objective.segments(text, index.entries, chance)
    assert [words(row).replace(" [PAD]", "") for row in rows["token_ids"]] == [
        "[CLS] it rained [SEP] new york city [SEP]",
        "[CLS] all night long news from [SEP] new york city [SEP]",
        "[CLS] 我 爱 北 京 [SEP] city [SEP]",
        "[CLS] 天 安 门 [SEP] 今 夜 下 了 [SEP]",
        "[CLS] 和 长 城 [SEP] 我 爱 北 京 [SEP]",
        "[CLS] 今 夜 下 了 [SEP] it rained all night long [SEP]",
    ]
    assert rows["sentence_distance_labels"].tolist() == [1, 0, 2, 1, 1, 2]
    assert rows["segment_ids"][0].tolist() == [0] * 4 + [1] * 4 + [0] * 4


def test_nine_orders_of_up_to_three_pieces():
    assert list(orders(3)) == [
        (0,),
        *((0, 1), (1, 0)),
        *((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)),
    ]
    for most in range(2, 6):
        assert len(orders(most)) == sum(factorial(k) for k in range(1, most + 1))
    assert len(SentenceReordering(CONTEXT).classes) == 9


def test_sentence_reordering_by_hand():
    # Room for twelve tokens less [CLS] and three [SEP]: eight.
    text = corpus(
        ["it rained", "all night long", "news from", "new york city"],
        ["我爱北京", "天安", "门", "和", "长城"],
        ["今夜下了一场大雨你"],
    )
    chance = scripted(
        [
            0.7,  # three sentences, seven tokens: cut into three pieces (two of two places)
            *(0.0, 0.0),  # of {0, 1} both, whatever is drawn
            0.7,  # the fifth of six orders: 2 0 1
            0.9,  # the last sentence is alone: one piece
            0.0,  # one order
            0.5,  # four Chinese sentences, eight tokens: two pieces
            0.4,  # of three places to cut the second
            0.6,  # the second of two orders
            *(0.2, 0.0),  # 长城 alone
            *(0.2, 0.0),  # nine characters: one is cut off
        ]
    )
    objective = SentenceReordering(CONTEXT)
    index = objective.index(text, chance)
    assert index.entries["document"].tolist() == [0, 0, 1, 1, 2]
    assert index.entries["borders"].tolist() == [
        [0, 2, 5, 7],
        [7, 10, 10, 10],
        [0, 6, 8, 8],
        [8, 10, 10, 10],
        [0, 8, 8, 8],
    ]
    assert index.entries["order"].tolist() == [7, 0, 2, 0, 0]
    rows = objective.segments(text, index.entries, chance)
    assert [words(row).replace(" [PAD]", "") for row in rows["token_ids"]] == [
        "[CLS] news from [SEP] it rained [SEP] all night long [SEP]",
        "[CLS] new york city [SEP]",
        "[CLS] 门 和 [SEP] 我 爱 北 京 天 安 [SEP]",
        "[CLS] 长 城 [SEP]",
        "[CLS] 今 夜 下 了 一 场 大 雨 [SEP]",
    ]
    assert index.lengths.tolist() == rows["padding_mask"].sum(axis=1).tolist()
    assert rows["sentence_reordering_labels"].tolist() == [7, 0, 2, 0, 0]
    assert not rows["segment_ids"].any()
    logits = np.eye(9)[rows["sentence_reordering_labels"]]
    assert objective.decode({"sentence_reordering_logits": logits})[0] == (2, 0, 1)


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
def test_what_holds_for_every_pair_at_a_distance(text, length, seed):
    index = drawn(SentenceDistance, text, length, np.random.default_rng(seed))
    again = drawn(SentenceDistance, text, length, np.random.default_rng(seed))
    assert (index.entries == again.entries).all()
    for doc_a, a, a_end, doc_b, b, b_end, relation in columns(index.entries).T.tolist():
        assert a < a_end
        assert b < b_end
        assert a_end - a + b_end - b <= length - 3
        assert (doc_a != doc_b) == (relation == Relation.RANDOM)
        if relation == Relation.RANDOM:
            continue
        assert a_end <= b or b_end <= a, "no token in both"
        ends = np.cumsum(text.document(doc_a)[1])
        first, last = (np.searchsorted(ends, at, side="right") for at in (a, a_end - 1))
        other, other_last = (np.searchsorted(ends, at, side="right") for at in (b, b_end - 1))
        if relation == Relation.APART:
            assert other > last + 1 or other_last < first - 1, "a sentence or more between them"
        else:
            assert other >= last + 1


@given(corpora, st.integers(7, 64), st.integers(2, 4), st.integers(0, 10**6))
@settings(max_examples=60)
def test_what_holds_for_every_paragraph(text, length, most, seed):
    objective = SentenceReordering(Context(PlainTokenizer(100), length + most), max_pieces=most)
    try:
        index = objective.index(text, np.random.default_rng(seed))
    except ContractViolation:
        return
    again = objective.index(text, np.random.default_rng(seed))
    assert (index.entries == again.entries).all()
    rows = objective.segments(text, index.entries, np.random.default_rng(0))
    assert (index.lengths == rows["padding_mask"].sum(axis=1)).all()
    assert (index.lengths <= length + most).all()
    for ids, (document, (start, *ends), order) in zip(
        rows["token_ids"].tolist(), index.entries.tolist(), strict=True
    ):
        order = objective.classes[order]
        tokens, sentences, _ = text.document(document)
        borders = {0, *np.cumsum(sentences).tolist()}
        assert start in borders
        assert set(ends[: len(order) - 1]) <= borders, "cut between sentences"
        shown = [[]]
        for token in ids[1:]:
            if token == 3:
                shown.append([])
            elif token:
                shown[-1].append(token)
        assert all(shown[:-1])
        assert not shown[-1]
        assert len(shown) - 1 == len(order)
        straight = [shown[order.index(place)] for place in range(len(order))]
        assert list(chain(*straight)) == tokens[start : ends[-1]].tolist(), "put back"


def test_shares():
    text = random_corpus(60, 100, 3, sentences=(400, 600), words=(5, 12))
    rng = np.random.default_rng(0)
    details = drawn(SentenceDistance, text, 128, rng).details
    for kind in ("next_pairs", "apart_pairs", "random_pairs"):
        assert details[kind] == pytest.approx(1 / 3, abs=0.05), kind
    labels = drawn(SentenceReordering, text, 128, rng).entries["order"]
    shares = np.bincount(labels, minlength=9) / len(labels)
    expected = [1 / 3] + [1 / 6] * 2 + [1 / 18] * 6
    assert shares == pytest.approx(expected, abs=0.03)


def test_what_cannot_be_reordered_is_refused():
    lonely = MemoryCorpus([[[10] * 30, [11] * 30], [[12]]])
    with pytest.raises(ContractViolation, match="nowhere in the corpus do two sentences"):
        drawn(SentenceReordering, lonely, 20, np.random.default_rng(0))
    for number in (1, 6):
        with pytest.raises(RecipeError, match="from 2 to 5"):
            SentenceReordering(CONTEXT, max_pieces=number)
