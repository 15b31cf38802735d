"""``evaluate``: scores a recipe's last stage again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fourstage.command.embedded_prefect import prefect_ready
from fourstage.command.options import add_json, add_recipe
from fourstage.command.required_servers import require_servers
from fourstage.command.result import print_result

HELP = "score a recipe's last stage again"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    add_json(parser)


def handle(options: Namespace) -> int:
    """Evaluate the recipe's finetune stage."""
    from tasks.planning.plan import resolve_recipe

    resolve_recipe(options.recipe, options.overrides, options.smoke)
    require_servers()

    def work() -> object:
        with prefect_ready():
            from flows.evaluate import evaluate
        return evaluate(options.recipe, options.overrides, options.smoke)

    return print_result(options, work)
