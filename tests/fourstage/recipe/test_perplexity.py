"""Perplexity as a metric of a recipe: where it is told, and what is said where it is not."""

from pathlib import Path
from typing import Any

import pytest

from fourstage.errors import RecipeError
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import ResolvedRecipe
from fourstage.recipe.schema import Recipe

SOURCES = {
    "text": SourceFacts(labelled=False),
    "titles": SourceFacts(labelled=True, answers="text"),
    "chinese": SourceFacts(labelled=True, answers="text", spaced=False),
    "rows": SourceFacts(labelled=True),
}
BOTH = ["perplexity", "perplexity_a_word"]
WRITES = {"sequence_to_sequence": {}}


def resolved(
    head: dict[str, Any] = WRITES,
    dataset: str = "titles",
    stage: dict[str, Any] | None = None,
    folders: tuple[Path, ...] = (),
    **more: Any,
) -> ResolvedRecipe:
    causal = {"stage": "general", "corpora": {"text": 1.0}, "objectives": {"causal_lm": {}}}
    finetune = {"stage": "finetune", "dataset": dataset, "head": head, **(stage or {})}
    values = {"name": "x", "family": "gpt2", "size": "tiny", "stages": [causal, finetune], **more}
    return resolve(Recipe.model_validate(values), SOURCES, folders)


def test_it_is_measured_selects_and_searches_like_any_metric_of_texts():
    found = resolved(
        stage={"select": {"metric": "perplexity"}, "stop": {"patience": 2, "metric": "perplexity"}},
        evaluate={"metrics": [*BOTH, "chrf"]},
        search={"seeds": [1, 2]},
    )
    assert found.metrics == (*BOTH, "chrf")
    assert found.search is not None
    assert found.search.metric == "perplexity"


@pytest.mark.parametrize("place", ["evaluate", "search", "stop", "select"])
def test_a_head_that_does_not_write_has_none_and_which_does_is_told(place: str):
    said = {"metric": "perplexity"} | {"search": {"folds": 2}, "stop": {"patience": 2}}.get(
        place, {}
    )
    more = {"evaluate": {"metrics": ["perplexity"]}} if place == "evaluate" else {place: said}
    where = f"stages[1].{place}" if place in ("stop", "select") else place
    told = f"{where}.metric.*'perplexity' is not a metric here.* a head that writes has .*sequence_"
    of_stage = place in ("stop", "select")
    more = {"stage": more} if of_stage else more
    with pytest.raises(RecipeError, match=told.replace("[1]", r"\[1\]")):
        resolved({"sequence_classification": {}}, "rows", **more)


def test_a_projects_head_of_texts_has_none_unless_it_reads_targets(tmp_path: Path):
    (tmp_path / "heads").mkdir()
    file = tmp_path / "heads" / "copying.py"
    plain = "CHOOSES = 2\nANSWERS = 'text'\nclass Copying:\n    def __init__(self, context): ...\n"
    asked = {"folders": (tmp_path,), "evaluate": {"metrics": ["chrf", "perplexity"]}}
    file.write_text(plain, "utf-8")
    with pytest.raises(RecipeError, match="'perplexity' is not a metric here"):
        resolved({"copying": {}}, **asked)
    file.write_text(f"READS_TARGETS = True\n{plain}", "utf-8")
    assert resolved({"copying": {}}, **asked).metrics == ("chrf", "perplexity")


@pytest.mark.parametrize("metric", BOTH)
def test_it_does_not_choose_how_much_of_a_target_is_read(metric: str):
    grid = {"head.sequence_to_sequence.target_length": [4, 16]}
    with pytest.raises(RecipeError, match=f"{metric} measures only the part of each target"):
        resolved(evaluate={"metrics": [metric]}, search={"grid": grid})
    assert resolved(evaluate={"metrics": ["chrf", metric]}, search={"grid": grid}).search


def test_without_blanks_between_words_there_is_none_a_word():
    asked = {"evaluate": {"metrics": BOTH}}
    with pytest.raises(RecipeError, match=r"metrics\[1\]: the answers of chinese have no blanks"):
        resolved(dataset="chinese", **asked)
    assert resolved(dataset="chinese", evaluate={"metrics": BOTH[:1]}).metrics == ("perplexity",)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"not_below_champion_by": 0.1}, "'not_below_champion_by' is not a rule for perplexity"),
        ({"at_least": 0.1}, "'at_least' is not a rule for perplexity.*Of perplexity lower is"),
        ({"above": "cheap_baseline"}, "'above' is not a rule.*The cheap baseline has none"),
        ({"at_most": 0.5}, "perplexity.at_most: a perplexity is 1 or more, got 0.5"),
    ],
)
def test_the_gate_asks_for_a_low_one(rule: dict[str, Any], told: str):
    measured = {"evaluate": {"metrics": ["perplexity"], "slices": ["length"]}}
    with pytest.raises(RecipeError, match=told):
        resolved(**measured, promote={"model": "m", "require": {"perplexity": rule}})
    slices = {"require_slices": {"length": {"perplexity": {"not_above_champion_by": 1.0}}}}
    with pytest.raises(RecipeError, match="'not_above_champion_by' is not a rule for perplexity"):
        resolved(**measured, promote={"model": "m", **slices})
    asked = {"perplexity": {"at_most": 40.0, "not_above_champion_by": 2.5}}
    found = resolved(**measured, promote={"model": "m", "require": asked}).require["perplexity"]
    assert found["at_most"] == 40.0
    assert found["not_above_champion_by"]["margin"] == 2.5


def test_of_other_metrics_a_rise_is_no_fault():
    asked = {"chrf": {"not_above_champion_by": 0.1}}
    with pytest.raises(RecipeError, match="'not_above_champion_by' is not a rule for chrf"):
        resolved(evaluate={"metrics": ["chrf"]}, promote={"model": "m", "require": asked})
