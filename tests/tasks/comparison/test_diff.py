"""Differences between versions: a version has the scores of its last evaluation."""

from __future__ import annotations

import json
from pathlib import Path

from tasks.comparison.diff import diff
from tasks.registry.register_model import register
from tasks.store.ancestry import gather
from tasks.store.artifacts import Findings
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import start_lifecycle
from tests.tasks.lifecycle import LABELS, Lifecycle


def test_a_version_that_was_evaluated_anew_has_its_new_scores(
    home: Path, tracking: Tracking, tmp_path: Path
):
    package = tmp_path / "package"
    (package / "saved_model").mkdir(parents=True)
    (package / "saved_model" / "saved_model.pb").touch()
    (package / "labels.json").write_text(json.dumps(LABELS))
    (package / "head.json").write_text(json.dumps({"answers": "label", "pairs": False}))
    made = Lifecycle(home, package=package)
    root, run = made.store.root, start_lifecycle(tracking, "relations")

    def registered() -> None:
        found = [gather(root, made[name]) for name in ("package", "evaluation")]
        register(tracking, found[0], name="relations", run_id=run, evaluation=found[1])

    registered()
    scores = {"metrics": {"accuracy": 0.25, "macro_f1": 0.2}, "answers": "label"}
    inputs = {"stage": "stage finetune", "rows": "tokens dataset relations"}
    asked = {"metrics": ["accuracy", "macro_f1"]}
    made.make("evaluation", "evaluation", asked, inputs, lambda _: Findings(scores))
    registered()
    found = diff(tracking, made.store, "relations/1", "relations@challenger").before
    assert {name: found.scores[name] for name in scores["metrics"]} == scores["metrics"]
    assert found.settings["evaluation"] == asked

    lost = made["evaluation"].folder
    lost.rename(lost.with_name("0" * 64))
    assert "accuracy" not in diff(tracking, made.store, "relations/1", "relations/1").before.scores
