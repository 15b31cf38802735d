"""The digest of a step's code: what changes it, and what does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fourstage.settings import REPOSITORY
from tasks.store import code, steps
from tasks.store.code import closure, closure_digest, module_file
from tests.flows.own_project import SENSES, Project, recipe, stages

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

from corpora import words


def double(x):
    return words.plus(x, x)
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
def digest_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    """Write a small tree of modules into a folder of its own and digest it from its start."""
    count = 0

    def write(starts: str = "models/start.py", **texts: str) -> str:
        nonlocal count
        count += 1
        root = tmp_path / f"clone {count}"
        files = {"start": START, "helper": HELPER, "words": WORDS, "unused": "a = 1"} | texts
        for name, text in files.items():
            path = root / ("models" if name in ("start", "helper") else "corpora") / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(code, "REPOSITORY", root)
        code._find.cache_clear()
        return closure_digest(root / starts)

    yield write
    code._find.cache_clear()


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


def test_a_literal_by_which_a_part_is_chosen_changes_nothing(digest_of: Tree):
    assert digest_of(start=START + "\nCONTINUES = True\n") == digest_of()
    assert digest_of(start=START + "\nWRITES = True\n") != digest_of()


def test_a_changed_function_two_files_away_changes_the_digest(digest_of: Tree):
    changed = digest_of(words=WORDS.replace("a + b", "a - b"))
    assert changed != digest_of()
    assert changed == digest_of(words=WORDS.replace("a + b", "a  -  b"))


def test_a_file_that_nothing_reaches_changes_nothing(digest_of: Tree):
    assert digest_of(unused="a = 2") == digest_of()


def test_what_no_step_calls_changes_nothing(digest_of: Tree):
    assert digest_of(words=f"{WORDS}\n\ndef minus(a, b):\n    return a - b\n") == digest_of()


def test_what_is_moved_or_renamed_changes_nothing(digest_of: Tree):
    moved = HELPER.replace("words", "sums")
    assert digest_of(helper=moved, sums=WORDS, words="") == digest_of()
    whole = f"{WORDS}\n\ndef double(x):\n    return plus(x, x)\n"
    assert digest_of(helper=whole, words="") == digest_of()  # two files made one
    renamed = HELPER.replace(".plus", ".add")
    assert digest_of(helper=renamed, words=WORDS.replace("plus", "add")) == digest_of()


def test_types_and_the_words_of_errors_change_nothing(digest_of: Tree):
    typed = HELPER.replace("double(x)", "double(x: Number) -> list[Number]").replace(
        "from corpora import words", "from corpora import words\nfrom corpora.unused import Number"
    )
    assert "Number" in typed
    assert digest_of(helper=typed, unused="class Number: ...") == digest_of()
    methods = "class Number:\n    def half(self):\n        return self.x / {}\n"
    assert digest_of(helper=typed, unused=methods.format(2)) != digest_of()  # it may be called
    assert digest_of(helper=typed, unused=methods.format(2)) != digest_of(
        helper=typed, unused=methods.format(3)
    )
    checked = "    if x is None:\n        raise ValueError('{}')\n    return"
    none = HELPER.replace("    return", checked.format("no number"))
    assert digest_of(helper=none) != digest_of()
    assert digest_of(helper=none) == digest_of(helper=none.replace("no number", "a number, please"))


TWO = """
def more(x):
    return x + 1


def less(x):
    return x - 1


def work(x):
    return more(x) if x else less(x)
