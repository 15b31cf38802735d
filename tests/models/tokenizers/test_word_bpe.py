"""BPE within words by hand: ends of words, places, unknown characters, merges that are refused."""

from __future__ import annotations

import pytest

from fourstage.errors import ContractViolation
from models.tokenizers.word_bpe import WordBPE, learn

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
LETTERS = ("l", "o", "w", "e", "r", "w</w>", "r</w>", ".</w>", "中</w>")
MERGES = [("l", "o"), ("lo", "w</w>"), ("e", "r</w>"), ("lo", "w")]
JOINED = ("lo", "low</w>", "er</w>", "low")


def made(lowercase: bool = True) -> WordBPE:
    return WordBPE((*SPECIAL, *LETTERS, *JOINED), MERGES, lowercase=lowercase)


def pieces(tokenizer: WordBPE, text: str) -> list[str]:
    (ids,) = tokenizer.encode([text])
    return [tokenizer.vocabulary[i] for i in ids]


def test_the_end_of_a_word_is_part_of_its_last_character():
    assert pieces(made(), "Low lower.") == ["low</w>", "low", "er</w>", ".</w>"]
    assert pieces(made(lowercase=False), "Low") == ["<unk>", "o", "w</w>"]


def test_each_character_that_is_no_token_is_one_unknown():
    # l, x and o end no word here; 中 is always one by itself.
    assert pieces(made(), "loxx ol 中w") == [
        "lo",
        "<unk>",
        "<unk>",
        "o",
        "<unk>",
        "中</w>",
        "w</w>",
    ]


def test_text_comes_back_with_its_words_and_units_are_words():
    ours = made()
    (ids,) = ours.encode(["Low\u00a0lower 中low."])
    assert ours.decode(ids) == "low lower 中 low ."
    assert ours.unit_starts(ids).tolist() == [True, True, False, True, True, True]
    assert ours.special_ids == (0, 1, 2, 3, 4)


def test_places_are_those_of_the_text_without_more_spaces():
    text, ids, starts, ends = made().encode_with_places(["Low  low\u00e9r, 中low"])[0]
    assert text == "low lower, 中low"
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == [
        *("low", "low", "er", ",", "中", "low")
    ]
    assert made().with_case(["Low low"]) == ["Low low"]
    assert len(ids) == 6


@pytest.mark.parametrize(
    ("merges", "said"),
    [
        ([("l", "x")], r"merge 1 \(l x\): expected two pieces"),
        ([("l", "o"), ("l", "o")], r"merge 2 \(l o\): expected two pieces"),
        ([("o", "l")], "gives ol, which is no piece"),
    ],
)
def test_merges_that_cannot_be_are_refused(merges, said):
    with pytest.raises(ContractViolation, match=said):
        WordBPE((*SPECIAL, *LETTERS, *JOINED), merges)


def test_what_is_learned_is_frequent_and_a_token_at_the_end_of_words():
    ours = learn(["the lowest of the low, the lower"] * 5, vocabulary_size=60)
    assert {"the</w>", "low</w>", "lowe"} <= {*ours.vocabulary}
    assert ours.vocabulary[:5] == SPECIAL
    with pytest.raises(ContractViolation, match="special tokens and characters; increase it"):
        learn(["some letters"], vocabulary_size=8)
