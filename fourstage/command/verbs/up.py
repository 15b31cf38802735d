"""``up``: runs the servers until Ctrl-C."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

HELP = "run a Prefect server, worker, deployments and MLflow's pages, until Ctrl-C"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    for server, what, port in (("prefect", "Prefect", 4200), ("mlflow", "MLflow", 5000)):
        parser.add_argument(
            f"--{server}-port",
            type=_port,
            default=port,
            metavar="PORT",
            help=f"port of {what}'s pages; default {port}",
        )


def handle(options: Namespace) -> int:
    """Start the servers and stay."""
    from fourstage.command.servers import up

    up(options.prefect_port, options.mlflow_port)
    return 0


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"expected a port, 1 to 65535, got {text[:40]!r}")
    return int(text)
