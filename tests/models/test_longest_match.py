"""Chinese words by longest match: against a search by hand, in the pipeline and in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.words import segmenter
from fourstage.errors import RecipeError
from models.interchange.tokenizer_files import write_tokenizer
from models.saved_tokenizer import load_tokenizer
from models.served.pieces import is_cjk
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from tests.models.tokenizers.texts import CHINESE, ENGLISH, HOSTILE

WORDS = ["中国", "国人", "人民", "人", "中国人民银行", "银行", "cat", "恤", "!", "𠮷野家"]


@cache
def tokenizer() -> Word:
    return Word([*SPECIAL_TOKENS, *WORDS], lowercase=True, longest_match=True)


@cache
def module() -> Any:
    return tokenizer().module()


def pieces(text: str) -> list[str]:
    return [tokenizer().vocabulary[i] for i in tokenizer().encode([text])[0]]


def by_search(text: str, tokens: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Tokens with their places, of those that each CJK character is one of.

    At each CJK character all words are tried, the longest first, on characters side by side.
    """
    known = {word for word in WORDS if all(map(is_cjk, word))}
    found, place = [], 0
    for name, start, end in tokens:
        if start < place:
            continue  # within a word that was found
        if is_cjk(text[start]):
            end = max((start + len(w) for w in known if text.startswith(w, start)), default=end)
            name = text[start:end] if text[start:end] in known else "[UNK]"
        found.append((name, start, end))
        place = end
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("中国人民", ["中国", "人民"]),
        ("中国人民银行", ["中国人民银行"]),
        ("中国人民银 行", ["中国", "人民", "[UNK]", "[UNK]"]),  # no words across a blank
        ("中国国人人", ["中国", "国人", "人"]),
        ("国中国", ["[UNK]", "中国"]),  # begins no word, though it is in some
        ("花草国人", ["[UNK]", "[UNK]", "国人"]),  # in no word: one unknown token a character
        ("Cats cat中国cat T恤!", ["[UNK]", "cat", "中国", "cat", "[UNK]", "恤", "!"]),
        ("中\u200b国[MASK]", ["中国", "[UNK]", "[UNK]", "[UNK]"]),
        ("𠮷野家𠮷", ["𠮷野家", "[UNK]"]),
        ("国人" * 200, ["国人"] * 200),  # longer than a word may be
    ],
)
def test_words_are_the_longest_that_begin_at_each_place(text: str, expected: list[str]):
    assert pieces(text) == expected


MIXED = st.text(st.sampled_from([*"中国人民银行花𠮷野家恤", *"caT !.", *"é😀ひ\u200b\u3000\t"]))


@settings(deadline=None, max_examples=25)
@given(st.lists(MIXED, max_size=30))
def test_tokens_are_those_of_a_search_and_those_of_the_graph(texts: list[str]):
    import tensorflow as tf

    each = Word(tokenizer().vocabulary, lowercase=True)  # each CJK character by itself
    placed = tokenizer().encode_with_places(texts)
    for (text, *found), (same, *alone) in zip(placed, each.encode_with_places(texts), strict=True):
        assert text == same
        assert named(*found) == by_search(text, named(*alone))
    expected = [ids.tolist() for _, ids, _, _ in placed]
    assert [ids.tolist() for ids in tokenizer().encode(texts)] == expected
    raw = tf.constant([text.encode() for text in texts], tf.string)
    assert module()(raw).to_list() == expected
    there = module().placed(raw)
    assert there["lengths"].numpy().tolist() == [len(ids) for ids in expected]
    assert there["starts"].numpy().tolist() == [
        len(text[:start].encode()) for text, _, starts, _ in placed for start in starts
    ]


def named(ids: Any, starts: Any, ends: Any) -> list[tuple[str, int, int]]:
    return [
        (tokenizer().vocabulary[i], int(start), int(end))
        for i, start, end in zip(ids, starts, ends, strict=True)
    ]


def test_saved_in_a_graph_and_as_files_it_is_the_same(tmp_path: Path):
    import tensorflow as tf

    learned = Word.learned(
        CHINESE * 2, vocabulary_size=900, lowercase=True, cut=segmenter("rjieba")
    )
    texts = [*CHINESE, *ENGLISH, *HOSTILE, ""]
    expected = [ids.tolist() for ids in learned.encode(texts)]
    learned.save(tmp_path / "files")
    loaded: Any = load_tokenizer(tmp_path / "files")
    assert loaded.longest_match
    assert loaded.digest == learned.digest
    assert learned.digest != Word(learned.vocabulary, lowercase=True).digest
    assert [ids.tolist() for ids in loaded.encode(texts)] == expected
    tf.saved_model.save(learned.module(), str(tmp_path / "graph"))
    served: Any = tf.saved_model.load(str(tmp_path / "graph"))
    assert served(tf.constant([text.encode() for text in texts])).to_list() == expected


def test_the_vocabulary_has_the_words_of_the_segmenter_and_no_other():
    texts = ["他来到北京清华大学。北京 Café T恤", "北京清华大学!"]
    learned = Word.learned(
        texts, vocabulary_size=99, lowercase=True, minimum_count=1, cut=segmenter("rjieba")
    )
    twice, once = ["北京", "清华大学"], ["!", "cafe", "t", "。", "他", "恤", "来到"]
    assert learned.vocabulary == (*SPECIAL_TOKENS, *sorted(twice), *sorted(once))
    text = "他来到清华大学"
    assert learned.decode(learned.encode([text])[0].tolist()) == text


def test_text_without_chinese_words_is_read_as_without_a_segmenter():
    asked = {"vocabulary_size": 99, "lowercase": True}
    learned = Word.learned(ENGLISH * 2, **asked, cut=segmenter("rjieba"))
    plain = Word.learned(ENGLISH * 2, **asked)
    assert learned.vocabulary == plain.vocabulary
    texts = [*ENGLISH, *CHINESE, *HOSTILE]
    assert [ids.tolist() for ids in learned.encode(texts)] == [
        ids.tolist() for ids in plain.encode(texts)
    ]


def test_files_that_make_each_character_a_word_are_refused(tmp_path: Path):
    with pytest.raises(RecipeError, match="Chinese words by longest match"):
        write_tokenizer(tokenizer(), tmp_path, length=64, segments=True)
