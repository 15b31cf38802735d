"""The servers that the environment names, asked once before any work."""

from __future__ import annotations

import os
import urllib.error
import urllib.request

from fourstage.errors import EnvironmentFault
from fourstage.settings import mlflow_uri, without_credentials

SECONDS = 10


def require_servers() -> None:
    """Pass where no server is asked for, or those asked for answer.

    Prefect itself would raise a ``RuntimeError`` in the middle of the first flow, and MLflow is met
    only after half a minute of starting everything else.

    Raises:
        EnvironmentFault: If one does not answer; the message holds no credentials.
    """
    if address := os.environ.get("PREFECT_API_URL"):
        _require(
            "PREFECT_API_URL",
            address,
            "Start it, for one on this machine with `fourstage up`, or unset PREFECT_API_URL to run"
            " without a server.",
        )
    if mlflow_uri().startswith(("http://", "https://")):
        _require(
            "MLFLOW_TRACKING_URI",
            mlflow_uri(),
            "Start it, or unset MLFLOW_TRACKING_URI to run without a server, on SQLite under the"
            " home.",
        )


def _require(variable: str, address: str, remedy: str) -> None:
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=SECONDS):
            return
    except urllib.error.HTTPError:
        return  # it answers; whether it lets us in, its own client finds out
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise EnvironmentFault(
            f"{variable}={without_credentials(address)} does not answer ({reason}). {remedy}"
        ) from error
