"""How often a dead run is started again; with a server and a worker in tests/flows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import TracebackType
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Crashed, Pending, Scheduled

from tasks.orchestration import dead_runs


class Server:
    """A server with one run, which dies before its flow begins."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self.states: list[State] = [Scheduled(), Pending(), Crashed()]
        facts = {
            "name": "nightly",
            "flow_id": uuid4(),
            "deployment_id": uuid4(),
            "tags": ["fourstage", "resumable"],
            "run_count": 0,
            "start_time": now,
            "end_time": now,
        }
        self.run = FlowRun.model_validate(facts)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        pass

    def read_flow_runs(self, *, offset: int = 0, **_: Any) -> list[FlowRun]:
        self.run.state = self.states[-1]
        return [] if offset else [self.run]

    def read_flow_run_states(self, run_id: UUID) -> list[State]:
        return self.states

    def set_flow_run_state(self, run_id: UUID, state: State) -> None:
        self.states += [state, Pending(), Crashed()]


def test_a_run_that_dies_before_it_begins_is_not_started_for_ever(monkeypatch: pytest.MonkeyPatch):
    server = Server()
    monkeypatch.setattr(dead_runs, "get_client", lambda **_: server)
    monkeypatch.setattr(dead_runs, "crash", list)
    resumed = [dead_runs.resume_dead_runs(3) for _ in range(4)]
    assert resumed == [["nightly"], ["nightly"], [], []]
