"""``run``: runs a recipe through all its stages."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from importlib import import_module

from fourstage.command.embedded_prefect import prefect_ready
from fourstage.command.options import add_json, add_recipe
from fourstage.command.output import only_this_on_standard_output
from fourstage.command.recipe import resolved_recipe
from fourstage.command.required_servers import require_servers
from fourstage.errors import ContractViolation, EnvironmentFault, GateRefused, RecipeError
from fourstage.settings import home, make_home
from fourstage.terminal import libraries_speak_to, new_log, say

HELP = "run a recipe through all its stages"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    add_json(parser)
    parser.add_argument(
        "--accept-code-change",
        action="append",
        default=[],
        metavar="STAGE",
        help="reuse a finished stage although the code that made it has changed; recorded",
    )


def handle(options: Namespace) -> int:
    """Run the lifecycle; a refused gate is exit code 4."""
    resolved = resolved_recipe(options.recipe, options)
    if len(resolved.seeds) > 1:
        say(
            f"{resolved.name} has {len(resolved.seeds)} seeds; `run` takes the first,"
            f" {resolved.seeds[0]}; `fourstage compare` takes them all"
        )
    require_servers()
    make_home()
    with (
        only_this_on_standard_output(options.json) as print_object,
        libraries_speak_to(new_log("run")),
    ):
        with prefect_ready():
            from flows.lifecycle import lifecycle

            _import_ahead(options)
        from tasks.reports.narration import tell_summary

        summary = lifecycle(
            options.recipe,
            options.overrides,
            options.smoke,
            accept_code_change=options.accept_code_change,
        )
        assert isinstance(summary, dict)
        tell_summary(summary, _as_typed(options))
        print_object(summary)
    gate = summary.get("gate") or {}
    return GateRefused.exit_code if gate.get("decision") == "refuse" else 0


def _import_ahead(options: Namespace) -> None:
    """Import what training needs, if there is something to train, while Prefect's server starts."""
    from tasks.planning.plan import plan_recipe
    from tasks.store.artifacts import Store
    from tasks.store.steps import look_ahead

    # Errors in the data are left to the flow, which finds them again and records them.
    with suppress(RecipeError, ContractViolation, EnvironmentFault):
        plan = plan_recipe(options.recipe, options.overrides, options.smoke)
        steps = look_ahead(list(plan.steps.values()), Store(home()))
        if any(each.step.kind == "stage" and not each.reused for each in steps):
            import_module("models.training.gradient")


def _as_typed(options: Namespace) -> str:
    """The recipe as named on the command line, for suggested commands."""
    words = [options.recipe, *(["--smoke"] if options.smoke else [])]
    for override in options.overrides:
        words += ["--set", override]
    return shlex.join(words)