"""


def test_which_of_two_functions_is_called_where_counts(digest_of: Tree):
    """Both are reached in either case, and by name they are not known."""
    turned = TWO.replace("more(x) if x else less(x)", "less(x) if x else more(x)")
    assert digest_of(start=TWO) != digest_of(start=turned)
    assert digest_of(start=TWO) == digest_of(
        start=TWO.replace("more", "up").replace("less", "down")
    )
    round_about = TWO.replace("return x + 1", "return less(x)").replace("x - 1", "more(x - 1)")
    assert digest_of(start=round_about) != digest_of(start=TWO)


@pytest.mark.parametrize(
    "imports",
    [
        "import corpora.unused",
        "import corpora.unused\n\nREAD = corpora.unused.a",
        "from corpora.unused import *",
        "try:\n    from corpora.unused import a\nexcept ImportError:\n    a = 0\n\nREAD = a",
        "from corpora import unused\n\n\ndef f(unused=unused):\n    return unused.shape",
        "from corpora import unused\n\nREAD = vars(unused)",
        "from corpora import unused\n\nREAD = unused.a",
        "from corpora.unused import a\n\n\ndef other(x=a):\n    return x",
    ],
)
def test_what_is_taken_from_a_module_counts_however_it_is_imported(digest_of: Tree, imports: str):
    start = START.replace("from models.helper", f"{imports}\nfrom models.helper")
    assert digest_of(start=start) != digest_of(start=start, unused="a = 2")


def test_what_a_module_does_as_it_is_imported_counts(digest_of: Tree):
    table = "TABLE = [1, 2]\n" + WORDS.replace("a + b", "a + b + TABLE[0]")
    filled = table + "\nTABLE[0] = 3\n"
    assert digest_of(words=filled) != digest_of(words=table)
    assert digest_of(words=filled) != digest_of(words=filled.replace("= 3", "= 4"))


def test_the_field_of_a_class_counts_and_so_does_its_name(digest_of: Tree):
    """Keras calls layers by their classes."""
    layer = "\n\nclass Layer:\n    size: int = 3\n"
    start = START + layer
    assert digest_of(start=start) != digest_of(start=start.replace("= 3", "= 4"))
    assert digest_of(start=start) != digest_of(start=start.replace(": int", ": float"))
    assert digest_of(start=start) != digest_of(start=start.replace("Layer", "Block"))


def test_imports_inside_functions_are_followed(digest_of: Tree):
    late = HELPER.replace("\nfrom corpora import words\n", "").replace(
        "    return words", "    from corpora import words\n\n    return words"
    )
    assert "    from corpora" in late
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
        "models/evaluation/rivals/__init__.py",  # every rival is in the code of a baseline
        "models/interchange/architecture.py",
    ]


def test_a_step_of_every_kind_has_code():
    assert set(steps.CODE) == set(steps.VERSIONS)
    digests = {kind: steps.code_digest(kind) for kind in steps.CODE}
    assert all(len(digest) == 64 for digest in digests.values())


def test_a_digest_is_kept_in_the_home_until_any_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    computed = []

    def closure_digest(*starts: Path) -> str:
        computed.append(starts)
        return code.closure_digest(*starts)

    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    monkeypatch.setattr(steps, "closure_digest", closure_digest)
    first = steps.code_digest("tokens")
    steps._code_digests.cache_clear()  # as a new process
    assert steps.code_digest("tokens") == first
    assert len(computed) == 1
    assert steps.code_digest("vectors") != first
    assert len(computed) == 2
    monkeypatch.setattr(steps, "project_digest", lambda: "of other code")
    assert steps.code_digest("tokens") == first
    assert len(computed) == 3


def test_a_part_of_a_project_is_in_the_digest_wherever_it_lies(tmp_path: Path):
    part, digests = tmp_path / "own_head.py", []
    for text in ("a = 1", "a = 2"):
        part.write_text(text, encoding="utf-8")
        code._module.cache_clear()  # as a new process
        code.closure_digest.cache_clear()
        digests.append(steps.code_digest("evaluation", (part,)))
    assert digests[0] != digests[1]
    assert steps.code_digest("evaluation") not in digests


def test_the_digest_of_the_project_changes_with_the_text_and_the_name_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(code, "REPOSITORY", tmp_path)
    path = tmp_path / "models" / "layers" / "dense.py"
    path.parent.mkdir(parents=True)
    found = set()
    for text in ("a = 1", "a = 2"):
        path.write_text(text, encoding="utf-8")
        found.add(code.project_digest.__wrapped__())
    path.rename(path.with_name("sparse.py"))
    found.add(code.project_digest.__wrapped__())
    assert len(found) == 3


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


@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [
        ("stage", "tasks.steps.tokens", "documents"),
        ("stage", "models.inputs.captions", "Captions"),
        ("vectors", "tasks.steps.tokens", "documents"),
        ("measurement", "tasks.steps.heldout_losses", "a_character"),
        ("dataset", "fourstage.label_order", "in_order"),
        ("package", "corpora.entities", "read_entities"),
    ],
)
def test_a_step_depends_on_the_code_that_says_what_it_reads(kind: str, module: str, name: str):
    reached = closure(*map(module_file, steps.CODE[kind]))
    assert (module_file(module), name) in reached


# Every step of a recipe, and which of our functions each of them called.
CALLS = """
import json, sys, threading
from pathlib import Path
from fourstage.settings import REPOSITORY, make_private
make_private()  # as the command does: Prefect's first start may take longer than its own limit
from tasks.store import steps
from tasks.store.code import ROOMS, closure, module_file
from tasks.store.artifacts import store
from tasks.planning.plan import plan_recipe
from tasks.run.recipe_run import TASKS

