"""``run``, ``plan``, ``show``, ``explain``, ``compare``: the commands about a recipe."""

from __future__ import annotations

import shlex
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fourstage.command.embedded_prefect import prefect_ready
from fourstage.command.options import add_json, add_recipe
from fourstage.command.output import (
    only_this_on_standard_output,
    print_json,
    print_line,
    print_table,
    print_text,
)
from fourstage.command.recipe import resolved_recipe
from fourstage.command.required_servers import require_servers
from fourstage.errors import (
    ContractViolation,
    EnvironmentFault,
    GateRefused,
    RecipeError,
    UnknownNameError,
)
from fourstage.settings import home, make_home
from fourstage.terminal import libraries_speak_to, new_log, say

if TYPE_CHECKING:
    from tasks.planning.forecast import Cost


def add(verbs: Any) -> None:
    """Add the verbs."""
    run = verbs.add_parser("run", help="run a recipe through all its stages")
    add_recipe(run)
    add_json(run)
    run.add_argument(
        "--accept-code-change",
        action="append",
        default=[],
        metavar="STAGE",
        help="reuse a finished stage although the code that made it has changed; recorded",
    )
    run.set_defaults(handler=handle_run)

    plan = verbs.add_parser("plan", help="show what would be reused or made, and why")
    add_recipe(plan)
    add_json(plan)
    plan.add_argument(
        "--resolved", action="store_true", help="print every value and where it comes from"
    )
    plan.set_defaults(handler=handle_plan)

    show = verbs.add_parser(
        "show", help="print ten examples of a stage, as its objectives make them"
    )
    add_recipe(show)
    show.add_argument("stage", metavar="STAGE", help="name of the stage, such as general")
    show.set_defaults(handler=handle_show)

    explain = verbs.add_parser("explain", help="show what changed since a step was last made")
    add_recipe(explain)
    add_json(explain)
    explain.add_argument("--step", metavar="NAME", help="only this step, such as 'stage domain'")
    explain.set_defaults(handler=handle_explain)

    compare = verbs.add_parser("compare", help="compare recipes over seeds, on equal terms")
    add_recipe(compare, several=True)
    add_json(compare)
    compare.add_argument(
        "--seeds", type=_seeds, metavar="1,2,3", help="seeds in place of the recipes' own"
    )
    compare.add_argument(
        "--equal",
        choices=("tokens", "time"),
        help="scale budgets so that all use as much as the first; default: budgets as written",
    )
    compare.add_argument(
        "--contrast",
        action="append",
        metavar="A:B",
        help="test A against B, by name; one may be cheap_baseline. By default every recipe against"
        " the first and against the cheap baseline. Verdicts are corrected for their number",
    )
    compare.set_defaults(handler=handle_compare)


def handle_run(options: Namespace) -> int:
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


def handle_plan(options: Namespace) -> int:
    """Print each step with its state in the store, or every value of the recipe."""
    if options.resolved:
        return _print_resolved(options)
    from tasks.planning.forecast import disk_bytes, stage_costs
    from tasks.planning.plan import plan_recipe
    from tasks.store.artifacts import Store
    from tasks.store.steps import PreviousArtifacts, look_ahead, why

    store = Store(home())
    previous = PreviousArtifacts(store)
    plan = plan_recipe(options.recipe, options.overrides, options.smoke)
    prospects = list(look_ahead(list(plan.steps.values()), store))
    rows = [
        {
            "step": prospect.step.name,
            "kind": prospect.step.kind,
            "status": "reused" if prospect.reused else "to be made",
            "why": why(prospect, previous),
        }
        for prospect in prospects
    ]
    costs = stage_costs(plan.recipe, prospects, previous)
    disk = disk_bytes(plan.recipe, prospects, previous)
    if options.json:
        told = [asdict(cost) for cost in costs]
        print_json({"recipe": plan.recipe.name, "steps": rows, "costs": told, "disk_bytes": disk})
        return 0
    print_table(("step", "status", "why"), [(r["step"], r["status"], r["why"][0]) for r in rows])
    if any(row["status"] != "reused" for row in rows):
        _print_costs(costs, disk)
    return 0


def _print_costs(costs: Sequence[Cost], disk: float) -> None:
    """Print what training will cost, and where the figures come from."""
    print_line()
    if costs:
        head = ("stage", "tokens", "minutes", "tokens/s", "passes")
        print_table(head, [_cost_cells(cost) for cost in costs])
        print_line()
    minutes = sum(cost.seconds or 0.0 for cost in costs) / 60
    unknown = ", ".join(cost.stage for cost in costs if cost.seconds is None)
    besides = f" without stage {unknown}, whose data are not counted yet" if unknown else ""
    print_text(
        f"About {_minutes(minutes)} of training{besides}; {disk / 1e6:,.0f} MB of disk under"
        f" {home()}. The other steps take a few minutes more."
    )
    if not all(cost.measured for cost in costs):
        print_text(
            "Speeds marked ~ are estimates for two processor cores: no stage of such a network has"
            " been trained in this home yet."
        )


