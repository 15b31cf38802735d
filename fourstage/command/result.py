"""The result of a verb about a registered model, and its exit code."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from fourstage.command.output import only_results, print_line, tell
from fourstage.errors import GateRefused
from fourstage.settings import make_home


def print_result(options: Namespace, work: Callable[[], object]) -> int:
    """Do the work; print the result as the object of ``--json``, or as lines of text."""
    make_home()
    with only_results(options.json, "registry") as say:
        found = work()
        say(found)
    decision = found if isinstance(found, dict) else {}
    refused = decision.get("decision") == "refuse"
    if refused:
        tell(f"fourstage: {decision['reason']}")
    elif not options.json:
        print_line(_line(found))
    for warning in decision.get("warnings", []):
        tell(f"Warning: {warning}")
    return GateRefused.exit_code if refused else 0


def _line(found: object) -> str:
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
