"""The row with which a card and a run's last words say that a model is asked."""

import base64
import json
import subprocess
import sys
from pathlib import Path

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
def test_python_reads_the_fields_of_a_row(kind: str, tmp_path: Path):
    (tmp_path / "picture.png").write_bytes(base64.b64decode("iVBO"))
    answers, package, _ = ROWS[kind]
    lines = ["import base64, json", "from pathlib import Path"]
    lines.append(f"print(json.dumps({in_python(answers, package)}))")
    command = [sys.executable, "-c", "\n".join(lines)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout
    assert json.loads(said) == FIELDS[kind]
