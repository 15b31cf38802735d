"""Final states of failed and refused flow runs, with the cause and the next command."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from fourstage.errors import (
    ContractViolation,
    Diverged,
    EnvironmentFault,
    GateRefused,
    Interrupted,
    RecipeError,
)
from tasks.orchestration.orphans import marked_in_a_file
from tasks.orchestration.run_log import told_in_its_log

OPTIONS = {  # command-line option by flow parameter
    "overrides": "--set",
    "accept_code_change": "--accept-code-change",
    "version": "--version",
    "approval_reason": "--approve",
    "equal": "--equal",
    "contrasts": "--contrast",
    "variants": "--variant",
    "minutes": "--minutes",
    "candidates": "--candidate",
    "without": "--without",
}

P = ParamSpec("P")
R = TypeVar("R")


def says_what_next(verb: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: let a flow fail with a message that names the command to run next.

    Prefect's default message is the exception's text, "run the same command"; the reader of a page
    does not know that command. The exception is the state's data, so callers see it raised.

    Args:
        verb: The command that does the same work as the flow.
    """

    def decorate(flow: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(flow, eval_str=True)

        @wraps(flow)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                with told_in_its_log(), marked_in_a_file():
                    return flow(*args, **kwargs)
            except (RecipeError, ContractViolation, GateRefused, EnvironmentFault) as error:
                given = signature.bind(*args, **kwargs).arguments
                told = f"{error}\nExit code {error.exit_code}. Next: {_next(error, verb, given)}"
                return cast(R, Failed(message=told, data=error))

        # Otherwise Prefect would resolve the flow's type names in this module.
        cast(Any, run).__signature__ = signature
        return run

    return decorate


def ended(
    decision: dict[str, Any], result: dict[str, Any] | None = None
) -> dict[str, Any] | State[dict[str, Any]]:
    """Final state or result of a flow that decided about a version.

    Args:
        decision: The decision, with reason, model and champion (None if there is none).
        result: The flow's result; default: the decision.
    """
    result = result or decision
    match decision.get("decision"):
        case "refuse":
            return refused(decision, result)
        case "wait":
            told = f"{decision['reason']}\nExit code 0. Nothing has moved until somebody approves."
            return Completed(name="AwaitingApproval", message=told, data=result)
    return result


def refused(decision: dict[str, Any], data: dict[str, Any] | None = None) -> State:
    """State of a run that moved no alias: Completed, so that no alarm is raised.

    Args:
        decision: The decision, with reason, model and champion (None if there is none).
        data: The flow's result; default: the decision.
    """
    address = shlex.quote(f"models:/{decision['model']['name']}@champion")
    champion = decision["champion"]
    stays = (
        f"champion version {champion} stays; `fourstage trace {address}` shows its lineage"
        if champion
        else "there is no champion"
    )
    told = (
        f"{decision['reason']}\nExit code {GateRefused.exit_code}. Next: no action needed,"
        f" {stays}. The report on this page gives the reason."
    )
    return Completed(name="Refused", message=told, data=data or decision)


def _next(error: Exception, verb: str, given: Mapping[str, Any]) -> str:
    again = f"`{_typed(verb, given)}`"
    match error:
        case Interrupted():
            return f"{again} resumes from the checkpoint."
        case Diverged():
            return f"change the recipe, then run {again}; finished steps are reused."
        case EnvironmentFault():
            return f"`fourstage doctor` shows the cause; fix it, then {again} continues."
    return f"fix this, then run {again}; finished steps are reused."


def _typed(verb: str, given: Mapping[str, Any]) -> str:
    """The command line for a flow's arguments."""
    refreshes = verb == "refresh" or given.get("new_data")
    words = ["fourstage", "run" if refreshes else verb, *given.get("recipes", ())]
    words += [str(given[name]) for name in ("recipe", "model") if name in given]
    words += ["--refresh"] if refreshes else []
    words += [f"--{name}" for name in ("smoke", "force") if given.get(name)]
    for name, option in OPTIONS.items():
        value = given.get(name) or ()
        for each in value if isinstance(value, list | tuple) else (value,):
            words += [option, str(each)]
    if seeds := given.get("seeds"):
        words += ["--seeds", ",".join(map(str, seeds))]
    return shlex.join(words)
