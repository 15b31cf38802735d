"""Runs whose process is gone: a kill leaves them RUNNING, and the next start closes them."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.tracking import Tracking

HOST = "fourstage.host"
PROCESS = "fourstage.pid"
STARTED = (
    "fourstage.process_started"  # pids are used again; with its start time one is unmistakable
)


def identity() -> dict[str, str]:
    """Tags that name this process."""
    import psutil

    started = psutil.Process().create_time()
    return {HOST: socket.gethostname(), PROCESS: str(os.getpid()), STARTED: f"{started:.2f}"}


def alive(tags: dict[str, str]) -> bool:
    """Whether the process that wrote the tags may still run; on another host it may."""
    import psutil

    if tags.get(HOST) != socket.gethostname():
        return True
    try:
        process = psutil.Process(int(tags[PROCESS]))
        started = process.create_time()
        gone = process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    # The clock may be set while the machine runs; pids come round slowly.
    return not gone and abs(started - float(tags[STARTED])) < 2


def janitor(tracking: Tracking) -> list[str]:
    """Close the RUNNING runs of this machine whose process is gone.

    Returns:
        Ids of the runs that became KILLED.
    """
    from tasks.tracking import experiment_ids, finish_run

    running = tracking.client.search_runs(
        experiment_ids(tracking),
        filter_string=f"attributes.status = 'RUNNING' AND tags.`{HOST}` = '{socket.gethostname()}'",
        max_results=1000,
    )
    closed = [run.info.run_id for run in running if not alive(run.data.tags)]
    for run_id in closed:
        finish_run(tracking, run_id, "KILLED")
    return closed
