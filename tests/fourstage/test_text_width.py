"""Texts take the room that they take in a terminal."""

from __future__ import annotations

import sys

import pytest

from fourstage.command.output import print_table
from fourstage.text_width import cropped, padded, width, wrapped


def test_a_chinese_character_is_as_wide_as_two_latin_ones():
    assert width("语料 ab") == 7
    assert padded("语料", 6) == "语料  "
    assert cropped("语料库", 6) == "语料库"
    assert cropped("语料库", 5) == "语料…"


def test_lines_are_broken_between_words_and_a_long_word_stays_whole():
    assert wrapped("four words of text", 10) == ["four words", "of text"]
    assert wrapped("see /a/very/long/path there", 10) == ["see", "/a/very/long/path", "there"]


def test_a_table_with_chinese_names_is_in_line(capsys):
    print_table(("step", "status"), [("corpus 维基百科", "made"), ("tokenizer", "made")])
    lines = capsys.readouterr().out.splitlines()
    ends = ("status", "made", "made")
    columns = {width(line.removesuffix(end)) for line, end in zip(lines, ends, strict=True)}
    assert columns == {width("corpus 维基百科") + 2}


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_a_table_keeps_to_the_terminal_and_every_word_whole(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    path = "/a/long/path/to/维基百科"
    print_table(("name", "why"), [("corpus", f"made [bold] from {path} this morning")])
    said = capsys.readouterr().out
    assert set(said.split()) == {
        "name",
        "why",
        "corpus",
        *f"made [bold] from {path} this morning".split(),
    }
    assert max(map(width, said.splitlines())) <= max(columns, len("corpus  ") + width(path))
