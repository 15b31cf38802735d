"""Which process made a run, and whether it still lives."""

from __future__ import annotations

import os
import socket

HOST = "fourstage.host"
PROCESS = "fourstage.pid"
FLOW_RUN = "prefect.flow_run_id"
STARTED = (
    "fourstage.process_started"  # pids are used again; with its start time one is unmistakable
)
MARK = "process:"  # begins the tag by which a Prefect run is created


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


def mark() -> str:
    """A tag of Prefect's runs that names this process."""
    return MARK + "/".join(identity().values())
