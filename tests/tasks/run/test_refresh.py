"""What counts as new text when a stage goes on night after night; with flows in tests/flows."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tasks.planning.plan import plan_recipe
from tasks.run.recipe_run import TASKS, RecipeRun
from tasks.run.refresh import go_on_with_new_text, keep_what_stays
from tasks.store.artifacts import Artifact, Findings, store
from tasks.store.history import remember
from tasks.tracking.connection import Tracking
from tests.flows.own_project import Project, document


class Night(RecipeRun):
    """A run whose steps are made in this process, and whose stages learn nothing."""

    def make(self, name: str) -> Artifact:
        if name not in self.made:
            bound = self._bound(name)
            if bound.step.kind == "stage":
                made_from = bound.made_from
                store().make("stage", name, bound.preimage, lambda _: Findings(), made_from)
            else:
                TASKS[bound.step.kind].fn(bound)
            found = store().find(bound.step.kind, bound.key)
            assert isinstance(found, Artifact), found
            self.made[name] = found
        return self.made[name]


def night(recipe: Path, *overrides: str) -> Night:
    """A run that goes on from the last one, up to the stage ``domain``."""
    run = Night(plan_recipe(str(recipe), overrides), cast(Tracking, None), "")
    keep_what_stays(run)
    run.make_all("corpus", "tokenizer", "tokens")
    _, domain, *_ = run.plan.recipe.stages
    go_on_with_new_text(run, domain)
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
