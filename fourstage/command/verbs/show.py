"""``show``: prints examples of a stage, as its objectives make them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fourstage.command.options import add_recipe
from fourstage.command.output import print_line
from fourstage.errors import RecipeError
from fourstage.terminal import libraries_speak_to, new_log

HELP = "print ten training examples of a stage, as its objectives make them"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    parser.add_argument("stage", metavar="STAGE", help="name of the stage, such as general")
    parser.add_argument(
        "--pictures",
        metavar="FOLDER",
        type=Path,
        help="write the examples' pictures to a new or empty folder, with their regions drawn",
    )


def handle(options: Namespace) -> int:
    """Print examples, separated by blank lines."""
    from tasks.planning.plan import plan_recipe

    to: Path | None = options.pictures
    if to is not None and to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise RecipeError(f"--pictures: expected a new or an empty folder, got {to}")
    plan = plan_recipe(options.recipe, options.overrides, options.smoke)
    with libraries_speak_to(new_log("show")):
        from tasks.planning.show_examples import show_examples

        found = list(show_examples(plan, options.stage, to))
    print_line("\n\n".join(found))
    return 0
