"""The Prefect server that ``PREFECT_API_URL`` names, asked once before any work."""

from __future__ import annotations

import os
import urllib.error
import urllib.request

from fourstage.errors import EnvironmentFault
from fourstage.settings import without_credentials

SECONDS = 10


def require_prefect() -> None:
    """Pass where no server is asked for, or the one asked for answers.

    Prefect itself would raise a ``RuntimeError`` in the middle of the first flow.

    Raises:
        EnvironmentFault: If it does not answer; the message holds no credentials.
    """
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        return
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=SECONDS):
            return
    except urllib.error.HTTPError:
        return  # it answers; whether it lets us in, Prefect finds out
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise EnvironmentFault(
            f"PREFECT_API_URL={without_credentials(address)} does not answer ({reason}). Start it,"
            " for one on this machine with `fourstage up`, or unset PREFECT_API_URL to run without"
            " a server."
        ) from error
