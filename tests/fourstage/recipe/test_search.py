"""What a search tries, and what is refused before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fourstage.errors import RecipeError
from fourstage.recipe.search import ResolvedSearch, in_yaml, overrides_of, told
from tasks.planning.plan import resolve_recipe


def searched(folder: Path, search: object, **more: object) -> Path:
    file = folder / "searched.yaml"
    recipe = {"name": "searched", "extends": "quickstart", "search": search, **more}
    file.write_text(yaml.safe_dump(recipe, sort_keys=False))
    return file


def resolved(file: Path, *overrides: str) -> ResolvedSearch:
    search = resolve_recipe(str(file), overrides)[0].search
    assert search is not None
    return search


def test_every_combination_is_tried_the_last_setting_varying_fastest():
    search = ResolvedSearch({"a": (1, 2), "b": ("x", "y")}, "accuracy", (1, 2, 3), 5)
    pairs = [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    assert search.points() == [{"a": a, "b": b} for a, b in pairs]
    assert search.trials == 4 * 3 * 5
    assert ResolvedSearch({}, "accuracy", (1,), 3).points() == [{}]


def test_a_combination_is_what_set_takes_and_is_not_searched_again(tmp_path: Path):
    file = searched(tmp_path, {"grid": {"optimizer.adamw.peak_learning_rate": [0.5, 2e-5]}})
    point = {"optimizer.adamw.peak_learning_rate": 2e-5, "budget.epochs": 3}
    tried, _, _ = resolve_recipe(str(file), overrides_of(point, "finetune"))
    assert tried.finetune is not None
    assert tried.finetune.optimizer.settings["peak_learning_rate"] == 2e-5
    assert (tried.finetune.budget.unit, tried.finetune.budget.amount) == ("epochs", 3)
    assert tried.search is None
    assert told(point) == "peak_learning_rate 2e-05, epochs 3"


def test_metric_and_seeds_are_the_recipes_where_it_does_not_say(tmp_path: Path):
    grid = {"batch_size": [8, 16]}
    search = resolved(searched(tmp_path, {"grid": grid}))
    assert (search.metric, search.seeds, search.folds) == ("accuracy", (17,), None)
    seeds = {"values": [4, 5], "from": "finetune"}
    search = resolved(searched(tmp_path, {"grid": grid, "metric": "macro_f1"}, seeds=seeds))
    assert (search.metric, search.seeds) == ("macro_f1", (4, 5))


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"grid": {"batch_sise": [8]}}, "did you mean 'batch_size'"),
        ({"grid": {"batch_size": [8, "eight"]}}, "batch_size eight: .*expected a whole number"),
        ({"grid": {"batch_size": [8, 8]}}, "expected different values"),
        ({"grid": {"batch_size": []}}, "at least 1"),
        ({"grid": {"dataset": ["sst2"]}}, "expected a setting of stage finetune"),
        ({"grid": {"batch_size": [8]}, "metric": "f1"}, "'f1' is not a metric"),
        (
            {"grid": {"optimizer.adamw.weight_decay": [0.1], "optimizer.sgd.momentum": [0.9]}},
            "adamw.weight_decay: expected one of it and optimizer.sgd.momentum, which replaces it",
        ),
        ({"grid": {"budget": [{"epochs": 1}], "budget.epochs": [2]}}, "which replaces it"),
        ({"metric": "accuracy"}, "expected grid, seeds or folds"),
        ({"folds": 1}, "search.folds: expected at least 2"),
        ({"seeds": list(range(51)), "folds": 20}, "1,000 trials or fewer, got 1,020"),
    ],
)
def test_nonsense_is_refused_before_any_work(tmp_path: Path, search: object, said: str):
    with pytest.raises(RecipeError, match=said):
        resolved(searched(tmp_path, search))


def test_without_labels_there_is_nothing_to_choose_by(tmp_path: Path):
    file = searched(tmp_path, {"folds": 3})
    with pytest.raises(RecipeError, match="search: there is no finetune stage"):
        resolved(file, "stages.finetune=", "promote.model=x")


def test_set_leaves_the_search_out(tmp_path: Path):
    file = searched(tmp_path, {"folds": 3})
    assert resolve_recipe(str(file), ["search="])[0].search is None


def test_a_smoke_run_tries_two_values(tmp_path: Path):
    grid = {"batch_size": [2, 4, 8], "budget.epochs": [1, 2]}
    file = searched(tmp_path, {"grid": grid, "seeds": [1, 2, 3], "folds": 10})
    search = resolve_recipe(str(file), smoke=True)[0].search
    assert search == ResolvedSearch({"batch_size": (2, 4)}, "accuracy", (1,), 2)


def test_what_a_mixture_reads_is_not_searched_over(tmp_path: Path):
    """Its evaluation rows are kept out of every corpus, so all stages would be others."""
    stages = [
        {"stage": "general", "corpora": {"smoke_general": 1.0}, "objectives": {"causal_lm": {}}},
        {
            "stage": "finetune",
            "dataset": "smoke_text",
            "head": {"sequence_to_sequence": {"prefix": "say:"}},
            "mixture": {"beside": {"smoke_labels": "name:"}},
        },
    ]
    file = tmp_path / "mixed.yaml"
    file.write_text(
        yaml.safe_dump({"name": "m", "family": "gpt2", "size": "tiny", "stages": stages})
    )
    same, other = {"smoke_labels": "label:"}, {"smoke_number": "number:"}
    for grid in ({"mixture.beside": [same, other]}, {"mixture": [{"beside": other}]}):
        with pytest.raises(RecipeError, match="datasets that the recipe reads, smoke_text, smoke_"):
            resolved(file, f"search={in_yaml({'grid': grid})}")
    assert resolved(file, f"search={in_yaml({'grid': {'mixture.beside': [same]}})}").trials == 1
