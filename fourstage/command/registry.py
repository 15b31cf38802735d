"""``evaluate``, ``promote``, ``rollback``: the commands about a registered model."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import Any

from fourstage.command.embedded_prefect import prefect_ready, server_named
from fourstage.command.options import add_json, add_model, add_recipe
from fourstage.command.output import only_this_on_standard_output, print_line, tell
from fourstage.command.recipe import resolved_recipe
from fourstage.command.required_servers import require_servers
from fourstage.errors import GateRefused
from fourstage.settings import make_home
from fourstage.terminal import libraries_speak_to, new_log


def add(verbs: Any) -> None:
    """Add the verbs."""
    evaluate = verbs.add_parser("evaluate", help="score a recipe's last stage again")
    add_recipe(evaluate)
    add_json(evaluate)
    evaluate.set_defaults(handler=handle_evaluate)

    promote = verbs.add_parser("promote", help="make a version the champion, if it passes its gate")
    add_model(promote)
    promote.add_argument("--version", type=_version, help="a version; default: the challenger")
    promote.add_argument("--force", action="store_true", help="even if the gate refuses; recorded")
    promote.add_argument(
        "--approve",
        type=_reason,
        metavar="WHY",
        help="approve a version that waits for approval; recorded with your name",
    )
    add_json(promote)
    promote.set_defaults(handler=handle_promote)

    rollback = verbs.add_parser("rollback", help="make the previous champion the champion again")
    add_model(rollback)
    add_json(rollback)
    rollback.set_defaults(handler=handle_rollback)


def handle_evaluate(options: Namespace) -> int:
    """Evaluate the recipe's finetune stage."""
    resolved_recipe(options.recipe, options)
    require_servers()

    def work() -> Any:
        with prefect_ready():
            from flows.evaluate import evaluate
        return evaluate(options.recipe, options.overrides, options.smoke)

    return _run(options, work)


def handle_promote(options: Namespace) -> int:
    """Promote a version."""
    require_servers()

    by = _who() if options.approve is not None else None
    asked = (options.model, options.version, options.force, by, options.approve or "")

    def work() -> Any:
        if not server_named():
            from tasks.registry.decision import promotion_refused

            if refusal := promotion_refused(*asked):
                return refusal
        with prefect_ready():
            from flows.promote import promote
        return promote(*asked)

    return _run(options, work)


def handle_rollback(options: Namespace) -> int:
    """Go back to the previous champion."""
    require_servers()

    def work() -> Any:
        if not server_named():
            from tasks.registry.decision import rollback_refused

            if refusal := rollback_refused(options.model):
                return refusal
        with prefect_ready():
            from flows.rollback import rollback
        return rollback(options.model)

    return _run(options, work)


def _run(options: Namespace, work: Callable[[], Any]) -> int:
    """Do the work; print the result as the object of ``--json``, or as lines of text."""
    make_home()
    with (
        only_this_on_standard_output(options.json) as say,
        libraries_speak_to(new_log("registry")),
    ):
        found = work()
        say(found)
    refused = isinstance(found, dict) and found.get("decision") == "refuse"
    if refused:
        tell(f"fourstage: {found['reason']}")
    elif not options.json:
        print_line(_line(found))
    if isinstance(found, dict):
        for warning in found.get("warnings", []):
            tell(f"Warning: {warning}")
    return GateRefused.exit_code if refused else 0


def _line(found: Any) -> str:
    if not isinstance(found, dict):
        return str(found)
    if found.get("decision") in ("promote", "keep"):
        model = found["model"]
        champion = "the champion" + (" already" if found["decision"] == "keep" else "")
        return f"{model['name']} version {model['version']} is {champion}: {found['reason']}"
    if "reason" in found:
        return found["reason"]
    plain = {name: value for name, value in found.items() if not isinstance(value, (dict, list))}
    return "  ".join(f"{name} {value}" for name, value in plain.items())


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
