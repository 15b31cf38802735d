"""Corpora as inputs of runs: what MLflow takes of a source of many files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tasks.store.ancestry import gather
from tasks.tracking.connection import Tracking
from tasks.tracking.dataset_inputs import dataset_input
from tasks.tracking.runs import start_lifecycle
from tests.tasks.lifecycle import Lifecycle

URL = "https://example.org/shards"
FILES = [{"path": f"shards/part-{i:05}.jsonl.gz", "sha256": f"{i:064x}"} for i in range(1000)]


@pytest.mark.parametrize(
    "origin",
    [
        [{"url": URL, "commit": "ab" * 20, "files": FILES}],
        [{"url": f"{URL}/{file['path']}", "sha256": file["sha256"]} for file in FILES],
    ],
)
def test_a_source_of_a_thousand_files_is_an_input_of_a_run(
    lifecycle: Lifecycle, tracking: Tracking, origin: list[dict[str, Any]]
):
    found = gather(lifecycle.store.root, lifecycle["corpus trials"]).artifact
    source = {**found.source, "origin": origin}
    text = replace(found, notes={**found.notes, "source": source})
    run = start_lifecycle(tracking, "shards")
    tracking.client.log_inputs(run, datasets=[dataset_input(text, "training")])
    (logged,) = tracking.client.get_run(run).inputs.dataset_inputs
    told = json.loads(logged.dataset.source)
    assert told["url"].startswith(URL)
    assert told["licence"] == "CC0-1.0"
    assert told["origin"].startswith("1,000 files")