rooms = tuple(f"{REPOSITORY / room}/" for room in ROOMS)
OPTIMISED = 1  # a function's flag; the body of a class, which runs as it is imported, has it not
called, made = set(), {}

def imported(frame):
    # A file that is imported makes its constants, also those that the step does not read.
    while frame and frame.f_code.co_filename.startswith(rooms):
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False

def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & OPTIMISED and not imported(frame):
        called.add(frame.f_code)

for name, step in plan_recipe(sys.argv[1]).steps.items():
    bound = steps.bind(step, made)
    called.clear()
    threading.setprofile(watch)
    sys.setprofile(watch)
    TASKS[step.kind].fn(bound)
    sys.setprofile(None)
    threading.setprofile(None)
    made[name] = store().find(step.kind, bound.key)
    ran = {
        (code.co_filename, code.co_qualname.split(".")[0])
        for code in called
        if code.co_filename.startswith(rooms) and not code.co_qualname.startswith("<")
    }
    starts = map(module_file, steps.CODE[step.kind])
    reached = {(str(place.file), place.name) for place in closure(*starts, *step.parts)}
    lost = [f"{Path(file).stem}.{name}" for file, name in sorted(ran - reached)]
    print(json.dumps([step.kind, name, len(ran), lost]))
"""
# How a contract's report is worded, and its table of answers, decide no verdict.
DECIDES_NOTHING = ("report.", "answer_counts.", "picture_counts.", "verdict.ids_text")


@pytest.mark.slow
def test_a_step_calls_nothing_that_its_digest_leaves_out(tmp_path: Path):
    project = Project(tmp_path / "own")
    general, _, _, finetune = stages(
        general={"objectives": {"masked_lm": {}, "next_sentence": {}}, "budget": {"steps": 2}},
        finetune={"head": {"sequence_classification": {"wide": True}}},
    )
    started = {**general, "starts_from": {"embeddings": "word2vec"}}
    few = {"rows": {"ways": [2], "shots": [1], "episodes": 2}}
    evaluate = {"metrics": ["accuracy"], "probes": {"rows": "accuracy"}, "prototypes": few}
    looks = {"attention": {"texts": ["baba"], "rows": 1}}
    asks = {**general, "objectives": {"causal_lm": {}}}
    shots = {"rows": {"shots": [0, 1], "too_long": "fewer"}}
    triples = {"corpora": {"smoke_triples": 1.0}, "objectives": {"transe": {}}}
    linked = {"stage": "general", **triples, "budget": {"steps": 2}}
    project.source("pairs", files=["data/pairs.tsv"])
    (project.folder / "data" / "pairs.tsv").write_text("baba\tbaden\t1\nbaba\tbako\t2\n")
    project.contexts("contexts")
    vectors = {**linked, "corpora": {"notes": 1.0}, "objectives": {"skip_gram": {}}}
    paths = [
        project.recipe(
            recipe(
                "words",
                family="word2vec",
                tokenizer={"scheme": "word"},
                stages=[vectors],
                evaluate={
                    "word_relations": ["pairs"],
                    "word_in_context": ["contexts"],
                    "polysemy": SENSES,
                    "word_map": ["baba", "baden"],
                },
                promote=None,
            )
        ),
        project.recipe(recipe("two", stages=[started, finetune], evaluate=evaluate | looks)),
        project.recipe(
            recipe("asks", family="gpt2", stages=[asks], evaluate={"few_shot": shots}, promote=None)
        ),
        project.recipe(
            recipe(
                "linked",
                family="transe",
                tokenizer={"scheme": "name"},
                stages=[linked],
                evaluate={"links": ["smoke_triples"]},
                promote=None,
            )
        ),
    ]
    told = [each for path in paths for each in calls(project, path, tmp_path / f"home-{path.stem}")]
    assert {kind for kind, *_ in told} == set(steps.CODE)
    for _, name, ran, lost in told:
        assert ran >= 5, name
        assert [item for item in lost if not item.startswith(DECIDES_NOTHING)] == [], name


def calls(project: Project, path: Path, home: Path) -> list[list]:
    """[kind, name, functions that were called, those that the digest leaves out] of each step."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(path)],
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "FOURSTAGE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
