"""Dialogue: exchanges worked out by hand, and what holds for every one."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.objectives.dialogue import Dialogue
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus
from tests.models.scripted_chance import ScriptedChance

CLS, SEP = 2, 3
CONTEXT = Context(PlainTokenizer(100), sequence_length=12)
DIALOGUE = Dialogue(CONTEXT)


def scripted(*numbers: float) -> ScriptedChance:
    return ScriptedChance([*numbers, *[0.0] * ((1 << 14) - len(numbers))])


def test_twelve_tokens_by_hand():
    # Room for 12 - 4 = 8 tokens of text.
    corpus = MemoryCorpus(
        [
            [[10, 11], [12], [13, 14, 15, 16, 17, 18], [19]],
            [[20, 21, 22], [23, 24]],
        ]
    )
    chance = scripted(
        0.5,  # query, response, query are as they were said: the last one has room for 5 of its 6
        0.0,  # from the second query on, query and response, one of them …
        0.5,  # … the response …
        0.0,  # … is from the other document there is,
        0.0,  # its first utterance; the query loses one token
        0.9,  # the second dialogue is real
    )
    index = DIALOGUE.index(corpus, chance)
    assert index.entries["utterances"].tolist() == [
        [(0, 0, 2), (0, 2, 3), (0, 3, 8)],
        [(0, 3, 8), (1, 0, 3), (-1, 0, 0)],
        [(1, 0, 3), (1, 3, 5), (-1, 0, 0)],
    ]
    assert index.entries["fake"].tolist() == [0, 1, 0]
    assert index.lengths.tolist() == [12, 11, 8]
    assert index.details["fake_exchanges"] == pytest.approx(1 / 3)
    rows = DIALOGUE.segments(corpus, index.entries, chance)
    assert rows["token_ids"].tolist() == [
        [CLS, 10, 11, SEP, 12, SEP, 13, 14, 15, 16, 17, SEP],
        [CLS, 13, 14, 15, 16, 17, SEP, 20, 21, 22, SEP, 0],
        [CLS, 20, 21, 22, SEP, 23, 24, SEP, 0, 0, 0, 0],
    ]
    # Who asks is 0, who answers is 1, [SEP] belongs to what stands before it.
    assert rows["segment_ids"].tolist() == [
        [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0],
    ]
    assert rows["dialogue_labels"].tolist() == [0, 1, 0]


def test_real_ones_stand_in_their_document_and_fake_ones_have_one_stranger():
    corpus = random_corpus(60, 100, seed=1)
    index = DIALOGUE.index(corpus, np.random.default_rng(2))
    documents = index.entries["utterances"]["document"]
    for row, fake in zip(documents, index.entries["fake"], strict=True):
        said = row[row >= 0]
        strangers = min((said != document).sum() for document in said)
        assert strangers == fake, row
    assert 0.4 < index.details["fake_exchanges"] < 0.6
    assert index.lengths.max() <= CONTEXT.sequence_length
    rows = DIALOGUE.segments(corpus, index.entries, np.random.default_rng(3))
    assert (rows["padding_mask"].sum(axis=1) == index.lengths).all()
    assert ((rows["token_ids"] == SEP).sum(axis=1) == (documents >= 0).sum(axis=1)).all()


def test_without_two_utterances_there_is_no_exchange():
    with pytest.raises(ContractViolation, match="sentences: lines"):
        DIALOGUE.index(MemoryCorpus([[[10]], [[11]]]), np.random.default_rng(0))


def test_predictions_are_decoded():
    logits = np.array([[2.0, 1.0], [0.0, 3.0]])
    assert DIALOGUE.decode({"dialogue_logits": logits}) == ["real", "fake"]
