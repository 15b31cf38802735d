"""Runs of MLflow that stay RUNNING though their process is gone: the next start closes them."""

from __future__ import annotations

import os
import socket

from fourstage.settings import EMBEDDED
from tasks.orchestration.orphans import crash, crash_unrecorded, over
from tasks.orchestration.processes import FLOW_RUN, HOST, alive
from tasks.tracking.connection import Tracking, every
from tasks.tracking.runs import experiment_ids, finish_run


def close_orphans(tracking: Tracking) -> list[str]:
    """Close the RUNNING runs whose process is gone, MLflow's and Prefect's.

    Whether a process of this machine is gone, the machine knows; of another one, such as a
    container that is no more, Prefect's server does, where there is one.

    Returns:
        Ids of the MLflow runs that became KILLED.
    """
    running = list(
        every(
            tracking.client.search_runs,
            experiment_ids(tracking),
            filter_string=f"attributes.status = 'RUNNING' AND tags.`{HOST}` LIKE '%'",
            max_results=1000,
        )
    )
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
    # One that was killed before it had a run in MLflow is known to Prefect alone. Where a server
    # stays, its automations look after the silent ones.
    if os.environ.get(EMBEDDED):
        crash_unrecorded()
    return [run.info.run_id for run in left]
