"""ERNIE 2.0's questions about words: by hand in two languages, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation
from models.features import CAPITALISED, CASED, WORD
from models.objectives.capitalization import Capitalization
from models.objectives.masked_lm import MaskedLM
from models.objectives.token_document import TokenDocument
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, drawn, random_corpus
from tests.models.objectives.twelve_tokens import CONTEXT, corpus, ids, words

NOBODY = np.random.default_rng(0)


def windows_of(tokens: str | list[str], kinds: list[int]) -> dict[str, np.ndarray]:
    """The one window over a text of ten tokens."""
    text = MemoryCorpus([[ids(tokens)]], [kinds])
    objective = Capitalization(CONTEXT)
    entries = objective.index(text, NOBODY).entries
    return objective.examples(objective.segments(text, entries, NOBODY), NOBODY)


def test_capitalization_in_english_by_hand():
    # Unbelievable news from New York City today
    capital, small = WORD | CASED | CAPITALISED, WORD | CASED
    kinds = [capital, 0, 0, small, small, capital, capital, capital, small, 0]
    batch = windows_of("un ##believ ##able news from new york city to ##day", kinds)
    assert words(batch["token_ids"][0]) == (
        "[CLS] un ##believ ##able news from new york city to ##day [SEP]"
    )
    assert batch["capitalization_labels"].tolist() == [[0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]]
    # Once a word, at its first piece.
    assert batch["capitalization_weights"].tolist() == [[0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0]]


def test_capitalization_in_chinese_asks_about_latin_words_only():
    # 我爱 New York 和长城, with a word of two characters; the row is padded
    kinds = [WORD, WORD, WORD | CASED | CAPITALISED, WORD | CASED, WORD, WORD, 0]
    batch = windows_of(["我", "爱", "new", "york", "和", "长", "城"], kinds)
    assert words(batch["token_ids"][0]) == ("[CLS] 我 爱 new york 和 长 城 [SEP] [PAD] [PAD] [PAD]")
    assert batch["capitalization_labels"].tolist() == [[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert batch["capitalization_weights"].tolist() == [[0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0]]


def test_masking_does_not_move_what_is_asked_about_capitals():
    text = random_corpus(5, len(CONTEXT.tokenizer.special_ids) + 20, seed=2)
    context = Context(PlainTokenizer(25), 12)
    objective, masked = Capitalization(context), MaskedLM(context)
    clean = objective.segments(text, objective.index(text, NOBODY).entries, NOBODY)
    alone = objective.examples(clean, NOBODY)
    after = objective.examples(masked.examples(clean, np.random.default_rng(1)), NOBODY)
    assert alone["capitalization_weights"].any()
    for key in ("capitalization_labels", "capitalization_weights"):
        assert np.array_equal(alone[key], after[key])


def test_token_document_in_english_by_hand():
    text = corpus(
        # Fifteen tokens: two stretches of seven and eight.
        ["news from new york", "it rained all", "night long from york", "news all night to"],
        ["it"],  # one token has nothing elsewhere
    )
    objective = TokenDocument(CONTEXT)
    index = objective.index(text, NOBODY)
    assert index.entries.tolist() == [(0, 0, 7), (0, 7, 15)]
    batch = objective.segments(text, index.entries, NOBODY)
    assert [words(row) for row in batch["token_ids"]] == [
        "[CLS] news from new york it rained all [SEP] [PAD] [PAD] [PAD]",
        "[CLS] night long from york news all night to [SEP] [PAD] [PAD]",
    ]
    # "night" comes twice in the second stretch, but nowhere else.
    assert batch["token_document_labels"].tolist() == [
        [0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0],
    ]
    assert batch["token_document_weights"].tolist() == [
        [0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
        [0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
    ]


def test_token_document_in_chinese_by_hand():
    text = corpus(["我爱北京", "天安门"], ["我爱北京天安", "门和长城我爱"])
    objective = TokenDocument(CONTEXT)
    entries = objective.index(text, NOBODY).entries
    assert entries.tolist() == [(0, 0, 3), (0, 3, 7), (1, 0, 6), (1, 6, 12)]
    batch = objective.segments(text, entries[2:], NOBODY)
    assert [words(row).replace(" ", "") for row in batch["token_ids"]] == [
        "[CLS]我爱北京天安[SEP][PAD][PAD][PAD][PAD]",
        "[CLS]门和长城我爱[SEP][PAD][PAD][PAD][PAD]",
    ]
    # 北 京 天 安 stand in the other document too, which is not asked about.
    assert batch["token_document_labels"].tolist() == [
        [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0],
    ]


@given(st.integers(0, 10**6), st.integers(4, 40))
@settings(max_examples=40)
def test_what_holds_for_every_stretch(seed, length):
    text = random_corpus(6, 30, seed)
    objective = TokenDocument(Context(PlainTokenizer(30), length))
    entries = objective.index(text, NOBODY).entries
    for i, tokens in enumerate(text.lengths):
        mine = entries[entries["document"] == i]
        assert len(mine) == (0 if tokens < 2 else max(2, -(-tokens // (length - 2))))
        if len(mine):
            assert mine["start"][0] == 0
            assert mine["end"][-1] == tokens
            assert (mine["start"][1:] == mine["end"][:-1]).all(), "side by side"
            sizes = mine["end"] - mine["start"]
            assert sizes.max() - sizes.min() <= 1
            assert 1 <= sizes.min() <= sizes.max() <= length - 2
    batch = objective.segments(text, entries, NOBODY)
    for row, (document, first, end) in enumerate(entries.tolist()):
        tokens = text.document(document)[0].tolist()
        rest = tokens[:first] + tokens[end:]
        asked = batch["token_document_weights"][row] > 0
        assert batch["token_ids"][row, asked].tolist() == tokens[first:end]
        assert batch["token_document_labels"][row, asked].tolist() == [
            int(token in rest) for token in tokens[first:end]
        ]


def test_documents_of_one_token_are_refused():
    with pytest.raises(ContractViolation, match="two tokens or more"):
        drawn(TokenDocument, MemoryCorpus([[[10]], [[11]]]), 12, NOBODY)
