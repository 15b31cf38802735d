"""Keys of a recipe's steps: the same everywhere, changed by what matters, explained."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fourstage.digests import digest
from fourstage.recipe.resolved import NEUTRAL
from fourstage.settings import REPOSITORY
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact, Findings, Input, Store
from tasks.store.code import closure, module_file
from tasks.store.steps import (
    CODE,
    Bound,
    PreviousArtifacts,
    Step,
    Unbound,
    bind,
    differences,
    look_ahead,
    made_by_other_code,
    why,
)
from tests.flows.own_project import Project, recipe, stages
from tests.tasks.store.step_keys import keys

STEP_KEYS = Path(__file__).with_name("step_keys.py")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project") / "own")


def keys_elsewhere(
    path: Path, home: Path, hash_seed: str = "0", clone: Path = REPOSITORY
) -> dict[str, str]:
    """`keys`, told by a process of its own."""
    done = subprocess.run(
        [sys.executable, str(STEP_KEYS), str(path)],
        cwd=path.parent.parent,
        env={
            "PATH": "",
            "PYTHONPATH": str(clone),
            "PYTHONHASHSEED": hash_seed,
            "FOURSTAGE_HOME": str(home),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def test_keys_are_the_same_in_every_process_and_for_every_order(project: Project, tmp_path: Path):
    two = recipe(
        "two",
        stages=[
            {
                **recipe()["stages"][0],
                "corpora": {"notes": 0.7, "letters": 0.3},
                "objectives": {"masked_lm": {"rate": 0.15}, "next_sentence": {}},
            },
            *recipe()["stages"][1:],
        ],
    )
    path = project.recipe(two)
    golden = keys_elsewhere(path, home=tmp_path / "a")
    assert {"corpus notes", "tokens rows", "stage finetune", "evaluation"} <= set(golden)
    assert len(set(golden.values())) == len(golden)
    for file in [path, *(project.folder / "sources").iterdir()]:
        turned = reversed_keys(yaml.safe_load(file.read_text(encoding="utf-8")))
        file.write_text(yaml.safe_dump(turned, sort_keys=False), encoding="utf-8")
    assert path.read_text(encoding="utf-8").startswith("promote:")
    # Another process, home and folder; another order of names in memory and in every file.
    copy = shutil.copytree(project.folder, tmp_path / "elsewhere 别处") / "recipes" / "two.yaml"
    assert keys_elsewhere(copy, home=tmp_path / "别 b", hash_seed="12345") == golden


CHANGES: list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...] | None]] = [
    ({"promote": {"model": "m", "require": {"accuracy": {"at_least": 0.9}}}}, (), None),
    ({"limits": {"minutes": 5}}, (), None),
    ({"seed": 18}, ("stage general", "stage finetune"), ("tokenizer", "tokens notes")),
    ({"tokenizer": {"vocabulary_size": 500}}, ("tokenizer",), ("corpus notes", "dataset rows")),
    (
        {"evaluate": {"metrics": ["accuracy", "macro_f1"]}},
        ("evaluation",),
        ("stage finetune", "package"),
    ),
    # The inputs' digests are the same here: what a contract asks of overlap is its own setting.
    (
        {"stages": stages(finetune={"overlap": "report"})},
        ("dataset rows", "contract rows"),
        ("contract notes", "tokens rows"),
    ),
    # A draw is a setting of the dataset; the stage's own key has its rows, not their number.
    (
        {"stages": stages(finetune={"training_rows": 8})},
        ("dataset rows",),
        ("tokens rows", "stage finetune"),
    ),
]


@pytest.mark.usefixtures("home")
def test_a_key_changes_with_what_decides_its_outputs_and_with_nothing_else(project):
    """Gate and limits decide no output: None means that every key stays."""
    before = keys(project.recipe(recipe("before")))
    for number, (change, changed, kept) in enumerate(CHANGES):
        after = keys(project.recipe(recipe(f"r{number}", **change)))
        assert all(before[name] != after[name] for name in changed), change
        assert all(before[name] == after[name] for name in (kept or before)), change


@pytest.mark.usefixtures("home")
def test_text_changes_the_key_and_the_time_of_a_file_does_not(project: Project):
    path = project.recipe(recipe("text"))
    before = keys(path)
    notes = project.folder / "data" / "notes.jsonl"
    text = notes.read_text(encoding="utf-8")
    notes.write_text(text, encoding="utf-8")
    assert keys(path) == before
    notes.write_text(text + '{"id": "one-more", "text": "One more."}\n', encoding="utf-8")
    after = keys(path)
    notes.write_text(text, encoding="utf-8")
    assert after["corpus notes"] != before["corpus notes"]
    assert after["corpus letters"] == before["corpus letters"]


WITHOUT_SCHEME = ("corpus", "dataset", "contract", "baseline")
ROOMS = ("fourstage", "tasks", "corpora", "data_contracts", "models")
STAGES = ("general", "domain", "task", "finetune")
# Files with a helper function, and the steps that can reach it. Files of one entry are changed
# together: their steps are others.
REACHED_BY: list[dict[str, set[str]]] = [
    {
        "models/tokenizers/byte_bpe.py": set(),  # the recipe's scheme is another
        "models/evaluation/bootstrap.py": set(),  # what a gate decides is in no step
        "tasks/run/pages.py": set(),
    },
    {
        "models/tokenizers/wordpiece.py": {
            *("tokenizer", "tokens notes", "tokens letters", "tokens rows"),
            *(f"stage {name}" for name in STAGES),
            *(f"measurement {name}" for name in STAGES),
            *("package", "evaluation"),
        },
    },
    {
        "corpora/near_duplicates.py": {"corpus notes", "corpus letters", "dataset rows"},
        # The evaluation asks the package, which is another function of the file.
        "models/interchange/saved_model.py": {"package"},
        # Held-out text is measured under its loss, also after the stage that does not train it.
        "models/objectives/masked_lm.py": {
            *(f"stage {name}" for name in STAGES[:3]),
            *(f"measurement {name}" for name in STAGES),
        },
    },
    {
        "models/heads/sequence_classification.py": {
            *("stage finetune", "measurement finetune", "package", "evaluation"),
        },
    },
]


def rewritten(path: Path, change: Callable[[ast.Module], None]) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    change(tree)
    path.write_text(ast.unparse(tree), encoding="utf-8")


def with_other_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            node.body[0] = ast.Expr(ast.Constant("Other words."))


def with_another_function(tree: ast.Module) -> None:
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    function.body += ast.parse("0").body


@pytest.mark.usefixtures("home")
def test_code_flips_the_steps_that_can_reach_it_and_its_layout_flips_none(
    project: Project, tmp_path: Path
):
    """In a clone of its own: other comments, layout and docstrings, then a few functions a time."""
    clone = tmp_path / "clone"
    for room in ROOMS:
        shutil.copytree(
            REPOSITORY / room, clone / room, ignore=shutil.ignore_patterns("__pycache__")
        )
    path = project.recipe(recipe("code"))
    before = keys(path)
    for file in clone.rglob("*.py"):
        rewritten(file, with_other_docstrings)
    assert keys_elsewhere(path, tmp_path, clone=clone) == before
    for reached in REACHED_BY:
        texts = {name: (clone / name).read_text(encoding="utf-8") for name in reached}
        for name in reached:
            rewritten(clone / name, with_another_function)
        after = keys_elsewhere(path, tmp_path, clone=clone)
        assert {s for s in before if before[s] != after[s]} == set().union(*reached.values())
        for name, text in texts.items():
            (clone / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("scheme", ["wordpiece", "byte_bpe"])
def test_a_step_reaches_the_file_of_its_own_scheme_and_no_other(project: Project, scheme: str):
    path = project.recipe(recipe(scheme, tokenizer={"scheme": scheme, "vocabulary_size": 400}))
    for step in plan_recipe(str(path)).steps.values():
        places = closure(*map(module_file, CODE[step.kind]), *step.parts)
        schemes = {place.file.stem for place in places} & {"wordpiece", "byte_bpe"}
        assert schemes == (set() if step.kind in WITHOUT_SCHEME else {scheme}), step.name


# The rest is about chains of steps, made by hand.


def steps(seed: int = 1, words: str = "one two") -> list[Step]:
    return [
        Step("corpus notes", "corpus", {"words": words}),
        Step("tokens notes", "tokens", {"language": "en"}, {"data": "corpus notes"}),
        Step("stage general", "stage", {"seed": seed}, {"tokens": "tokens notes"}),
    ]


def run(store: Store, chain: list[Step], output: str = "same") -> dict[str, tuple[Artifact, bool]]:
    made: dict[str, Artifact] = {}
    told: dict[str, tuple[Artifact, bool]] = {}
    for step in chain:
        bound = bind(step, made)
        assert isinstance(bound, Bound)
        text = output if step.kind == "corpus" else step.name

        def work(folder: Path, text: str = text) -> Findings:
            (folder / "out").write_text(text)
            return Findings()

        told[step.name] = store.make(step.kind, step.name, bound.preimage, work)
        made[step.name] = told[step.name][0]
    return told


# What of a stage its work reads and its settings leave out, and what covers it instead.
COVERED_OTHERWISE = {
    "batch_size": "each of `phases` has its own",
    "dataset": "the role of an input names it",
    "heads": "`head` and `head_settings`",
    "precision": "the settings hold it as this machine resolves it",
    "sequence_length": "the longest of `phases`",
    "starts_from": "each stage is an input, each file given by its digest",
    "teachers": "each is an input",
}


def attributes(file: str, of: str, function: str | None = None) -> set[str]:
    """What a file's code, or one function's, reads of a name or of an attribute of that name."""
    tree = ast.parse((REPOSITORY / file).read_text("utf-8"))
    places = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
    return {
        node.attr
        for place in (places or [tree])
        for node in ast.walk(place)
        if isinstance(node, ast.Attribute)
        and of in (getattr(node.value, "id", None), getattr(node.value, "attr", None))
    }


def test_a_stage_beside_n_grams_is_keyed_by_what_fits_the_factors_of_their_sum():
    plain, wide = (
        Bound(Step("stage finetune", "stage", {}, inputs), {}).preimage["versions"]
        for inputs in ({}, {"wide": "wide rows"})
    )
    assert wide.keys() - plain.keys() == {"scipy", "scikit-learn"}


def test_what_runs_on_jax_is_keyed_by_its_version():
    plain, jax = (
        Bound(Step("stage general", "stage", {"backend": backend}), {}).preimage["versions"]
        for backend in ("tensorflow", "jax")
    )
    assert jax.keys() - plain.keys() == {"jax", "jaxlib"}


def test_what_training_reads_of_a_stage_is_in_its_key():
    files = [
        REPOSITORY / "tasks/steps/training_job.py",
        *(REPOSITORY / "models/training").iterdir(),
    ]
    read = set().union(*(attributes(str(file), "stage") for file in files if file.is_file()))
    keyed = attributes("fourstage/recipe/resolved.py", "stage", "stage_spec") | set(NEUTRAL)
    assert {"optimizer", "seed"} <= read
    assert read - keyed == set(COVERED_OTHERWISE)


def test_a_step_can_read_of_its_inputs_only_what_its_key_covers(tmp_path: Path):
    """Files and facts change the key; the rest a step's work does not even see."""
    store = Store(tmp_path)

    def key(text: str, facts: dict[str, Any], notes: dict[str, Any]) -> tuple[str, Input]:
        def work(folder: Path) -> Findings:
            (folder / "rows").write_text(text)
            (folder / "notes").mkdir()
            (folder / "notes" / "speed").write_text(json.dumps(notes))
            return Findings(facts, notes)

        preimage = {"made": [text, facts, notes]}
        artifact, _ = store.make("rows", "tokens rows", preimage, work)
        bound = bind(Step("stage finetune", "stage", {}, {"tokens": "rows"}), {"rows": artifact})
        assert isinstance(bound, Bound)
        return bound.key, bound.inputs["tokens"]

    before, seen = key("0 1", {"labels": ["neg", "pos"]}, {"seconds": 1.0})
    assert key("0 1", {"labels": ["neg", "pos"]}, {"seconds": 2.0})[0] == before
    assert key("0 1", {"labels": ["nay", "pos"]}, {"seconds": 1.0})[0] != before
    assert key("1 0", {"labels": ["neg", "pos"]}, {"seconds": 1.0})[0] != before
    assert set(vars(seen)) == {"kind", "digest", "folder", "outputs", "facts"}
    assert set(seen.outputs) == {"rows"}


