"""Provenance: the code and the machine that made an artifact."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from fourstage.settings import REPOSITORY, is_clone


@cache
def git_state() -> dict[str, str | bool | None]:
    """Commit of the code, and whether tracked files differ from it; None outside a git checkout.

    An installed wheel has none, although its environment may lie in a checkout of other code.

    MLflow derives its own git tags from ``sys.argv[0]``; under a Prefect worker they are wrong.
    """
    commit = _git("rev-parse", "HEAD") if is_clone() else None
    if commit is None:
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(_git("status", "--porcelain", "--untracked-files=no"))}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, timeout=10
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def machine() -> dict[str, str | int]:
    """The machine of a timing: processor, cores available to this process, system."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8", "replace").splitlines() if cpuinfo.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": named[0] if named else platform.processor() or platform.machine(),
        "cores": allowed or 1,
        "system": platform.system(),
    }
