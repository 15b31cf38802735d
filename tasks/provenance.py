"""Which code and which process made a thing."""

from __future__ import annotations

import subprocess
from functools import cache

from fourstage.settings import REPOSITORY


@cache
def git_state() -> dict[str, str | bool | None]:
    """Commit of the code and whether files differ from it; None where this is no git checkout.

    MLflow's own git tags come from ``sys.argv[0]`` and are wrong under a Prefect worker.
    """
    commit = _git("rev-parse", "HEAD")
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
