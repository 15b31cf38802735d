"""What a finished run has in MLflow beside its scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from tasks.store.artifacts import Findings
from tasks.store.predictions import WORD_REGIONS
from tasks.tracking.connection import Tracking
from tasks.tracking.record_results import record_results
from tasks.tracking.runs import start_lifecycle
from tests.tasks.lifecycle import Lifecycle

SEEN = [{"id": "dev/1", "tokens": ["[CLS]", "a", "[SEP]"], "attention": [[1.0], [1.0], [1.0]]}]
NAMES = {"names": {"found": 8, "linked": 6}, "tokens": {"train": 20, "heldout": 4}}


def _measure(folder: Path) -> Findings:
    (folder / WORD_REGIONS).write_text(json.dumps(SEEN), encoding="utf-8")
    return Findings({"heldout_loss": {}, "heldout_loss_a_character": {}})


def test_pictures_of_words_and_shares_of_linked_names_are_recorded(
    lifecycle: Lifecycle, tracking: Tracking, home: Path
):
    text = {"data": "corpus trials", "tokenizer": "tokenizer"}
    lifecycle.make("tokens", "tokens named", {}, text, lambda _: Findings(NAMES))
    read = {"stage": "stage general", "tokens named": "tokens named"}
    lifecycle.make("measurement", "measurement general", {}, read, _measure)
    run = start_lifecycle(tracking, "papers/uniter", resolved="name: uniter\n")
    made = {name: lifecycle[name] for name in ("measurement general", "evaluation")}
    assert record_results(tracking, run, resolve(load_recipe("papers/uniter", smoke=True)), made)
    files = {file.path for file in tracking.client.list_artifacts(run, "evaluation")}
    assert files == {"evaluation/word_regions_measurement_general.png"}
    (drawn,) = home.rglob("word_regions_measurement_general.png")
    assert drawn.read_bytes().startswith(b"\x89PNG")
    logged = tracking.client.get_run(run).data.metrics
    assert logged["names_linked/named"] == pytest.approx(6 / 8)
    assert logged["names_linked_a_token/named"] == pytest.approx(6 / 24)
