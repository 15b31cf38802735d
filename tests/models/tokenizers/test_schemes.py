"""What holds for every scheme: Rust's ids, the same each time, safe against special strings."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, normalizers, pre_tokenizers

from fourstage.errors import ContractViolation, UnknownNameError
from models.catalogue import names
from models.interchange import unigram_files
from models.saved_tokenizer import learn_tokenizer, load_tokenizer
from tests.models.tokenizers.texts import CHINESE, ENGLISH, HOSTILE

LEARNED = {
    "lowercase": ("wordpiece", True),
    "cased": ("wordpiece", False),
    "byte_bpe": ("byte_bpe", False),
    "words": ("word", True),
    "word_bpe": ("word_bpe", True),
    "cased_word_bpe": ("word_bpe", False),
    "unigram": ("unigram", False),
}

LEAST = {"name": 50}  # tokens that are learned here; a Chinese sentence is one name


@pytest.fixture(scope="module", params=LEARNED)
def tokenizer(request) -> Any:
    scheme, lowercase = LEARNED[request.param]
    texts = (ENGLISH + CHINESE) * 3
    return learn_tokenizer(scheme, texts, vocabulary_size=900, lowercase=lowercase)


def rust(tokenizer: Any, folder) -> Any:
    """The Rust package's tokenizer of the same pieces."""
    tokenizer.save(folder)
    if type(tokenizer).__name__ == "ByteBPE":
        files = [str(folder / name) for name in ("vocab.json", "merges.txt")]
        return ByteLevelBPETokenizer(*files, unicode_normalizer="nfc")
    if type(tokenizer).__name__ == "UnigramTokenizer":
        names = dict.fromkeys(tokenizer.special_ids)
        hidden = [chr(0xE000 + i) if i in names else p for i, p in enumerate(tokenizer.vocabulary)]
        model = replace(tokenizer.model, pieces=tuple(hidden))
        return unigram_files.rust(type(tokenizer)(model, {}))
    vocabulary = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    model: Any = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    if type(tokenizer).__name__ == "WordBPE":
        merges = list(tokenizer.merges)
        model = models.BPE(vocabulary, merges, unk_token="<unk>", end_of_word_suffix="</w>")
    reference: Any = Tokenizer(model)
    reference.normalizer = normalizers.BertNormalizer(lowercase=tokenizer.lowercase)
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return reference


@pytest.mark.parametrize(
    "texts", [ENGLISH, CHINESE, HOSTILE], ids=["english", "chinese", "hostile"]
)
def test_ids_equal_those_of_the_rust_tokenizer(tokenizer, texts, tmp_path):
    expected = [encoding.ids for encoding in rust(tokenizer, tmp_path).encode_batch(texts)]
    assert [ids.tolist() for ids in tokenizer.encode(texts)] == expected
    assert all(ids.dtype == np.int32 for ids in tokenizer.encode(texts))


@pytest.mark.parametrize("scheme", names("tokenizers"))
def test_learning_gives_the_same_in_another_process(scheme):
    program = (
        "import sys; from models.saved_tokenizer import learn_tokenizer;"
        "from tests.models.tokenizers.texts import ENGLISH, CHINESE;"
        f"made = learn_tokenizer({scheme!r}, (ENGLISH + CHINESE) * 3, vocabulary_size=900,"
        " lowercase=False);"
        "print(made.digest, made.vocabulary_size)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            text=True,
            env={
                "RAYON_NUM_THREADS": threads,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": ".",
                "PATH": "/usr/bin:/bin",
            },
        ).stdout
        for threads, seed in (("1", "0"), ("2", "1"), ("4", "2"))
    }
    assert len(outputs) == 1
    assert int(next(iter(outputs)).split()[1]) > LEAST.get(scheme, 150)


def test_special_strings_in_text_never_give_special_ids(tokenizer):
    text = "a [MASK] b [SEP][CLS] [PAD] [mask] <s>x</s> <pad><mask><unk> <|endoftext|> end"
    (ids,) = tokenizer.encode([text])
    special = set(tokenizer.special_ids) - {tokenizer.unknown_id}
    assert not special & set(ids.tolist())
    roles = ("pad", "unknown", "cls", "sep", "mask")
    assert {getattr(tokenizer, f"{role}_id") for role in roles} == set(tokenizer.special_ids)


