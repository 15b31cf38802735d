"""Contract results in MLflow and Prefect: a metric per expectation, an event if new data drifted.

Only numbers and the names of expectations leave the store, no ids and no labels.
"""

from __future__ import annotations

import json

from data_contracts.verdict import Report, Result
from tasks.store.artifacts import Artifact
from tasks.store.step_names import subject_of
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import log_history, metric_name

DRIFT = "fourstage.drift"


def record_contract(tracking: Tracking, run_id: str, contract: Artifact, status: str) -> None:
    """Log the value of each expectation, and emit a drift event if new data drifted.

    For a reused contract, the run that made it has emitted the event.

    Args:
        tracking: The MLflow connection.
        run_id: The lifecycle run.
        contract: The artifact of a contract, whatever its verdict.
        status: ``made`` or ``reused``.
    """
    report = Report.from_json(json.loads(contract.path("report.json").read_text(encoding="utf-8")))
    subject = subject_of(contract.name)
    drifted = [r for r in report.results if r.drift and r.status == "failed"]
    if drifted and status == "made":  # before logging: after a failure, the contract is reused
        from tasks.orchestration.events import announce

        counts = {level: _count(drifted, level) for level in ("critical", "warning", "info")}
        values = {f"value.{r.id}": r.value for r in drifted if r.value is not None}
        announce(DRIFT, "source", subject, **counts, **values)
    found = {
        metric_name(f"contract/{subject}/{result.id}"): result.value
        for result in report.results
        if result.value is not None
    }
    log_history(tracking, run_id, [{"step": 0, **found}])


def _count(results: list[Result], severity: str) -> int:
    return sum(result.severity == severity for result in results)
