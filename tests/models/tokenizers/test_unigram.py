"""Unigram: the most probable cut worked out by hand, places, units, what is normalised."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.cleaning import clean
from fourstage.errors import ContractViolation
from models.character_rules import compiled_canonical_rules
from models.sentencepiece_model import PieceType, Unigram
from models.tokenizers.unigram import SPECIAL_TOKENS, UnigramTokenizer, learn
from tests.models.tokenizers.texts import CHINESE, ENGLISH

# ▁low-est: -1.0 - 2.0; ▁lowe-s-t: -2.5 - 3.0 - 3.0; ▁lo-west has no "west".
PIECES = {"▁": -4.0, "▁low": -1.0, "▁lowe": -2.5, "est": -2.0, "e": -3.0, "s": -3.0, "t": -3.0}
PIECES |= {"l": -5.0, "o": -5.0, "w": -5.0, "1": -4.0, "我": -4.0, "们": -4.0, "我们": -5.0}


def by_hand() -> UnigramTokenizer:
    kinds = [
        PieceType.UNKNOWN if token == "<unk>" else PieceType.CONTROL for token in SPECIAL_TOKENS
    ]
    return UnigramTokenizer(
        Unigram(
            (*SPECIAL_TOKENS, *PIECES),
            (*[0.0] * 5, *PIECES.values()),
            (*kinds, *[PieceType.NORMAL] * len(PIECES)),
            compiled_canonical_rules(),
        )
    )


@pytest.fixture(scope="module")
def tokenizer() -> UnigramTokenizer:
    return learn((ENGLISH + CHINESE) * 3, vocabulary_size=900)


def pieces(tokenizer: UnigramTokenizer, text: str) -> list[str]:
    return [tokenizer.vocabulary[i] for i in tokenizer.encode([text])[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lowest", ["▁low", "est"]),
        ("lowes", ["▁lowe", "s"]),  # -5.5; ▁low-e-s is -7.0
        ("我们", ["▁", "我们"]),  # -5.0 before 我-们, -8.0
        ("  low \t\n low ", ["▁low", "▁low"]),
        ("low\u200b \u00adlow\ufeff", ["▁low", "▁low"]),
        ("xyz low", ["▁", "<unk>", "▁low"]),  # unknown characters in a row are one token
        ("", []),
        (" \u3000 ", []),
    ],
)
def test_a_text_is_cut_as_by_hand(text, expected):
    assert pieces(by_hand(), text) == expected


def test_the_learned_tokens_begin_with_the_special_ones_and_keep_to_their_number(tokenizer):
    assert tokenizer.vocabulary[:5] == SPECIAL_TOKENS
    assert (tokenizer.pad_id, tokenizer.sep_id, tokenizer.unknown_id) == (0, 1, 2)
    assert tokenizer.special_ids == (0, 1, 2, 3, 4)
    assert 600 < tokenizer.vocabulary_size <= 900


@given(st.text(st.sampled_from([*"".join(ENGLISH + CHINESE), "\u0301", "\t"]), max_size=60))
def test_decoding_gives_a_known_text_back_but_for_blanks(tokenizer, text):
    text = clean(text).text
    (ids,) = tokenizer.encode([text])
    if tokenizer.unknown_id not in ids:
        assert tokenizer.decode(ids) == " ".join(unicodedata.normalize("NFC", text).split())


def test_places_are_where_the_tokens_stand_in_the_normalised_text():
    ((text, ids, starts, ends),) = by_hand().encode_with_places(["lowest  xy low 我们"])
    assert text == " lowest xy low 我们"
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == [
        *("low", "est", "", "xy", "low", "", "我们")
    ]
    assert ids.tolist() == by_hand().encode(["lowest xy low 我们"])[0].tolist()


def test_words_digits_and_chinese_characters_are_units():
    made = by_hand()
    (ids,) = made.encode(["lowest low1t 我们我"])
    found = [made.vocabulary[i] for i in ids]
    assert found == ["▁low", "est", "▁low", "1", "t", "▁", "我们", "我"]
    assert made.unit_starts(ids).tolist() == [True, False, *[True] * 4, False, True]
    assert made.unit_starts(ids[:0]).tolist() == []


def test_padding_is_not_decoded():
    made = by_hand()
    (ids,) = made.encode(["low lowest"])
    assert made.decode([*ids, made.pad_id, made.pad_id]) == "low lowest"
    assert made.decode([made.cls_id, *ids, made.sep_id]) == "<s> low lowest</s>"


def test_a_role_without_its_token_is_refused_and_one_not_named_is_stood_in_for():
    model = by_hand().model
    with pytest.raises(ContractViolation, match="the vocabulary lacks <cls>"):
        UnigramTokenizer(model, {"cls": "<cls>"})
    made = UnigramTokenizer(model, {"pad": "<pad>"})
    assert (made.cls_id, made.sep_id, made.mask_id) == (1, 1, made.unknown_id)


def test_accents_are_dropped_where_the_network_was_trained_so():
    plain, folding = (UnigramTokenizer(by_hand().model, folds_accents=f) for f in (False, True))
    assert pieces(plain, "lówést") == ["▁", "l", "<unk>", "w", "<unk>", "s", "t"]
    assert pieces(folding, "lówést") == ["▁low", "est"]
    assert plain.digest != folding.digest


def test_a_new_seed_which_clears_tensorflows_kernels_leaves_it_as_it_is(tokenizer):
    import keras

    before = tokenizer.encode(["the cat sat"])[0].tolist()
    keras.utils.set_random_seed(3)
    assert tokenizer.encode(["the cat sat"])[0].tolist() == before
