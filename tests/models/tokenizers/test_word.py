"""Whole words: its vocabulary, and what is unknown; the rest is in `test_schemes`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from fourstage.errors import ContractViolation
from models.interchange.tokenizer_files import write_tokenizer
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from tests.models.tokenizers.texts import CHINESE, ENGLISH, HOSTILE

TEXTS = ["The cat, the dog. The DOG!", "the cats 花草 草", "a" * 101 + " " + "a" * 101]


def learned(texts: list[str], **settings: int) -> Word:
    return Word.learned(texts, **{"vocabulary_size": 100, "lowercase": True, **settings})


def pieces(tokenizer: Word, text: str) -> list[str]:
    return [tokenizer.vocabulary[i] for i in tokenizer.encode([text])[0]]


def test_the_vocabulary_is_the_frequent_words_in_order():
    # Twice each: dog and 草. The word of 101 bytes would be [UNK] to the graph in any case.
    assert learned(TEXTS).vocabulary == (*SPECIAL_TOKENS, "the", "dog", "草")
    assert learned(TEXTS, vocabulary_size=7).vocabulary == (*SPECIAL_TOKENS, "the", "dog")
    every = learned(TEXTS, minimum_count=1).vocabulary
    assert every == (*SPECIAL_TOKENS, "the", "dog", "草", "!", ",", ".", "cat", "cats", "花")
    assert learned(TEXTS, minimum_count=4).vocabulary == (*SPECIAL_TOKENS, "the")


def test_a_word_is_one_token_and_no_part_of_one_counts():
    words = learned(TEXTS)
    expected = ["the", "dog", *["[UNK]"] * 3, "草", "[UNK]"]
    assert pieces(words, "The dog dogs thedog cat草##the") == [*expected, "[UNK]", "the"]
    (ids,) = words.encode(["the dogs 花草"])
    assert words.unit_starts(ids).tolist() == [True] * 4
    assert words.decode(ids.tolist()) == "the [UNK] [UNK] 草"


def test_an_unknown_word_has_its_place():
    ((text, _, starts, ends),) = learned(TEXTS).encode_with_places(["Thé  unheard dog花."])
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == [
        *("the", "unheard", "dog", "花", ".")
    ]


def test_the_files_for_transformers_give_the_same_ids(tmp_path: Path) -> None:
    words = learned((ENGLISH + CHINESE) * 3, vocabulary_size=900)
    write_tokenizer(words, tmp_path, length=64, segments=True)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = [*ENGLISH, *CHINESE, *(text for text in HOSTILE if "[MASK]" not in text), *TEXTS]
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert [ids.tolist() for ids in words.encode(texts)] == expected


def test_an_empty_vocabulary_is_refused_with_the_numbers():
    with pytest.raises(ContractViolation, match="none of 10 words occurs 6 times"):
        learned(TEXTS, minimum_count=6)
    with pytest.raises(ContractViolation, match="needs text; none came"):
        learned([" "])
    with pytest.raises(ContractViolation, match="vocabulary_size 7 has no room for a word beside"):
        learned(TEXTS, vocabulary_size=7, sentinels=2)
