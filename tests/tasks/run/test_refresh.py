"""What counts as new text when a stage goes on night after night; with flows in tests/flows."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import cast

import pytest

from data_contracts.suite import BUILT_IN
from tasks.planning.plan import plan_recipe
from tasks.run.recipe_run import TASKS, RecipeRun
from tasks.run.refresh import go_on_with_new_text, keep_what_stays
from tasks.store.artifacts import Artifact, Findings, store
from tasks.store.history import remember
from tasks.store.kept import quarantined
from tasks.tracking.connection import Tracking
from tests.flows.own_project import FIELDS, Project, document


class Night(RecipeRun):
    """A run whose steps are made in this process, and whose stages learn nothing."""

    def make(self, name: str) -> Artifact:
        if name not in self.made:
            bound = self.bound(name)
            if bound.step.kind == "stage":
                made_from = bound.made_from
                store().make("stage", name, bound.preimage, lambda _: Findings(), made_from)
            else:
                TASKS[bound.step.kind].fn(bound)
            found = store().find(bound.step.kind, bound.key)
            assert isinstance(found, Artifact), found
            self.made[name] = found
        return self.made[name]


def night(recipe: Path, *overrides: str, stage: int = 1) -> Night:
    """A run that goes on from the last one, up to the stage ``domain``, its first or second."""
    run = Night(plan_recipe(str(recipe), overrides), cast(Tracking, None), "")
    keep_what_stays(run)
    run.make_all("corpus", "tokenizer", "tokens")
    go_on_with_new_text(run, run.plan.recipe.stages[stage])
    run.make("stage domain")
    remember(run.plan.recipe.name, run.made)
    return run


def test_little_new_text_adds_up_until_it_fills_a_batch(home: Path, tmp_path: Path):
    project = Project(tmp_path / "project")
    recipe = project.folder / "recipes" / "small.yaml"
    first = night(recipe).made["stage domain"]
    nights = []
    while not nights or nights[-1].made["stage domain"].key == first.key:
        assert len(nights) < 5, "what came before is not counted"
        numbers = range(3000 + 100 * len(nights), 3040 + 100 * len(nights))
        new = [document(number, sentences=1) for number in numbers]
        project.lines("letters.jsonl", new, mode="a")
        nights.append(night(recipe))
    assert len(nights) > 1
    fresh = nights[-1].plan.steps["stage domain"].inputs["tokens letters"]
    assert fresh == "fresh tokens letters"
    # All that came since the stage read the text, not only what this night brought.
    assert nights[-1].made[fresh].facts["tokens"]["train"] > 1_000


def test_a_corpus_with_hardly_any_new_text_is_read_whole_beside_another(home: Path, tmp_path: Path):
    project = Project(tmp_path / "project")
    recipe = project.folder / "recipes" / "small.yaml"
    first = night(recipe).made["stage domain"]
    project.lines("letters.jsonl", [document(3000, sentences=1)], mode="a")
    both = night(recipe, "stages.domain.corpora={letters: 0.5, notes: 0.5}")
    assert both.made["stage domain"].key != first.key
    inputs = both.plan.steps["stage domain"].inputs
    assert (inputs["tokens letters"], inputs["tokens notes"]) == ("tokens letters", "tokens notes")


def test_a_stage_that_goes_on_starts_from_no_vectors(home: Path, tmp_path: Path):
    project = Project(tmp_path / "project")
    recipe = project.folder / "recipes" / "small.yaml"
    start = "stages.domain.starts_from={embeddings: word2vec}"
    alone = ("stages.general=", start, "family=bert", "stages.domain.objectives={masked_lm: {}}")
    first = night(recipe, *alone, stage=0)
    assert first.made["stage domain"].inputs["start of embeddings"]["kind"] == "vectors"
    new = [document(number) for number in range(3000, 3200)]
    project.lines("letters.jsonl", new, mode="a")
    second = night(recipe, *alone, stage=0)
    goes_on = second.made["stage domain"].inputs
    assert goes_on["stage before"]["key"] == first.made["stage domain"].key
    assert "start of embeddings" not in goes_on
    assert "vectors domain" not in second.made


def test_documents_that_were_quarantined_are_new_once_the_contract_lets_them_in(
    home: Path, tmp_path: Path
):
    project = Project(tmp_path / "project")
    recipe = project.folder / "recipes" / "small.yaml"
    project.lines("letters.jsonl", map(document, range(4000, 4040)), mode="a")
    project.lines("letters.jsonl", [document(n, sentences=9) for n in range(5000, 5040)], mode="a")
    lengths = {"column": "num_chars", "max_value": 450}
    short = {"id": "short", "type": "expect_column_values_to_be_between", "kwargs": lengths}
    suite = project.folder / "suites" / "short.json"
    suite.parent.mkdir()
    project.source(
        "letters", files=["data/letters.jsonl"], fields=FIELDS, contract=["corpus", "short"]
    )
    corpus = json.loads((BUILT_IN / "corpus.json").read_text("utf-8")) | {"tolerance": 0.5}
    (suite.parent / "corpus.json").write_text(json.dumps(corpus), "utf-8")
    suite.write_text(json.dumps({"name": "short", "expectations": [short]}), "utf-8")
    first = night(recipe).made
    aside = quarantined(first["contract letters"].as_input())
    assert {name[:3] for name in aside} == {"d50"}
    short["id"] = "brief"
    suite.write_text(json.dumps({"name": "short", "expectations": [short]}), "utf-8")
    assert night(recipe).made["stage domain"].key == first["stage domain"].key
    lengths["max_value"] = 4500
    suite.write_text(json.dumps({"name": "short", "expectations": [short]}), "utf-8")
    second = night(recipe)
    assert second.made["corpus letters"].key == first["corpus letters"].key
    fresh = second.made["fresh tokens letters"].facts["documents"]
    assert fresh == len(aside) == 40
    assert second.made["stage domain"].key != first["stage domain"].key
    third = night(recipe)
    assert third.made["stage domain"].key == second.made["stage domain"].key


def test_a_damaged_vocabulary_is_told_and_no_stage_with_it_is_kept(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    project = Project(tmp_path / "project")
    recipe = project.folder / "recipes" / "small.yaml"
    first = night(recipe).made
    project.lines("notes.jsonl", map(document, range(6000, 6040)), mode="a")
    damaged = first["tokenizer"]
    (damaged.folder / min(damaged.outputs)).write_text("?")
    second = night(recipe)
    assert second.made["stage general"].key != first["stage general"].key
    told = second.told["lost"]
    assert len(told) == 2
    assert re.match("tokenizer of an earlier run is lost .output damaged: store/tokenizer", told[0])
    assert all(each in capsys.readouterr().err for each in [told[0]])
    kept = night(recipe)
    assert "lost" not in kept.told
    assert kept.made["stage general"].key == second.made["stage general"].key


def test_what_goes_on_from_a_run_with_other_settings_is_told(home: Path, tmp_path: Path):
    project = Project(tmp_path / "project")
    recipe = project.folder / "recipes" / "small.yaml"
    night(recipe, "stages.domain.budget.steps=10")
    project.lines("letters.jsonl", map(document, range(2000, 2200)), mode="a")
    for _ in range(2):  # the second goes on from one with a share of the recipe's budget
        (told,) = night(recipe).told["lost"]
        assert told.startswith("stage domain of an earlier run, which is kept or continued, was")
        assert "10 → 20" in told
        project.lines("letters.jsonl", map(document, range(3000, 3200)), mode="a")
    assert "lost" not in night(recipe, "stages.domain.budget.steps=10").told


def test_a_corpus_that_is_gone_is_told_and_counts_as_new(home: Path, tmp_path: Path):
    project = Project(tmp_path / "project")
    recipe = project.folder / "recipes" / "small.yaml"
    first = night(recipe).made
    project.lines("letters.jsonl", map(document, range(2000, 2040)), mode="a")
    shutil.rmtree(first["corpus letters"].folder)
    second = night(recipe)
    assert second.told["lost"] == [
        "corpus letters of an earlier run is lost (gone from the store), so nothing goes on from it"
    ]
    assert second.plan.steps["stage domain"].inputs["tokens letters"] == "tokens letters"
