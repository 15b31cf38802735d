"""What `nearest` says before any model is loaded, and of the words of a stage's folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fourstage.command.exits import exit_code_of
from fourstage.command.parser import parse
from models.stage_format import CONFIG, NETWORK, TOKENIZER
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import SPECIAL_TOKENS


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


def test_a_model_without_one_vector_a_word_is_refused(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    stage = a_stage(tmp_path / "stage", "bert")
    options = parse(("nearest", str(stage), "king"))
    assert exit_code_of(lambda: options.handler(options)) == 2
    assert "expected a model with one vector a word" in capsys.readouterr().err
