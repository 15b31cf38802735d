"""Recipes from files: shape, names, `extends`, `--set`, and every fault said at once."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe.loading import load_recipe, recipe_names
from fourstage.recipe.resolution import resolve
from fourstage.settings import REPOSITORY

QUICKSTART = (REPOSITORY / "recipes" / "quickstart.yaml").read_text(encoding="utf-8")

MINIMAL = """\
name: small
family: bert
size: tiny
seed: 17
stages:
  - stage: general
    corpora: {text: 1.0}
    objectives: {masked_lm: {rate: 0.15}}
    budget: {steps: 10}
    optimizer: {adamw: {peak_learning_rate: 1.0e-3}}
  - {stage: finetune, dataset: rows, head: {sequence_classification: {}}}
promote: {model: small, require: {accuracy: {at_least: 0.5}}}
"""


@pytest.fixture
def write(tmp_path):
    def _write(text: str, name: str = "x.yaml") -> Path:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return _write


def fault(file: Path, *overrides: str) -> str:
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(file, overrides))
    return str(caught.value).replace(f"{file.parent}/", "")


def edited(pattern: str, replacement: str, text: str = MINIMAL) -> str:
    changed = re.sub(pattern, replacement, text, count=1, flags=re.MULTILINE)
    assert changed != text, "the edit changed nothing"
    return changed


@pytest.mark.parametrize("name", sorted(recipe_names([])))
def test_every_recipe_here_loads_and_resolves_also_as_smoke(name):
    resolve(load_recipe(name))
    resolve(load_recipe(name, smoke=True))


@pytest.mark.parametrize(
    ("pattern", "replacement", "expected"),
    [
        (
            "masked_lm:",
            "masked_ml:",
            "x.yaml: stages[0].objectives: 'masked_ml' is not an objective; did you mean "
            "'masked_lm'? Known: bidirectional_lm, capitalization, causal_lm, ",
        ),
        (
            "^name:.*",
            "name: no",
            "x.yaml: name: expected text, got `false`, which is how YAML reads the word `no`; "
            "quote it: 'no'",
        ),
        (
            "1.0e-3",
            "1e-3",
            "x.yaml: stages[0].optimizer.adamw.peak_learning_rate: expected a number, got the text "
            "'1e-3'; YAML 1.1 reads 1e-3 as text: write 1.0e-3",
        ),
        (
            "1.0e-3",
            "1.5E2",
            "x.yaml: stages[0].optimizer.adamw.peak_learning_rate: expected a number, got the text "
            "'1.5E2'; YAML 1.1 reads 1.5E2 as text: write 1.5e+2",
        ),
        (
            "steps: 10",
            "steps: 1e3",
            "x.yaml: stages[0].budget.steps: expected a whole number, got the text '1e3'; YAML 1.1 "
            "reads 1e3 as text: write 1000",
        ),
        (
            "seed: 17",
            "seed: 08",
            "x.yaml: seed: expected a whole number, got the text '08'; YAML 1.1 reads 08 as text: "
            "write 8",
        ),
        (
            "1.0e-3",
            "1e400",
            "x.yaml: stages[0].optimizer.adamw.peak_learning_rate: expected a number, got the text "
            "'1e400'; it is too large for a number",
        ),
        (
            "^name:.*",
            f"name: {'x' * 101}",
            "x.yaml: name: expected at most 100 characters, got 101",
        ),
        (
            "^name:",
            "n\u0430me: y\nname:",
            "x.yaml: 'n\u0430me' is not a key of a recipe (its letter 2 is U+0430, CYRILLIC SMALL "
            "LETTER A); did you mean 'name'?",
        ),
        ("seed: 17", "seed: -1", "x.yaml: seed: expected at least 0, got -1"),
        ("seed: 17", "seed: 1.5", "x.yaml: seed: expected a whole number, got the number 1.5"),
        (
            "steps: 10",
            'steps: "10"',
            "x.yaml: stages[0].budget.steps: expected a whole number, got the text '10'; write the "
            "number without quotes",
        ),
        (
            "steps: 10",
            "steps: 10, epochs: 1",
            "x.yaml: stages[0].budget: expected exactly one of steps, tokens, epochs, got epochs "
            "and steps",
        ),
        (
            "rate: 0.15",
            "rat: 0.15",
            "x.yaml: stages[0].objectives.masked_lm: 'rat' is not a setting of objective "
            "'masked_lm'; did you mean 'rate'? Known: across_documents, mask_share, noise_by_span, "
            "random_from, random_share, rate, unit.",
        ),
        (
            "rate: 0.15",
            "rate: 15",
            "x.yaml: stages[0].objectives.masked_lm.rate: expected a share, 0 to 1, got 15",
        ),
        (
            "rate: 0.15",
            "unit: words",
            "x.yaml: stages[0].objectives.masked_lm.unit: 'words' is not a value of 'unit'; did "
            "you mean 'word'? Known: entity, ngram, phrase, span, token, word.",
        ),
        (
            "rate: 0.15",
            "weight: 0",
            "x.yaml: stages[0].objectives: expected weights with a sum above 0, got 0",
        ),
        (
            "size: tiny",
            "size: tinny",
            "x.yaml: size: 'tinny' is not a size of family 'bert'; did you mean 'tiny'?",
        ),
        (
            "steps: 10}",
            "steps: 10}\n    sequence_length: 1024",
            "x.yaml: stages[0].sequence_length: 1024 tokens are longer than the position table of "
            "bert (512)",
        ),
        (
            "text: 1.0",
            "text: 0",
            "x.yaml: stages[0].corpora: expected shares with a sum above 0, got a sum of 0.0",
        ),
        (
            "dataset: rows, ",
            "",
            "x.yaml: stages[1]: the key 'dataset' is missing",
        ),
        (
            "masked_lm: {rate: 0.15}",
            "masked_lm: ",
            "x.yaml: stages[0].objectives.masked_lm: no value given",
        ),
        (
            "accuracy: {at",
            "micro_f2: {at",
            "x.yaml: promote.require: 'micro_f2' is not a metric that this recipe computes; did "
            "you mean 'macro_f1'? Known: accuracy, latency_ms, macro_f1, size_mb.",
        ),
        (
            "accuracy: {at_least: 0.5}",
            "micro_f1: {at_least: 0.5}",
            "Add it to evaluate.metrics.",
        ),
        (
            "at_least: 0.5",
            "at_least: 60",
            "x.yaml: promote.require.accuracy.at_least: expected a share, at most 1, got 60.0",
        ),
        (
            "accuracy: {at_least: 0.5}",
            "forgetting: {at_most: 0.5}",
            "forgetting is measured only on corpora that evaluate.forgetting_on lists",
        ),
        ("stage: finetune", "stage: finetun", "'finetun' is not a value of 'stage'; did you mean"),
        (
            "stage: finetune",
            "refresh: continue, stage: finetune",
            "stages[1].refresh: 'continue' trains on new documents, and stage finetune reads rows",
        ),
        (
            "budget: {steps: 10}",
            "budget: {steps: 10}\n    continuations: 3",
            "stages[0].continuations: expected with refresh: continue, got refresh: never",
        ),
        (
            "budget: {steps: 10}",
            "steps: 10",
            "A budget is written `budget: {steps: …}`.",
        ),
        (
            "objectives: .*",
            "objectives: {next_sentence: {}}\n    head: {sequence_classification: {}}",
            "x.yaml: stages[0].head: stage general has no 'head'",
        ),
    ],
)
def test_a_fault_says_where_what_was_expected_and_what_came(write, pattern, replacement, expected):
    assert expected in fault(write(edited(pattern, replacement)))


def test_all_faults_are_said_at_once(write):
    text = edited("masked_lm", "masked_ml", edited("seed: 17", "seed: x\nnonsense: 1"))
    said = fault(write(text)).splitlines()
    assert len(said) == 3
    assert {line.split("'")[1] for line in said} == {"masked_ml", "x", "nonsense"}


def test_a_faulty_entry_of_a_list_is_one_fault_and_the_list_is_none(write):
    text = edited("budget: {steps: 10}", "budget: {steps: 10}\n    phases: [{batch_size: 8}]")
    said = fault(write(text)).splitlines()
    assert said == [
        f"x.yaml: stages[0].phases[0]: the key {key!r} is missing"
        for key in ("sequence_length", "share")
    ]


@pytest.mark.parametrize("family", ["../catalogue", "__init__", "os", "catalogue", "bert.Bert"])
def test_a_family_is_looked_up_and_never_made_into_a_path(write, family):
    assert "is not a family" in fault(write(edited("family: bert", f"family: {family}")))


def test_a_family_in_capitals_suggests_the_right_one(write):
    assert "did you mean 'bert'?" in fault(write(edited("family: bert", "family: BERT")))


@pytest.mark.parametrize("text", ["", "- a\n", "just text", "5"])
def test_a_recipe_is_a_mapping(write, text):
    assert "expected a mapping with the keys name, family, size and stages" in fault(write(text))


def test_a_missing_file_suggests_a_recipe():
    with pytest.raises(UnknownNameError, match="did you mean 'quickstart'"):
        load_recipe("quickstrat")


def test_a_folder_is_no_recipe(tmp_path):
    with pytest.raises(RecipeError, match="got a folder"):
        load_recipe(tmp_path)


# extends


def test_extends_takes_the_parents_values_where_the_child_has_none(write, tmp_path):
    write(MINIMAL, "recipes/parent.yaml")
    child = write(
        "name: child\nextends: parent\nsize: mini\n"
        "stages: [{stage: general, budget: {epochs: 2}}, {stage: finetune, dataset: other}]\n",
        "recipes/child.yaml",
    )
    resolved = resolve(load_recipe(child))
    assert (resolved.name, resolved.size, resolved.seed) == ("child", "mini", 17)
    general, finetune = resolved.stages
    assert general.corpora == {"text": 1.0}
    assert (general.budget.unit, general.budget.amount) == ("epochs", 2)
    assert finetune.dataset == "other"
    assert resolved.origin("seed") == "extends parent"
    assert resolved.origin("stages[0].corpora.text") == "extends parent"
    assert resolved.origin("stages[0].budget.epochs") == "recipe"


def test_the_childs_list_of_stages_decides_which_there_are(write):
    write(MINIMAL, "recipes/parent.yaml")
    child = write("name: c\nextends: parent\nstages: [{stage: finetune}]\n", "recipes/c.yaml")
    text = child.read_text() + "tokenizer: {learn_from: [text]}\n"
    resolved = resolve(load_recipe(write(text, "recipes/c.yaml")))
    assert [stage.name for stage in resolved.stages] == ["finetune"]
    assert resolved.skipped == ("general", "domain", "task")


def test_only_one_level_is_extended(write):
    write(MINIMAL, "recipes/a.yaml")
    write("name: b\nextends: a\n", "recipes/b.yaml")
    child = write("name: c\nextends: b\n", "recipes/c.yaml")
    assert "only one level is allowed" in fault(child)


def test_an_unknown_parent_is_named(write):
    assert "extends: 'papers/brt' is not a recipe; did you mean 'papers/bert'?" in fault(
        write("name: x\nextends: papers/brt\n")
    )


def test_a_fault_of_the_parent_names_the_parents_file(write):
    write(edited("seed: 17", "seed: x"), "recipes/parent.yaml")
    child = write("name: c\nextends: parent\n", "recipes/c.yaml")
    assert "parent.yaml: seed: expected a whole number" in fault(child)
    write(edited("1.0e-3", "fast"), "recipes/parent.yaml")
    said = "parent.yaml: stages[0].optimizer.adamw.peak_learning_rate: expected a number"
    for stages in ("", "stages: [{stage: general, batch_size: 8}, {stage: finetune}]\n"):
        child = write(f"name: c\nextends: parent\n{stages}", "recipes/c.yaml")
        assert said in fault(child)
    own = "stages: [{stage: general, optimizer: {adamw: {warmup: x}}}, {stage: finetune}]\n"
    child = write(f"name: c\nextends: parent\n{own}", "recipes/c.yaml")
    assert "c.yaml: stages[0].optimizer.adamw.warmup: expected a number" in fault(child)


def test_a_fault_inside_of_what_was_set_names_the_option(write):
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(MINIMAL), ["stages.general.optimizer={adamw: {warmup: x}}"])
    assert str(caught.value).startswith("--set: stages[0].optimizer.adamw.warmup: expected a numb")


# --set


@pytest.mark.parametrize(
    ("override", "path", "expected"),
    [
        ("seed=5", "seed", 5),
        ("size=mini", "size.num_layers", 4),
        ("stages[0].budget.steps=3", "stages[0].budget.steps", 3),
        ("stages.general.budget.epochs=2", "stages[0].budget.epochs", 2.0),
        ("stages.finetune.batch_size=8", "stages[1].batch_size", 8),
        ("stages.general.phases=[{sequence_length: 32, share: 1}]", "stages[0].phases[0].share", 1),
        ("stages.finetune.optimizer.adamw.warmup=0.2", "stages[1].optimizer.adamw.warmup", 0.2),
        ("tokenizer.vocabulary_size=500", "tokenizer.vocabulary_size", 500),
        ("stages.finetune.freeze=[block_0/*]", "stages[1].freeze", ["block_0/*"]),
        ("evaluate.slices=[label]", "evaluate.slices", ["label"]),
    ],
)
def test_set_lays_a_value_over_the_recipe(write, override, path, expected):
    resolved = resolve(load_recipe(write(MINIMAL), [override]))
    values = {p: (value, origin) for p, value, origin in resolved.rows()}
    value, origin = values[path]
    assert value == expected
    assert origin in ("--set", "size mini of bert")


def test_set_without_a_value_leaves_a_stage_out(write):
    text = edited("  - {stage: finetune", "  - {stage: task}\n  - {stage: finetune")
    resolved = resolve(load_recipe(write(text), ["stages.task="]))
    assert [stage.name for stage in resolved.stages] == ["general", "finetune"]


def test_set_without_a_value_removes_a_key_so_that_its_default_holds(write):
    text = edited("1.0e-3}}$", "1.0e-3, beta_2: 0.98}}")
    text = edited("dataset: rows,", "dataset: rows, budget: {epochs: 9}, batch_size: 5,", text)
    paths = ("general.optimizer.adamw.beta_2", "finetune.budget", "finetune.batch_size")
    removed = [*(f"stages.{path}=" for path in paths), "seed=~"]
    found = resolve(load_recipe(write(text), removed))
    bare = resolve(load_recipe(write(edited("seed: 17\n", ""), "bare.yaml")))
    assert found.rows() == bare.rows()
    assert found.origin("seed") == "default"


def test_set_removes_no_entry_of_a_list(write):
    text = MINIMAL + "evaluate: {metrics: [accuracy, macro_f1]}\n"
    assert "write the whole list" in fault(write(text), "evaluate.metrics[0]=")


def test_a_stage_that_is_left_out_leaves_the_origins_of_those_behind_it(write):
    text = edited("  - {stage: finetune", "  - {stage: task}\n  - {stage: finetune")
    settings = ["stages.task=", "stages.finetune.batch_size=4", "stages[2].budget.epochs=3"]
    resolved = resolve(load_recipe(write(text), settings))
    origins = [
        resolved.origin(f"stages[1].{key}") for key in ("batch_size", "budget.epochs", "dataset")
    ]
    assert origins == ["--set", "--set", "recipe"]


def test_set_takes_the_place_of_several_seeds(write):
    text = edited("seed: 17", "seeds: {values: [1, 2], from: finetune}")
    assert resolve(load_recipe(write(text), ["seed=9"])).seeds == (9,)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("stages.domain.=", "--set stages.domain.=: expected a path such as"),
        ("famly=x", "--set: 'famly' is not a key of a recipe; did you mean 'family'?"),
        ("stages[0].bugdet.steps=10", "'bugdet' is not a key of a stage; did you mean 'budget'?"),
        ("stages.generl.seed=1", "did you mean 'general'?"),
        ("stages[7].batch_size=1", "stages has 2 entries, [0] to [1]"),
        ("seed", "expected path=value"),
        ("=5", "expected a path"),
        ("a..b=5", "expected a path"),
        ("stages[x]=5", "expected a path"),
        ("seed.deeper=5", "seed is the number 17, it has no 'deeper'"),
        ("stages.finetune.optimizer.adamw.warmup=", "it has no stages[1].optimizer.adamw.warmup"),
        ("seed.deeper=", "it has no seed.deeper"),
        ("stages[0].name[7]=", "it has no stages[0].name[7]"),
        ("serch=", "a key of the recipe, which is removed then; it has no serch"),
        ("stages.finetune.head.sequence_classification=", "stages[1].head has exactly one key"),
        ("family=", "x.yaml: the key 'family' is missing"),
        ("name=no", "which is how YAML reads the word `no`"),
        ("stages.general.optimizer.adamw.peak_learning_rate=1e-4", "write 1.0e-4"),
        ("name=!!python/none ''", "the tag"),
    ],
)
def test_a_wrong_set_says_so(write, override, expected):
    assert expected in fault(write(MINIMAL), override)


# Whatever comes in, only a recipe's errors come out.

FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(),
        st.text(max_size=12),
        st.sampled_from(["bert", "tiny", "general", "masked_lm", "adamw", "steps", "hf:a/b@c"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=8), st.sampled_from(
            ["name", "stages", "stage", "budget", "objectives", "head", "size", "seeds", "promote"]
        )), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(parent=FUZZ, max_examples=150)
@given(seed=st.integers(0, 2**32), junk=PLAIN)
def test_a_recipe_with_anything_anywhere_is_resolved_or_refused(tmp_path, seed, junk):
    chance = random.Random(seed)
    recipe = yaml.safe_load(QUICKSTART)
    places: list[tuple[object, object]] = []

    def collect(holder: object) -> None:
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)  # type: ignore[arg-type]
        for key, value in list(pairs):
            places.append((holder, key))
            if isinstance(value, (dict, list)):
                collect(value)

    collect(recipe)
    for holder, key in chance.sample(places, chance.randint(1, 3)):
        match chance.randrange(3):
            case 0:
                holder[key] = junk  # type: ignore[index]
            case 1 if isinstance(holder, dict):
                holder.pop(key, None)
            case _ if isinstance(holder, dict):
                holder[f"{key}x"] = junk
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(recipe, allow_unicode=True), encoding="utf-8")
    for smoke in (False, True):
        try:
            resolve(load_recipe(file, smoke=smoke))
        except RecipeError:
            pass


@settings(parent=FUZZ, max_examples=100)
@given(override=st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_set_is_taken_or_refused(tmp_path, override):
    file = tmp_path / "x.yaml"
    file.write_text(MINIMAL, encoding="utf-8")
    try:
        load_recipe(file, [override])
    except RecipeError:
        pass


def test_a_pipe_among_recipes_is_none_and_is_not_waited_for(tmp_path):
    (tmp_path / "recipes").mkdir()
    os.mkfifo(tmp_path / "recipes" / "pipe.yaml")
    with pytest.raises(UnknownNameError, match="is not a file or the name of a recipe"):
        load_recipe("recipes/pipe.yaml", folders=[tmp_path])
