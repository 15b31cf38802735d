"""Stages without examples to show say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.errors import EnvironmentFault, RecipeError
from tasks.planning.plan import plan_recipe
from tasks.planning.show_examples import show_examples
from tests.flows.own_project import Project, recipe, stages


@pytest.mark.parametrize("paper", ["ngram", "word2vec-skipgram", "glove"])
def test_what_trains_itself_has_no_batches_to_show(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    plan = plan_recipe(f"papers/{paper}", smoke=True)
    with pytest.raises(RecipeError, match=r"stage general: .* makes no batches of examples"):
        next(show_examples(plan, "general"))


def test_a_stage_is_shown_by_its_own_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    project, (general, *_) = Project(tmp_path / "own"), stages()
    own = {"name": "own", "tokenizer": {"vocabulary_size": 300}, "corpora": {"letters": 1.0}}
    later = {"name": "later", "family": "bert", "size": "tiny", "corpora": {"notes": 1.0}}
    whole = recipe("two", stages=[general | own, general | later], promote=None, evaluate=None)
    with pytest.raises(EnvironmentFault, match="show: tokenizer own, tokens letters not made"):
        next(show_examples(plan_recipe(str(project.recipe(whole))), "own"))