def test_the_served_module_equals_encode_and_survives_bytes_that_are_not_utf8(tokenizer):
    import tensorflow as tf

    module = tokenizer.module()
    texts = ENGLISH + CHINESE + HOSTILE
    served = module(tf.constant([t.encode() for t in texts])).to_list()
    assert served == [ids.tolist() for ids in tokenizer.encode(texts)]
    assert module(tf.constant([b"ab\xff\xfe cd", b"\xe4\xb8"])).nrows() == 2
    assert module(tf.constant([], tf.string)).nrows() == 0


def test_saved_and_loaded_it_is_the_same_and_a_changed_file_is_noticed(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is type(tokenizer)
    assert loaded.vocabulary == tokenizer.vocabulary
    assert loaded.digest == tokenizer.digest
    assert [i.tolist() for i in loaded.encode(HOSTILE)] == [
        i.tolist() for i in tokenizer.encode(HOSTILE)
    ]
    path = next(path for path in tmp_path.iterdir() if path.name.startswith(("vocab.", "spiece.")))
    if path.suffix == ".model":
        path.write_bytes(path.read_bytes().replace("▁".encode(), "▂".encode(), 1))
    else:
        text = path.read_text("utf-8")
        lines = text + "more\n"
        path.write_text(
            lines if path.suffix == ".txt" else json.dumps(json.loads(text) | {"x y": 900}), "utf-8"
        )
    with pytest.raises(ContractViolation, match=path.name):
        load_tokenizer(tmp_path)


def test_settings_of_no_scheme_are_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"scheme": "word_piece"}', "utf-8")
    with pytest.raises(UnknownNameError, match="did you mean 'wordpiece'"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {}}', "utf-8")
    with pytest.raises(ContractViolation, match="expected a tokenizer's settings"):
        load_tokenizer(tmp_path)


def test_order_of_results_does_not_depend_on_threads(tokenizer):
    texts = [f"number {i} believers" for i in range(30_000)]
    many = tokenizer.encode(texts)
    assert len(many) == len(texts)
    for i in (0, 17, 15_000, 29_999):
        assert many[i].tolist() == tokenizer.encode([texts[i]])[0].tolist()


def test_places_rise_and_lie_in_the_text(tokenizer):
    texts = ENGLISH + CHINESE + HOSTILE
    placed = tokenizer.encode_with_places(texts)
    assert [ids.tolist() for _, ids, _, _ in placed] == [
        i.tolist() for i in tokenizer.encode(texts)
    ]
    for text, ids, starts, ends in placed:
        assert len(ids) == len(starts) == len(ends)
        assert (np.diff(starts) >= 0).all()
        assert (starts <= ends).all()
        assert (ends <= len(text)).all()


def test_no_text_and_too_small_a_vocabulary_are_refused():
    for scheme in names("tokenizers"):
        with pytest.raises(ContractViolation, match="needs text"):
            learn_tokenizer(scheme, ["  "], vocabulary_size=300, lowercase=False)
        with pytest.raises(ContractViolation, match="vocabulary_size 5"):
            learn_tokenizer(scheme, ["ab"], vocabulary_size=5, lowercase=False)


@pytest.mark.parametrize("scheme", names("tokenizers"))
def test_sentinels_are_on_top_and_no_text_gives_them(scheme, tmp_path):
    asked = {"vocabulary_size": 900, "lowercase": False}
    plain = learn_tokenizer(scheme, ENGLISH * 3, **asked)
    made = learn_tokenizer(scheme, ENGLISH * 3, **asked, sentinels=5)
    made.save(tmp_path)
    size = made.vocabulary_size
    for each in (made, load_tokenizer(tmp_path)):
        assert each.sentinel_ids == tuple(range(size - 1, size - 6, -1))
        assert set(each.sentinel_ids) <= set(each.special_ids)
        assert each.decode(each.sentinel_ids[:1]) == "<extra_id_0>"
    assert size <= 900
    assert plain.sentinel_ids == ()
    texts = ["a <extra_id_0> b", "<extra_id_4>", *ENGLISH]
    assert not {*np.concatenate(made.encode(texts)).tolist()} & {*made.sentinel_ids}
