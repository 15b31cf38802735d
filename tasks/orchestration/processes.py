"""Identity of the process that made a run, and whether it is alive."""

from __future__ import annotations

import os
import socket

HOST = "fourstage.host"
PROCESS = "fourstage.pid"
FLOW_RUN = "prefect.flow_run_id"
STARTED = "fourstage.process_started"  # pids are reused; with the start time, a process is unique
MARK = "process:"  # prefix of the tag with which a Prefect run is created


def identity() -> dict[str, str]:
    """Tags that identify this process."""
    import psutil

    started = psutil.Process().create_time()
    return {HOST: socket.gethostname(), PROCESS: str(os.getpid()), STARTED: f"{started:.2f}"}


def alive(tags: dict[str, str]) -> bool:
    """Whether the process in the tags may be alive; always true for another host."""
    import psutil

    if tags.get(HOST) != socket.gethostname():
        return True
    try:
        process = psutil.Process(int(tags[PROCESS]))
        started = process.create_time()
        gone = process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    # The tolerance allows for clock adjustments; pids are not reused that soon.
    return not gone and abs(started - float(tags[STARTED])) < 2


def mark() -> str:
    """A tag for Prefect runs that identifies this process."""
    return MARK + "/".join(identity().values())
