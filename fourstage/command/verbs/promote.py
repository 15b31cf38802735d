"""``promote``: makes a version the champion."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from fourstage.command.embedded_prefect import prefect_ready, server_named
from fourstage.command.options import add_json, add_model
from fourstage.command.required_servers import require_servers
from fourstage.command.result import print_result

HELP = "make a version the champion, if it passes its gate"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_model(parser)
    parser.add_argument("--version", type=_version, help="a version; default: the challenger")
    parser.add_argument(
        "--force", action="store_true", help="promote even if the gate refuses; this is recorded"
    )
    parser.add_argument(
        "--approve",
        type=_reason,
        metavar="WHY",
        help="approve a version that waits for approval; WHY is recorded with your name",
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Promote a version."""
    require_servers()

    by = _who() if options.approve is not None else None
    asked = (options.model, options.version, options.force, by, options.approve or "")

    def work() -> object:
        if not server_named():
            from tasks.registry.decision import promotion_refused

            if refusal := promotion_refused(*asked):
                return refusal
        with prefect_ready():
            from flows.promote import promote
        return promote(*asked)

    return print_result(options, work)


def _who() -> str:
    return os.environ.get("LOGNAME") or os.environ.get("USER") or f"user {os.getuid()}"


def _reason(text: str) -> str:
    if not text.strip():
        raise ArgumentTypeError("expected a reason for the approval, got an empty text")
    return text


def _version(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"expected a version number, got {text[:40]!r}")
    return int(text)
