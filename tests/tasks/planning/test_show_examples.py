"""Stages without examples to show say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.errors import RecipeError
from tasks.planning.plan import plan_recipe
from tasks.planning.show_examples import show_examples


@pytest.mark.parametrize("paper", ["ngram", "word2vec-skipgram", "glove"])
def test_what_trains_itself_has_no_batches_to_show(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    plan = plan_recipe(f"papers/{paper}", smoke=True)
    with pytest.raises(RecipeError, match=r"stage general: .* makes no batches of examples"):
        next(show_examples(plan, "general"))
