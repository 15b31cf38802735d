"""Orphans: MLflow runs that are still RUNNING although their process is gone."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from fourstage.settings import EMBEDDED
from tasks.orchestration.orphans import crash, crash_unrecorded, over
from tasks.orchestration.processes import FLOW_RUN, HOST, alive
from tasks.tracking.connection import Tracking, answered, every
from tasks.tracking.runs import experiment_ids, finish_run
from tasks.tracking.tags import HOME

if TYPE_CHECKING:
    from mlflow.entities import Run


def close_orphans(tracking: Tracking) -> list[str]:
    """Close RUNNING runs whose process is gone, in MLflow and Prefect.

    Processes of this machine are looked up directly. For those of other machines, such as a removed
    container, Prefect's server is asked, if there is one.

    Returns:
        Ids of the MLflow runs that were marked KILLED.
    """
    running = _running(tracking)
    left = [run for run in running if not alive(run.data.tags)]
    silent = [run for run in running if run.data.tags[HOST] != socket.gethostname()]
    gone = over({run.data.tags[FLOW_RUN] for run in silent if FLOW_RUN in run.data.tags})
    ended = {run.info.run_id for run in silent if run.data.tags.get(FLOW_RUN) in gone}
    left += [
        run for run in silent if {run.info.run_id, run.data.tags.get("mlflow.parentRunId")} & ended
    ]
    for run in left:
        finish_run(tracking, run.info.run_id, "KILLED")
    crash(run.data.tags[FLOW_RUN] for run in left if FLOW_RUN in run.data.tags)
    # A run that was killed before it had an MLflow run is known only to Prefect. A permanent
    # server's automations handle it.
    if os.environ.get(EMBEDDED):
        crash_unrecorded()
    return [run.info.run_id for run in left]


@answered
def going_on(tracking: Tracking) -> list[Run]:
    """The RUNNING runs of this home whose process may be alive."""
    # Older code named no home in the runs of a lifecycle.
    return [
        run
        for run in _running(tracking)
        if run.data.tags.get(HOME, tracking.home) == tracking.home and alive(run.data.tags)
    ]


def _running(tracking: Tracking) -> list[Run]:
    """All RUNNING runs that say which process made them."""
    return list(
        every(
            tracking.client.search_runs,
            experiment_ids(tracking),
            filter_string=f"attributes.status = 'RUNNING' AND tags.`{HOST}` LIKE '%'",
            max_results=1000,
        )
    )