def _cost_cells(cost: Cost) -> tuple[str, ...]:
    passes = ", ".join(f"{name} {times:.3g}" for name, times in cost.passes.items())
    speed = f"{'' if cost.measured else '~'}{cost.tokens_per_second:,.0f}"
    tokens = "–" if cost.tokens is None else f"{cost.tokens:,.0f}"
    minutes = "–" if cost.seconds is None else f"{cost.seconds / 60:,.1f}"
    return (cost.stage, tokens, minutes, speed, passes)


def _minutes(minutes: float) -> str:
    return f"{minutes:.1f} minutes" if minutes < 180 else f"{minutes / 60:,.0f} hours"


def handle_show(options: Namespace) -> int:
    """Print examples, separated by blank lines."""
    resolved_recipe(options.recipe, options)
    with libraries_speak_to(new_log("show")):
        from tasks.planning.show_examples import show_examples

        found = list(show_examples(options.recipe, options.stage, options.overrides, options.smoke))
    print_line("\n\n".join(found))
    return 0


def _print_resolved(options: Namespace) -> int:
    from fourstage.recipe.resolved import as_recipe

    resolved = resolved_recipe(options.recipe, options)
    if options.json:
        values = [{"path": p, "value": v, "origin": origin} for p, v, origin in resolved.rows()]
        print_json({"recipe": as_recipe(resolved), "values": values, "notes": list(resolved.notes)})
        return 0
    print_table(
        ("value of", "is", "from"),
        [(path, _shown(value), origin) for path, value, origin in resolved.rows()],
    )
    for note in resolved.notes:
        print_line(f"note: {note}")
    for kind in resolved.skipped:
        print_line(f"note: stage {kind} is left out")
    return 0


def handle_explain(options: Namespace) -> int:
    """Print what changed, step by step."""
    from tasks.planning.plan import plan_recipe
    from tasks.store.artifacts import Store
    from tasks.store.steps import WAITS, PreviousArtifacts, look_ahead, why

    store = Store(home())
    previous = PreviousArtifacts(store)
    plan = plan_recipe(options.recipe, options.overrides, options.smoke)
    if options.step is not None and options.step not in plan.steps:
        raise UnknownNameError("--step", options.step, "a step of this recipe", plan.steps)
    found = {
        prospect.step.name: why(prospect, previous)
        for prospect in look_ahead(list(plan.steps.values()), store)
        if options.step in (None, prospect.step.name)
    }
    if options.json:
        print_json({"recipe": plan.recipe.name, "steps": found})
        return 0
    follow = [name for name, reasons in found.items() if reasons[0].startswith(WAITS)]
    if options.step is not None or len(follow) == len(found):
        follow = []
    for name, reasons in found.items():
        if name not in follow:
            print_line(name)
            for reason in reasons:
                print_line(f"    {reason}")
    if follow:
        print_line(f"{len(follow)} more follow from these: {', '.join(follow)}")
    return 0


def handle_compare(options: Namespace) -> int:
    """Run recipes over seeds and print the table."""
    for recipe in options.recipe:
        resolved_recipe(recipe, options)
    require_servers()
    make_home()
    with (
        only_this_on_standard_output(options.json) as print_object,
        libraries_speak_to(new_log("compare")),
    ):
        with prefect_ready():
            from flows.compare import compare
        table = compare(
            options.recipe,
            options.overrides,
            options.smoke,
            options.seeds,
            options.equal,
            options.contrast,
        )
        print_object(table)
    if not options.json:
        _print_comparison(table)
    return 0


def _print_comparison(table: dict[str, Any]) -> None:
    from tasks.comparison.comparison_report import cells_for, explanation, headline

    print_line(headline(table))
    for title, (head, rows) in cells_for(table):
        print_line(f"\n{title}" if title else "")
        print_table(head, rows)
    print_line(f"\n{explanation(table)}\n\nKept in {table['folder']}")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, dict):
        return "none" if not value else str(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seeds(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) < 2**31 for part in parts):
        raise ArgumentTypeError(f"expected whole numbers such as 1,2,3, got {text[:40]!r}")
    seeds = [int(part) for part in parts]
    if len(set(seeds)) < len(seeds):
        raise ArgumentTypeError(f"expected different seeds, got {text[:40]!r}")
    return seeds
