"""Recipes that are wrong or hostile (S01–S06): refused before any data is read.

The corpus that these recipes name has no file: whatever looked for its data would say so, and end
with another exit code.
"""

from __future__ import annotations

import re

import pytest
import yaml

from tests.faults.desk import Desk, cost_of, on_corpora
from tests.flows.own_project import recipe, stages

PLACE = r"recipes/on-trial\.yaml"
NEXT_WORD = """
NEEDS = ("causal",)
PROVIDES = ("token_logits",)
CHOOSES = 1
PREPARES = False


class NextWord:
    \"\"\"An objective that no bidirectional network can have.\"\"\"
"""


@pytest.fixture(scope="module", autouse=True)
def absent(desk: Desk) -> None:
    """A source without its file."""
    desk.project.source("absent", files=["data/absent.jsonl"])


def text(**changes: object) -> str:
    return yaml.safe_dump(on_corpora("absent") | changes, sort_keys=False)


def edited(pattern: str, replacement: str) -> str:
    """The recipe with one edit, as `sed` would make it."""
    changed, times = re.subn(pattern, replacement, text(), count=1, flags=re.MULTILINE)
    assert times == 1, "the edit changed nothing"
    return changed


def refused(desk: Desk, recipe: str | bytes, *patterns: str) -> None:
    """Refused in seconds, in little memory, with nothing done."""
    before = set((desk.home / "store").rglob("*"))
    with cost_of(desk.listener.process.pid) as cost:
        answer = desk.runs(recipe)
    desk.holds(answer, 2, *patterns)
    assert answer.seconds < 10
    assert cost.peak - cost.before < 1000
    assert set((desk.home / "store").rglob("*")) == before


def test_a_key_that_stands_twice_is_named_with_both_lines(desk: Desk):
    """S01."""
    refused(
        desk, edited("^seed: 17$", "seed: 17\nseed: 99"),
        f"{PLACE}: the key 'seed' occurs twice, in lines 10 and 11; keep one",
    )  # fmt: skip


def test_a_word_that_yaml_reads_as_a_boolean_is_to_be_quoted(desk: Desk):
    """S02."""
    refused(
        desk, edited("^name: .*", "name: no"),
        f"{PLACE}: name: expected text, got `false`, which is how YAML reads the word `no`; quote",
    )  # fmt: skip


def test_a_tag_is_refused_and_nothing_of_it_runs(desk: Desk):
    """S03."""
    pwned = desk.project.folder / "pwned"
    tag = f"note: !!python/object/apply:os.system ['touch \"{pwned}\"']\n"
    refused(desk, text() + tag, rf"{PLACE}: line \d+: the tag '[^']+os\.system' is not allowed")
    assert not pwned.exists()


def test_anchors_that_multiply_cost_neither_time_nor_memory(desk: Desk):
    """S04."""
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
    )
    refused(desk, bomb, rf"{PLACE}: line \d+: .*aliases.*refused")


@pytest.mark.parametrize("name", ["../catalogue", "__init__", "os", "catalogue", "bert.Bert"])
def test_a_family_is_a_name_and_never_a_path_or_a_module(desk: Desk, name: str):
    """S05."""
    folder = desk.project.folder
    ran = folder / "imported"
    (folder / "families").mkdir(exist_ok=True)
    planted = [folder / place for place in ("catalogue.py", "families/__init__.py", "os.py")]
    for file in planted:
        file.write_text(f"open({str(ran)!r}, 'w')\n")
    refused(
        desk, edited("^family: .*", f"family: {name}"),
        f"{PLACE}: family: '{re.escape(name)}' is not a family.*Known: .*\\bbert\\b",
    )  # fmt: skip
    for file in planted:
        file.unlink()
    assert not ran.exists()


def test_a_family_in_capitals_suggests_the_right_one(desk: Desk):
    """S05."""
    refused(desk, edited("^family: .*", "family: BERT"), "'BERT'.*did you mean 'bert'\\?")


def test_a_gate_on_a_metric_that_nothing_computes_lists_those_that_are(desk: Desk):
    """S06."""
    changed = recipe("on-trial", promote={"model": "x", "require": {"micro_f2": {"at_least": 0.5}}})
    refused(
        desk, yaml.safe_dump(changed),
        f"{PLACE}: promote.require: 'micro_f2' is not a metric that this recipe computes.*"
        "Known: accuracy",
    )  # fmt: skip


def test_a_refusal_takes_seconds_from_the_start_of_the_process(desk: Desk):
    path = desk.project.recipe(recipe("hasty", seed=True))
    answer = desk.person.types("run", str(path), "--json")
    desk.holds(answer, 2, "seed: expected a whole number")
    assert answer.seconds < 10


def test_other_mistakes_are_told_with_the_nearest_right_word(desk: Desk):
    (desk.project.folder / "objectives").mkdir()
    (desk.project.folder / "objectives" / "next_word.py").write_text(NEXT_WORD)

    def stage(name: str, **settings: object) -> str:
        return yaml.safe_dump(recipe("on-trial", stages=stages(**{name: settings})))

    refused(
        desk, stage("general", budgt={"steps": 5}),
        PLACE + r".*stages\[0\].*'budgt'.*did you mean 'budget'\?",
    )  # fmt: skip
    refused(
        desk, stage("domain", budget={"steps": "many"}),
        PLACE + r": stages\[1\]\.budget\.steps: expected a whole number", "got the text 'many'",
    )  # fmt: skip
    refused(
        desk, stage("general", optimizer={"adamw": {"peak_learning_rate": "1e-4"}}),
        PLACE + r": stages\[0\]\.optimizer\.adamw\.peak_learning_rate", r"1e-4.*1\.0e-4",
    )  # fmt: skip
    refused(
        desk, stage("general", objectives={"masked_ml": {}}),
        PLACE + r": stages\[0\]\.objectives: 'masked_ml'.*did you mean 'masked_lm'\?",
    )  # fmt: skip
    refused(
        desk, stage("general", objectives={"next_word": {}}), PLACE + r".*next_word.*causal.*bert"
    )
    refused(
        desk, stage("general", corpora={"note": 1.0}),
        PLACE + r": stages\[0\]\.corpora: 'note'.*did you mean 'notes'\?",
    )  # fmt: skip
    refused(desk, stage("general", sequence_length=1024), PLACE + r": stages\[0\].*1,?024.*512")
    refused(desk, text(seed=True), PLACE + r": seed: expected a whole number")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "expected a mapping"),
        (b"name: [a\n", "line"),
        (b"- a\n- b\n", "expected a mapping"),
        (b"\x89PNG\r\n\x1a\n\0\xff\xfe", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_recipe_is_named(desk: Desk, content: bytes, words: str):
    refused(desk, content, f"{PLACE}.*{words}")


def test_a_command_that_is_mistyped_suggests_the_right_one(desk: Desk):
    types = desk.listener.types
    desk.holds(types("run", "recipes"), 2, "recipes: expected a recipe file, got a folder")
    desk.holds(types("run", "smal"), 2, "'smal'.*did you mean 'small'\\?")
    desk.holds(types("run", "small", "--set", "stages.genral.seed=1"), 2, "genral", "general")
    desk.holds(types("rum", "small"), 2, "did you mean 'run'\\?")
    desk.holds(types("run", "small", "--jsn"), 2, "did you mean '--json'\\?")


def test_a_recipe_put_right_runs_and_finds_everything_made(desk: Desk):
    desk.put_right(lambda: desk.on_corpus(None))
