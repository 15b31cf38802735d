"""The digest of a step's code: what changes it, and what does not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fourstage.settings import REPOSITORY
from tasks import code, steps
from tasks.code import closure_digest, module_file

START = '''
"""A step."""

from models.helper import double


def work(x):
    """Do it.

    Args:
        x: A number.
    """
    return double(x)  # twice
'''

HELPER = '''
"""Helps."""

import corpora.words


def double(x):
    return corpora.words.plus(x, x)
'''

WORDS = '''
def plus(a, b):
    """Sum."""
    return a + b
'''

REFORMATTED = """
from models.helper import (
    double,
)



class _Nothing: '''Another docstring.'''
def work(x): return (double(x))
"""

Tree = Callable[..., str]


@pytest.fixture
def digest_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Write a small tree of modules into a folder of its own and digest it from its start."""
    count = 0

    def write(**texts: str) -> str:
        nonlocal count
        count += 1
        root = tmp_path / f"clone {count}"
        files = {"start": START, "helper": HELPER, "words": WORDS, "unused": "a = 1"} | texts
        folders = {"words": "corpora", "unused": "corpora"}
        for name, text in files.items():
            path = root / folders.get(name, "models") / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(code, "REPOSITORY", root)
        return closure_digest(root / "models" / "start.py")

    return write


def test_every_clone_has_the_same_digest(digest_of: Tree):
    assert digest_of() == digest_of()


def test_docstrings_comments_and_formatting_change_nothing(digest_of: Tree):
    without = START.replace('    """Do it.\n\n    Args:\n        x: A number.\n    """\n', "")
    assert "Args" not in without
    assert digest_of(start=without.replace("# twice", "# two times x")) == digest_of()
    bare = REFORMATTED.replace("class _Nothing: '''Another docstring.'''\n", "")
    assert digest_of(start=bare) == digest_of()
    assert digest_of(start=REFORMATTED) != digest_of()  # a class more is code


def test_a_string_that_is_no_docstring_counts(digest_of: Tree):
    assert digest_of(words=WORDS.replace("a + b", "'a' + b")) != digest_of(
        words=WORDS.replace("a + b", "'c' + b")
    )


def test_a_changed_function_two_files_away_changes_the_digest(digest_of: Tree):
    changed = digest_of(words=WORDS.replace("a + b", "a - b"))
    assert changed != digest_of()
    assert changed == digest_of(words=WORDS.replace("a + b", "a  -  b"))


def test_a_file_that_nothing_reaches_changes_nothing(digest_of: Tree):
    assert digest_of(unused="a = 2") == digest_of()


def test_imports_inside_functions_are_followed(digest_of: Tree):
    late = HELPER.replace("\nimport corpora.words\n", "").replace(
        "    return corpora", "    import corpora.words\n\n    return corpora"
    )
    assert "    import corpora.words" in late
    first = digest_of(helper=late)
    assert first != digest_of(helper=late, words=WORDS.replace("a + b", "a - b"))


def test_every_import_of_a_room_is_one_the_digest_can_follow():
    """`from . import x` would be missed, and so would a file imported by a computed name."""
    computed = []
    for room in code.ROOMS:
        for path in (REPOSITORY / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not any(line.lstrip().startswith("from .") for line in text.splitlines()), path
            if "import_module(" in text or "spec_from_file_location(" in text:
                computed.append(str(path.relative_to(REPOSITORY)))
    # They find what a recipe or a source names: those files are parts of their steps.
    assert sorted(computed) == [
        "corpora/readers/__init__.py",
        "corpora/survey.py",  # for a new recipe: no step's
        "models/catalogue.py",
        "models/tokenizers/loading.py",
    ]


def test_a_step_of_every_kind_has_code():
    assert set(steps.CODE) == set(steps.VERSIONS)
    digests = {kind: steps.code_digest(kind) for kind in steps.CODE}
    assert all(len(digest) == 64 for digest in digests.values())


def test_a_reader_is_part_of_the_corpora_it_reads(tmp_path: Path):
    from corpora.readers import reader_files
    from data_contracts.sources import Source

    def names(wanted: str | None, *files: str) -> list[str]:
        source = Source(
            name="notes", language="en", licence="CC0-1.0", format=wanted, files={"all": files}
        )
        return [path.stem for path in reader_files(source, files)]

    assert names(None, "a.jsonl", "b.jsonl.gz", "c.txt") == ["jsonl", "text"]
    assert names("csv", "a.dat") == ["csv"]
    assert {"jsonl", "text", "parquet"} <= set(names(None, "all.zip"))  # its members tell


LOADS = """
import sys
from pathlib import Path
from corpora.preparation import prepare_corpus
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source

folder = Path(sys.argv[1])
source = load_source("notes", [folder])
prepare_corpus(source, take_snapshot(source, [folder]), folder, evaluation_texts=())
for name, module in sorted(sys.modules.items()):
    if name.split(".")[0] in ("corpora", "models", "data_contracts") and "." in name:
        print(module.__file__)
"""


def test_no_module_that_reads_a_corpus_is_missing_from_its_digest(tmp_path: Path):
    from tests.corpora.made_up import documents, write

    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "notes.yaml").write_text(
        "{name: notes, language: en, licence: CC0-1.0, format: jsonl, files: [notes.jsonl]}"
    )
    write(tmp_path / "notes.jsonl", documents(60))
    done = subprocess.run(
        [sys.executable, "-c", LOADS, str(tmp_path)],
        cwd=REPOSITORY,
        env={"PATH": "", "PYTHONPATH": str(REPOSITORY), "FOURSTAGE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = {Path(line).resolve() for line in done.stdout.splitlines()}
    starts = {module_file(name) for name in steps.CODE["corpus"]}
    reader = REPOSITORY / "corpora" / "readers" / "jsonl.py"
    assert reader in loaded
    assert sorted(path.name for path in loaded - code.closure(reader, *starts)) == []
