"""``plan``: shows what would be reused or made, and why, or every value of a recipe."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fourstage.command.options import add_json, add_recipe
from fourstage.command.output import print_json, print_line, print_table, print_text
from fourstage.settings import home

if TYPE_CHECKING:
    from tasks.planning.forecast import Cost

HELP = "show what would be reused or made, and why"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    add_json(parser)
    parser.add_argument(
        "--resolved", action="store_true", help="print every value and where it comes from"
    )


def handle(options: Namespace) -> int:
    """Print each step with its state in the store, or every value of the recipe."""
    if options.resolved:
        return _print_resolved(options)
    from tasks.planning.forecast import disk_bytes, search_cost, stage_costs
    from tasks.planning.plan import plan_recipe
    from tasks.planning.trials import as_searched
    from tasks.steps.same_weights import is_copied
    from tasks.store.artifacts import Store
    from tasks.store.step_names import stage_step
    from tasks.store.steps import PreviousArtifacts, look_ahead, why

    store = Store(home())
    previous = PreviousArtifacts(store)
    asked = (options.recipe, options.overrides, options.smoke)
    plan, trials = as_searched(plan_recipe(*asked), *asked, store)
    prospects = list(look_ahead(list(plan.steps.values()), store))
    rows = [
        {
            "step": prospect.step.name,
            "kind": prospect.step.kind,
            "status": "reused"
            if prospect.reused
            else "to be copied"
            if is_copied(prospect, store)
            else "to be made",
            "why": why(prospect, previous),
        }
        for prospect in prospects
    ]
    costs = stage_costs(plan.recipe, prospects, previous)
    if trials:
        assert plan.recipe.search is not None
        assert plan.recipe.finetune is not None
        final, search = plan.recipe.finetune, plan.recipe.search
        if search.folds is None and final.seed in search.seeds:
            # The best trial is the stage, so training it costs nothing more.
            costs = [cost for cost in costs if cost.stage != final.name]
        if (cost := search_cost(trials, store, previous)) is not None:
            costs.append(cost)
        told = f"{len(trials)} of {plan.recipe.search.trials} trials are not trained yet"
        _insert_search(rows, stage_step(plan.recipe.finetune.name), told)
    disk = disk_bytes(plan.recipe, prospects, previous)
    if options.json:
        told = [asdict(cost) for cost in costs]
        print_json({"recipe": plan.recipe.name, "steps": rows, "costs": told, "disk_bytes": disk})
        return 0
    print_table(("step", "status", "why"), [(r["step"], r["status"], r["why"][0]) for r in rows])
    if any(row["status"] != "reused" for row in rows):
        _print_costs(costs, disk)
    return 0


def _insert_search(rows: list[dict[str, Any]], stage: str, told: str) -> None:
    """Insert the search before its stage; the stage and all later steps wait for it."""
    place = next(i for i, row in enumerate(rows) if row["step"] == stage)
    for row in rows[place:]:
        if row["kind"] in ("stage", "measurement", "package", "evaluation"):
            row |= {"status": "to be made", "why": ["waits for search"]}
    rows.insert(place, {"step": "search", "kind": "search", "status": "to be made", "why": [told]})


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


def _print_resolved(options: Namespace) -> int:
    from fourstage.recipe.resolved import as_recipe
    from tasks.planning.plan import resolve_recipe

    resolved, _, _ = resolve_recipe(options.recipe, options.overrides, options.smoke)
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


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, dict):
        return "none" if not value else str(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
