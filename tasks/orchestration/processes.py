"""Identity of the process that made a run, and whether it is alive."""

from __future__ import annotations

import os
import socket
from pathlib import Path

HOST = "fourstage.host"
PROCESS = "fourstage.pid"
FLOW_RUN = "prefect.flow_run_id"
STARTED = "fourstage.process_started"  # pids are reused; with the start time, a process is unique
MARK = "process:"  # prefix of the tag with which a Prefect run is created


def identity() -> dict[str, str]:
    """Tags that identify this process."""
    return {HOST: socket.gethostname(), PROCESS: str(os.getpid()), STARTED: _started(os.getpid())}


def alive(tags: dict[str, str]) -> bool:
    """Whether the process in the tags may be alive; always true for another host."""
    import psutil

    if tags.get(HOST) != socket.gethostname():
        return True
    pid = int(tags[PROCESS])
    try:
        gone = psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        return not gone and _started(pid) == tags[STARTED]
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return False


def _started(pid: int) -> str:
    """When a process started: on Linux a count of the kernel, which setting the clock leaves."""
    import psutil

    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return f"{psutil.Process(pid).create_time():.2f}"
    # Field 22, starttime, in ticks since boot; field 2 is a name that may have blanks (proc(5)).
    after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
    return f"{boot}+{int(after_name.split()[19])}"


def mark() -> str:
    """A tag for Prefect runs that identifies this process."""
    return MARK + "/".join(identity().values())
