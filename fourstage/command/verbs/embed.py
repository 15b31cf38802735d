"""``embed``: writes what every layer of a trained stage gives to the tokens of a file's texts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from fourstage.command.options import add_input, add_json, add_recipe
from fourstage.command.output import only_results, print_line
from fourstage.command.row_files import named, read_one_text
from fourstage.errors import RecipeError

HELP = "write the vectors that each layer of a trained stage gives to the tokens of a file's texts"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    parser.add_argument("stage", metavar="STAGE", help="name of the stage, such as general")
    add_input(parser, required=True)
    parser.add_argument(
        "--column", required=True, metavar="NAME", help="the column of --input with the texts"
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="a new file: .parquet has a row for each text and layer, .h5 a data set for each text",
    )
    parser.add_argument("--force", action="store_true", help="replace --output if it is there")
    add_json(parser)


def handle(options: Namespace) -> int:
    """Read the file once, a batch at a time."""
    from models.interchange.layer_files import check_new
    from tasks.planning.plan import plan_recipe

    if not options.input.is_file():
        raise RecipeError(f"--input: there is no file {options.input}")
    check_new(options.output, options.force)
    batches = read_one_text(options.input, options.column, options.encoding)
    first = next(batches, [])  # before the network is loaded, to report a wrong file at once
    plan = plan_recipe(options.recipe, options.overrides, options.smoke)

    def texts() -> Iterator[list[tuple[str, str]]]:
        number = 0
        for batch in chain([first], batches):
            found = []
            for row, text in batch:
                number += 1
                (name,) = named(row, number).values()
                found.append((str(name), text))
            yield found

    with only_results(options.json, "embed") as print_object:
        from fourstage.activity import activity, progress
        from tasks.planning.embed_texts import embed_texts

        with activity(f"reading {options.input} with stage {options.stage}"):
            told = embed_texts(
                plan,
                options.stage,
                texts(),
                options.output,
                lambda n: progress(n, 0, f"{n:,} rows"),
            )
        print_object(told)
    if not options.json:
        print_line(
            f"{told['file']}: {told['tokens']:,} tokens of {told['texts']:,} texts, in"
            f" {len(told['layers'])} layers of width {told['width']}"
        )
        if told["cut"]:
            print_line(f"{told['cut']:,} texts were longer than a row of the stage and are cut")
    return 0
