"""A stage that was made is read by its own vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from tasks.planning.made_stage import made_stage
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact, Findings, Store
from tasks.store.steps import Bound, bind


def test_a_stage_comes_with_the_vocabulary_that_it_was_trained_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    plan, store = plan_recipe("papers/ernie-tsinghua", smoke=True), Store(tmp_path)
    own = {
        name: WordPiece([*SPECIAL_TOKENS, name.replace(" ", "_")], lowercase=False)
        for name in ("tokenizer", "tokenizer graph")
    }
    made: dict[str, Artifact] = {}
    for name, step in plan.steps.items():

        def work(folder: Path, name: str = name) -> Findings:
            if name in own:
                own[name].save(folder)
            return Findings({})

        bound = bind(step, made)
        assert isinstance(bound, Bound)
        made[name], _ = store.make(step.kind, name, bound.preimage, work)
    for stage, vocabulary in (("graph", "tokenizer graph"), ("text", "tokenizer")):
        folder, tokenizer = made_stage(plan, stage, "embed")
        assert folder == made[f"stage {stage}"].folder
        assert tokenizer.digest == own[vocabulary].digest
