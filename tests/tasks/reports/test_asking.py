"""The row with which a card and a run's last words say that a model is asked."""

import subprocess

import pytest

from tasks.reports.asking import in_python, typed

ROWS = {
    "text": ("label", {"pairs": False}, ["some text"]),
    "pair": ("label", {"pairs": True}, ["some text", "a second text"]),
    "choices": ("choice", {"pairs": False}, ["some text", "one choice", "another"]),
    "picture": ("label", {"pairs": False, "most_regions": 36}, ["some text", "picture.png"]),
    "pair and picture": (
        "label",
        {"pairs": True, "most_regions": 36},
        ["some text", "a second text", "picture.png"],
    ),
}
FIELDS = {
    "text": "some text",
    "pair": {"text": "some text", "text_pair": "a second text"},
    "choices": {"text": "some text", "choices": ["one choice", "another"]},
    "picture": {"text": "some text", "picture": "iVBO"},
    "pair and picture": {"text": "some text", "text_pair": "a second text", "picture": "iVBO"},
}


@pytest.mark.parametrize("kind", ROWS)
def test_a_shell_reads_the_parts_of_a_row_with_tabs_between_them(kind: str):
    answers, package, parts = ROWS[kind]
    command = ["bash", "-c", f"printf %s {typed(answers, package)}"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.split("\t") == parts


@pytest.mark.parametrize("kind", FIELDS)
def test_python_reads_the_fields_of_a_row(kind: str, tmp_path, monkeypatch):
    import base64
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    Path("picture.png").write_bytes(base64.b64decode("iVBO"))
    answers, package, _ = ROWS[kind]
    assert eval(in_python(answers, package), {"base64": base64, "Path": Path}) == FIELDS[kind]
