"""Contracts in the lifecycle's run: numbers to follow, and an event where data drifted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest
from prefect.events.clients import AssertingEventsClient
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.testing.fixtures import asserting_events_worker  # noqa: F401

from data_contracts.check import check, load_suite
from data_contracts.suite import joined
from tasks.run.contract_trend import DRIFT, record_contract
from tasks.store.artifacts import Artifact, Findings, Store
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import start_lifecycle


@pytest.fixture(autouse=True)
def _server() -> Iterator[None]:
    """Named and not asked: where none is named, who sends an event starts one."""
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        yield


def documents(lengths: list[int]) -> pandas.DataFrame:
    ids = [f"zqxcanary{n}" for n in range(len(lengths))]
    return pandas.DataFrame({"id": ids, "num_chars": lengths, "split": "train"})


def contract(home: Path, lengths: list[int]) -> Artifact:
    suite = joined([load_suite("corpus"), load_suite("drift_corpus")])
    report = check(documents(lengths), suite, subject="notes", reference=documents([100] * 200))

    def work(folder: Path) -> Findings:
        (folder / "report.json").write_text(json.dumps(report.to_json()))
        return Findings()

    return Store(home).make("contract", "contract notes", {"lengths": lengths}, work)[0]


def events(worker: EventsWorker) -> list:
    worker.wait_until_empty()
    assert isinstance(worker._client, AssertingEventsClient)
    sent = getattr(worker._client, "events", [])  # not there before the first one
    return [event for event in sent if event.event == DRIFT]


def test_each_promise_has_a_number_and_drift_an_event_once(
    tracking: Tracking,
    home: Path,
    asserting_events_worker: EventsWorker,  # noqa: F811
):
    run = start_lifecycle(tracking, "demo", resolved="name: demo\n")
    record_contract(tracking, run, contract(home, [100] * 199 + [0]), "made")
    metrics = tracking.client.get_run(run).data.metrics
    assert metrics["contract/notes/text_present"] == 1 / 200
    assert metrics["contract/notes/text_long_enough"] == 100.0
    assert metrics["contract/notes/lengths_near"] == 0.0
    assert "contract/notes/script_right" not in metrics  # the profile has no such column
    assert not events(asserting_events_worker)
    again = start_lifecycle(tracking, "demo", resolved="name: demo\n")
    record_contract(tracking, again, contract(home, [140] * 200), "made")
    assert tracking.client.get_run(again).data.metrics["contract/notes/lengths_near"] == 40 / 30
    (event,) = events(asserting_events_worker)
    assert event.resource.id == "fourstage.source.notes"
    assert (event.payload["critical"], event.payload["warning"]) == (1, 1)
    assert event.payload["value.lengths_near"] == 40 / 30
    assert "zqxcanary" not in event.model_dump_json()
    next_night = start_lifecycle(tracking, "demo", resolved="name: demo\n")
    record_contract(tracking, next_night, contract(home, [140] * 200), "reused")
    assert (
        tracking.client.get_run(next_night).data.metrics["contract/notes/lengths_near"] == 40 / 30
    )
    assert events(asserting_events_worker) == [event]
