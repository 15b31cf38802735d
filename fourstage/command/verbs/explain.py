"""``explain``: shows what changed since a step was last made."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fourstage.command.options import add_json, add_recipe
from fourstage.command.output import print_json, print_line
from fourstage.errors import UnknownNameError
from fourstage.settings import home

HELP = "show what changed since a step was last made"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    add_json(parser)
    parser.add_argument("--step", metavar="NAME", help="only this step, such as 'stage domain'")


def handle(options: Namespace) -> int:
    """Print what changed, step by step."""
    from tasks.planning.plan import plan_recipe
    from tasks.planning.trials import as_searched
    from tasks.store.artifacts import Store
    from tasks.store.steps import WAITS, PreviousArtifacts, look_ahead, why

    store = Store(home())
    previous = PreviousArtifacts(store)
    asked = (options.recipe, options.overrides, options.smoke)
    plan, _ = as_searched(plan_recipe(*asked), *asked, store)
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
