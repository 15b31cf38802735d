"""What `nearest` says before any model is loaded, and of the words of a stage's folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from corpora.words import segmenter
from fourstage.command.exits import exit_code_of
from fourstage.command.parser import parse
from models.stage_format import CONFIG, NETWORK, TOKENIZER
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from models.training.stage import Budget, Phase
from models.training.trainer import train
from models.vectors.lookup import word_table
from tests.models.memory_corpus import MemoryCorpus
from tests.models.training.memory import pretraining


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("a text", "--column", "body", "--count", "0"), "--count: expected 1 or more, got 0"),
        ((" ", "--column", "body"), "expected a text, got an empty one"),
        (("a text", "--column", "boby"), "did you mean 'body'?"),
    ],
)
def test_what_cannot_be_searched_is_wrong_usage(tmp_path: Path, capsys, words, expected):
    file = tmp_path / "rows.csv"
    file.write_text("body\ngood\n", "utf-8")
    asked = ("nearest", "m@champion", *words, "--input", str(file))
    assert exit_code_of(lambda: (o := parse(asked)).handler(o)) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("a text", "--column", "body"), "--input with --column for texts, or neither for words"),
        (
            ("a text", "--input", "f.csv", "--column", "x", "--analogy", "a", "b"),
            "applies to words",
        ),
        (("a", "--analogy", "b"), "expected 2 arguments"),
    ],
)
def test_words_and_texts_are_not_asked_at_once(capsys, words, expected):
    def asked() -> int:
        options = parse(("nearest", "m@champion", *words))
        return options.handler(options)

    assert exit_code_of(asked) == 2
    assert expected in capsys.readouterr().err


WORDS = ["king", "queen", "man", "woman", "apple"]
VECTORS = [[1, 0, 0], [1, 1, 0], [0.1, 0, 0.1], [0.1, 1, 0.1], [0, 0, 1.0]]


def a_stage(folder: Path, family: str = "word2vec") -> Path:
    table = np.array([[0.0] * 3] * 5 + VECTORS, np.float32)
    Word([*SPECIAL_TOKENS, *WORDS], lowercase=True).save(folder / TOKENIZER)
    save_file({"token/embeddings": table}, folder / NETWORK)
    config = {"family": family, "network": {"hidden_dim": 3}}
    (folder / CONFIG).write_text(json.dumps(config), "utf-8")
    return folder


def test_the_nearest_words_of_a_stage_and_of_an_analogy(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    stage = str(a_stage(tmp_path / "stage"))

    def told(*words: str) -> tuple[int, str, str]:
        options = parse(("nearest", stage, *words))
        code = exit_code_of(lambda: options.handler(options))
        said = capsys.readouterr()
        return code, said.out, said.err

    assert told("King", "--count", "2")[1].split() == "word cosine queen 0.7071 man 0.7071".split()
    found = told("woman", "--analogy", "man", "king", "--count", "1")[1]
    assert found.split()[2] == "queen"
    code, out, err = told("quen")
    assert (code, out) == (2, "")
    assert "'quen' has no vector" in err
    assert "not among the 5 words of the vocabulary; did you mean 'queen'?" in err


def test_a_word_is_found_as_the_tokenizer_writes_it(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    stage = str(a_stage(tmp_path / "stage"))
    for asked in ("Quéen", "queen"):
        options = parse(("nearest", stage, asked, "--count", "9"))
        assert exit_code_of(lambda options=options: options.handler(options)) == 0
        found = capsys.readouterr().out.split()[2::2]
        assert sorted(found) == ["apple", "king", "man", "woman"]


LIKED = ["这家酒店非常漂亮，我很喜欢", "那家酒店特别漂亮，我们喜欢", "酒店早餐丰富，大家喜欢"]
BROKEN = ["手机电池质量太差，已经退货", "电池坏了，要求手机退货", "质量不好，手机只能退货"]


def test_a_trained_stage_of_chinese_words_has_neighbours(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    texts = [text for pair in zip(LIKED, BROKEN, strict=True) for text in pair] * 40
    words = Word.learned(texts, vocabulary_size=99, lowercase=True, cut=segmenter("rjieba"))
    assert {"酒店", "喜欢", "手机", "退货"} <= {*words.vocabulary}
    stage = tmp_path / "stage"
    job = pretraining(
        family="fasttext",
        network={"hidden_dim": 8, "buckets": 50},
        tokenizer=words,
        phases=[Phase(32)],
        objectives={"skip_gram": {"window": 5, "subsampling": 0.0}},
        budget=Budget("epochs", 30),
        corpora={"reviews": (MemoryCorpus([[ids.tolist()] for ids in words.encode(texts)]), 1.0)},
        heldout={},
        checkpoint_every=None,
    )
    train(job, stage)
    words.save(stage / TOKENIZER)

    for word, nearer, farther in (("手机", "退货", "喜欢"), ("酒店", "喜欢", "退货")):
        options = parse(("nearest", str(stage), word, "--count", "99"))
        assert exit_code_of(lambda options=options: options.handler(options)) == 0
        found = capsys.readouterr().out.split()[2::2]
        assert {*found} == {*words.vocabulary[len(SPECIAL_TOKENS) :]} - {word}
        assert found.index(nearer) < found.index(farther)
    # Of a word of no vocabulary as it stands; what rjieba would cut it into does not matter.
    table = word_table(stage, words, ["酒店手机", "酒店 手机"])
    assert list(table.more) == ["酒店手机"]


def test_a_model_without_one_vector_a_word_is_refused(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    stage = a_stage(tmp_path / "stage", "bert")
    options = parse(("nearest", str(stage), "king"))
    assert exit_code_of(lambda: options.handler(options)) == 2
    assert "expected a model with one vector a word" in capsys.readouterr().err
