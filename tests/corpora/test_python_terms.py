"""Names and terms of documentation: by hand, and the file that comes with Fourstage."""

from __future__ import annotations

from corpora.gazetteer_file import KINDS, read_gazetteer
from corpora.python_terms import FILE, entities, phrases


def test_an_entity_is_a_documented_name_of_several_words_that_is_written_out():
    documentation = {
        "lib:lib.io.Reader": "Reader.read_all reads; see lib.io.Reader and open_file.",
        "lib:lib.io.Reader.read_all~2": "As read_all of numpy.ndarray, or `Reader.read_all`.",
        "lib:lib.io._close": "Nobody calls _close.",
    }
    assert entities(documentation) == {"lib.io.Reader", "Reader.read_all", "read_all"}


def test_a_phrase_stands_together_more_often_than_chance():
    # Of 534 words: "mean squared" and "squared error" score (16 - 4) · 534 / (16 · 16) = 25.0,
    # "error grows" (6 - 4) · 534 / (16 · 6) = 11.1, "these words" (120 - 4) · 534 / 120² = 4.3.
    texts = ["Mean squared\nerror."] * 10 + ["mean squared error grows"] * 6
    texts += ["these words stand apart"] * 120
    texts += ["of of of of of of"] * 1  # shorter than three letters: no words
    assert phrases(texts) == {"mean squared", "squared error", "mean squared error"}
    assert phrases(texts, ["error"]) == {"mean squared"}


def test_punctuation_ends_a_phrase():
    rare = ["mean, squared"] * 16 + ["these words stand apart"] * 120
    assert phrases(rare) == set()


def test_the_file_that_comes_with_fourstage_has_ten_thousand_names_of_both_kinds():
    names = read_gazetteer(FILE)
    assert len(set(names)) == len(names) >= 10_000
    assert {kind for _, kind in names} == set(KINDS)
    lines = FILE.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(lines)
    assert FILE.stat().st_size < 500_000
    assert ("train_test_split", "entity") in names
    assert ("decision boundary", "phrase") in names