def test_a_step_waits_for_its_inputs():
    _, tokens, _ = steps()
    unbound = bind(tokens, {})
    assert isinstance(unbound, Unbound)
    assert unbound.waits_for == ("corpus notes",)


def test_an_input_made_again_with_equal_outputs_cuts_off_the_rest(tmp_path: Path):
    store = Store(tmp_path)
    run(store, steps())
    again = run(store, steps(words="one  two"))
    assert [ours for _, ours in again.values()] == [True, False, False]
    other = run(store, steps(words="three"), output="other")
    assert [ours for _, ours in other.values()] == [True, True, False]  # the tokens came out equal


def test_looking_ahead_makes_nothing_and_stops_at_the_first_missing_step(tmp_path: Path):
    store = Store(tmp_path)
    assert [prospect.found is None for prospect in look_ahead(steps(), store)] == [
        False,
        True,
        True,
    ]
    assert not store.root.exists()
    run(store, steps())
    assert all(prospect.reused for prospect in look_ahead(steps(), store))


def test_why_names_the_cause(tmp_path: Path):
    store = Store(tmp_path)

    def reasons(chain: list[Step]) -> list[list[str]]:
        return [why(prospect, PreviousArtifacts(store)) for prospect in look_ahead(chain, store)]

    assert reasons(steps())[:2] == [["never made"], ["waits for corpus notes"]]
    made = run(store, steps())
    assert all(line[0].endswith("unchanged since") for line in reasons(steps()))
    assert reasons(steps(seed=2))[2] == ["settings.seed: 1 → 2"]
    assert reasons(steps(words="one"))[:2] == [
        ["settings.words: one two → one"],
        ["waits for corpus notes"],
    ]
    (made["tokens notes"][0].folder / "out").write_text("damaged!")
    (reason,) = reasons(steps())[1]
    assert reason.startswith("output damaged: store/tokens/")


