"""``up``: runs the servers until Ctrl-C."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import Any


def add(verbs: Any) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "up", help="run a Prefect server, worker, deployments and MLflow's pages, until Ctrl-C"
    )
    parser.add_argument("--prefect-port", type=_port, default=4200, metavar="PORT")
    parser.add_argument("--mlflow-port", type=_port, default=5000, metavar="PORT")
    parser.set_defaults(handler=handle_up)


def handle_up(options: Namespace) -> int:
    """Start the servers and stay."""
    from fourstage.command.up import up

    up(options.prefect_port, options.mlflow_port)
    return 0


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"expected a port, 1 to 65535, got {text[:40]!r}")
    return int(text)
