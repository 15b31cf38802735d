"""Names between blanks: nothing inside a name splits it."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.interchange.tokenizer_files import write_tokenizer
from models.saved_tokenizer import load_tokenizer
from models.tokenizers.name import Name
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from tests.models.tokenizers.texts import CHINESE, ENGLISH, HOSTILE

TEXTS = ["00260881 _has_part 00260622", "/m/027rn _has_part 北京市", "São_Paulo\u00a0is\u3000a-b"]


@pytest.fixture(scope="module")
def names() -> Name:
    return Name.learned(TEXTS, vocabulary_size=100, lowercase=False, minimum_count=1)


def test_the_vocabulary_is_the_frequent_names_as_written(names: Name):
    rest = ["/m/027rn", "00260622", "00260881", "São_Paulo", "a-b", "is", "北京市"]
    assert names.vocabulary == (*SPECIAL_TOKENS, "_has_part", *rest)
    assert Name.learned(TEXTS, vocabulary_size=6, lowercase=False).vocabulary[5:] == ("_has_part",)


@pytest.mark.parametrize("text", TEXTS)
def test_each_name_is_one_token(names: Name, text: str):
    (ids,) = names.encode([text])
    assert [names.vocabulary[i] for i in ids] == text.split()
    assert names.unit_starts(ids).all()


def test_case_zeros_and_parts_make_other_names(names: Name):
    (ids,) = names.encode(["260881 00260881 _HAS_PART _has part São"])
    assert [names.vocabulary[i] for i in ids] == ["[UNK]", "00260881", *["[UNK]"] * 4]


def test_a_name_has_its_place(names: Name):
    ((text, ids, starts, ends),) = names.encode_with_places(["  São_Paulo\u3000ist  00260881 "])
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == [
        *("São_Paulo", "ist", "00260881")
    ]
    assert len(ids) == 3


def test_special_tokens_and_continuations_are_unknown_names():
    texts = ["[MASK] ##x [PAD] [SEP][CLS] [UNK] y"] * 2
    names = Name.learned(texts, vocabulary_size=50, lowercase=False)
    assert names.vocabulary == (*SPECIAL_TOKENS, "[SEP][CLS]", "y")
    (ids,) = names.encode(texts[:1])
    assert ids.tolist() == [names.unknown_id] * 3 + [5] + [names.unknown_id, 6]


def test_what_is_learned_is_what_is_applied(tmp_path):
    """Blanks and characters that are removed are the same on both sides."""
    texts = ENGLISH + CHINESE + HOSTILE
    names = Name.learned(texts, vocabulary_size=5000, lowercase=False, minimum_count=1)
    counts = Name.counted(texts, lowercase=False)
    unknown = np.concatenate(names.encode(texts)) == names.unknown_id
    long = sum(n for name, n in counts.items() if len(name) > 100)
    reserved = [*SPECIAL_TOKENS, "<extra_id_0>"]
    special = sum(text.split().count(token) for text in texts for token in reserved)
    parts = sum(name.startswith("##") for text in texts for name in text.split())
    assert unknown.sum() == long + special + parts
    names.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is Name
    assert [i.tolist() for i in loaded.encode(texts)] == [i.tolist() for i in names.encode(texts)]


def test_the_served_module_equals_encode(names: Name):
    import tensorflow as tf

    served = names.module()(tf.constant([text.encode() for text in [*TEXTS, ""]])).to_list()
    assert served == [ids.tolist() for ids in names.encode([*TEXTS, ""])]


def test_files_for_transformers_are_refused(names: Name, tmp_path):
    with pytest.raises(RecipeError, match="scheme name splits at blanks alone"):
        write_tokenizer(names, tmp_path, length=8, segments=False)