def test_why_compares_with_the_entry_most_alike(tmp_path: Path):
    store = Store(tmp_path)
    for seed in (1, 2, 3):
        run(store, steps(seed=seed, words=f"w{seed}"), output=f"o{seed}")
    chain = steps(seed=9, words="w2")
    found = [why(prospect, PreviousArtifacts(store)) for prospect in look_ahead(chain, store)]
    assert len(found[2]) == 1  # only the seed, not the tokens of some other run
    assert found[2][0].startswith("settings.seed: ")
    assert found[2][0].endswith(" → 9")


def test_differences_name_the_place():
    old = {"settings": {"optimizer": {"adamw": {"warmup": 0.06}}, "seed": 1}, "code": "a" * 64}
    new = {"settings": {"optimizer": {"adamw": {"warmup": 0.1}}}, "code": "b" * 64}
    assert differences(old, new) == [
        "code: aaaaaaaaaaaa… → bbbbbbbbbbbb…",
        "settings.optimizer.adamw.warmup: 0.06 → 0.1",
        "settings.seed: 1 → –",
    ]
    assert differences(old, old) == []


def test_what_differs_in_code_alone_is_found(tmp_path: Path):
    store = Store(tmp_path)
    made = run(store, steps())["stage general"][0]
    bound = Bound(steps()[2], {"tokens": run(store, steps())["tokens notes"][0]})
    preimage = {**made.preimage, "code": "0" * 64}
    older, _ = store.make("stage", "stage general", preimage, lambda folder: Findings())
    assert older.key == digest(dict(preimage)) != bound.key
    found = made_by_other_code(bound, store)
    assert found is not None
    assert found.key in (older.key, made.key)
    assert made_by_other_code(Bound(steps(seed=5)[2], bound.made_from), store) is None
