"""What `nearest` says before any model is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.command.exits import exit_code_of
from fourstage.command.parser import parse


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
