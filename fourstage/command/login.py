"""The login of the servers of ``fourstage up``, which keeps other users of the machine out."""

from __future__ import annotations

import os
import secrets
import shlex
from pathlib import Path

from fourstage.digests import write_atomically
from fourstage.settings import home

USER = "fourstage"
OTHERS = 0o077  # bits of a file's mode that grant access to others


def new_login() -> str:
    """A random ``user:password``."""
    return f"{USER}:{secrets.token_urlsafe(24)}"


def login_file() -> Path:
    """The file with the login of this home; regenerated if others could have read it."""
    file = home() / "login"
    if not file.is_file() or file.stat().st_mode & OTHERS or file.stat().st_uid != os.getuid():
        write_atomically(file, new_login() + "\n", mode=0o600)
    return file


def write_joining(prefect: str) -> Path:
    """Write the file that another terminal sources to connect; it does not contain the login.

    Args:
        prefect: Address of Prefect's API.
    """
    file = home() / "servers.env"
    login = shlex.quote(str(login_file()))
    text = (
        "# To be sourced: runs of a terminal then join the servers of `fourstage up`.\n"
        f"export PREFECT_API_URL={prefect}\n"
        f'export PREFECT_API_AUTH_STRING="$(cat {login})"\n'
        # For Prefect's and MLflow's own commands, whose telemetry is on by default.
        "export DO_NOT_TRACK=${DO_NOT_TRACK:-true}\n"
    )
    write_atomically(file, text, mode=0o600)
    return file
