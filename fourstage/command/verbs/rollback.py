"""``rollback``: makes the previous champion the champion again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fourstage.command.embedded_prefect import prefect_ready, server_named
from fourstage.command.options import add_json, add_model
from fourstage.command.required_servers import require_servers
from fourstage.command.result import print_result

HELP = "make the previous champion the champion again"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_model(parser)
    add_json(parser)


def handle(options: Namespace) -> int:
    """Go back to the previous champion."""
    require_servers()

    def work() -> object:
        if not server_named():
            from tasks.registry.decision import rollback_refused

            if refusal := rollback_refused(options.model):
                return refusal
        with prefect_ready():
            from flows.rollback import rollback
        return rollback(options.model)

    return print_result(options, work)
