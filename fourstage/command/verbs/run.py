"""``run``: runs a recipe through all its stages."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from fourstage.command.embedded_prefect import prefect_ready
from fourstage.command.options import add_accept_code_change, add_json, add_recipe
from fourstage.command.output import only_results
from fourstage.command.required_servers import require_servers
from fourstage.errors import ContractViolation, GateRefused
from fourstage.settings import home, make_home
from fourstage.terminal import say

if TYPE_CHECKING:
    from tasks.planning.layout import Plan

HELP = "run a recipe through all its stages"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    add_json(parser)
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="continue from the last run on new data, as each stage's key 'refresh' says",
    )
    add_accept_code_change(parser)


def handle(options: Namespace) -> int:
    """Run the lifecycle; a refused gate is exit code 4."""
    from tasks.planning.plan import lay_out, resolve_recipe

    # An invalid recipe is refused before anything is written or imported.
    recipe, sources, folders = resolve_recipe(options.recipe, options.overrides, options.smoke)
    if len(recipe.seeds) > 1:
        say(
            f"{recipe.name} has {len(recipe.seeds)} seeds; `run` takes the first,"
            f" {recipe.seeds[0]}; `fourstage compare` takes them all"
        )
    require_servers()
    make_home()
    plan: Plan | None = None
    with suppress(ContractViolation):  # the flow finds a fault of the data again and records it
        plan = lay_out(recipe, sources, folders, options.smoke)
    with only_results(options.json, "run") as print_object:
        with prefect_ready():
            from flows.lifecycle import lifecycle

            if plan:
                _import_ahead(plan)
        from tasks.orchestration.handing import handed
        from tasks.reports.narration import tell_summary

        summary = lifecycle(
            options.recipe,
            options.overrides,
            options.smoke,
            new_data=options.refresh,
            accept_code_change=options.accept_code_change,
            plan=handed(plan),
        )
        assert isinstance(summary, dict)
        tell_summary(summary, _as_typed(options))
        print_object(summary)
    gate = summary.get("gate") or {}
    return GateRefused.exit_code if gate.get("decision") == "refuse" else 0


def _import_ahead(plan: Plan) -> None:
    """Import what training needs, if there is something to train, while Prefect's server starts."""
    from tasks.store.artifacts import Store
    from tasks.store.steps import look_ahead

    steps = look_ahead(list(plan.steps.values()), Store(home()))
    if any(each.step.kind == "stage" and not each.reused for each in steps):
        import_module("models.training.gradient")


def _as_typed(options: Namespace) -> str:
    """The recipe as named on the command line, for suggested commands."""
    words = [options.recipe, *(["--smoke"] if options.smoke else [])]
    for override in options.overrides:
        words += ["--set", override]
    return shlex.join(words)
