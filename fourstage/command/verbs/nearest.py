"""``nearest``: the texts of a file that are most similar to a text."""

from __future__ import annotations

import heapq
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from fourstage.command.options import add_json
from fourstage.command.output import ONE_CELL, only_this_on_standard_output, print_cells
from fourstage.command.row_files import named, read_texts
from fourstage.errors import RecipeError
from fourstage.settings import make_home
from fourstage.terminal import libraries_speak_to, new_log

HELP = "find the texts of a file that are most similar to a text, by a model's vectors"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="NAME@alias", help="or NAME/VERSION")
    parser.add_argument("text", metavar="TEXT", help="the text to compare with")
    parser.add_argument(
        "--input",
        type=Path,
        required=True,
        metavar="FILE",
        help="rows in csv, tsv, jsonl or parquet, any number",
    )
    parser.add_argument(
        "--column", required=True, metavar="NAME", help="the column of --input with the texts"
    )
    parser.add_argument(
        "--count", type=int, default=5, metavar="N", help="how many texts to print; 5 by default"
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Read the file once, a batch at a time, and keep the nearest texts.

    The time is that of reading every text with the network, and one product of vectors for each.
    """
    if options.count < 1:
        raise RecipeError(f"--count: expected 1 or more, got {options.count}")
    if not options.text.strip():
        raise RecipeError("expected a text, got an empty one")
    if not options.input.is_file():
        raise RecipeError(f"--input: there is no file {options.input}")
    batches = read_texts(options.input, [options.column])
    first = next(batches, [])  # before the model is loaded, to report a wrong file at once
    make_home()
    with (
        only_this_on_standard_output(options.json) as print_object,
        libraries_speak_to(new_log("nearest")),
    ):
        import numpy as np

        from fourstage.activity import activity, progress
        from tasks.registry.predict import asking

        with (
            activity(f"asking {options.model}"),
            asking(options.model, for_vectors=True) as (version, ask),
        ):
            (wanted,) = ask([[options.text.translate(ONE_CELL)]])

            def compared() -> Iterator[dict[str, Any]]:
                number = 0
                for batch in chain([first], batches):
                    # A tab would make two texts of one.
                    answers = ask([[text.translate(ONE_CELL)] for _, (text,) in batch])
                    for (row, (text,)), answer in zip(batch, answers, strict=True):
                        number += 1
                        if "vector" in answer:  # the text is not blank
                            cosine = float(np.dot(wanted["vector"], answer["vector"]))
                            yield named(row, number) | {"cosine": cosine, "text": text}
                    progress(number, 0, f"{number:,} rows")

            found = heapq.nlargest(options.count, compared(), key=lambda row: row["cosine"])
        if options.json:
            print_object({"model": version.name, "version": version.number, "nearest": found})
        else:
            _print(found)
    return 0


def _print(found: list[dict[str, Any]]) -> None:
    for place, row in enumerate(found):
        name, cosine, text = row
        if not place:
            print_cells((name, cosine, text))
        print_cells((str(row[name]), f"{row[cosine]:.4f}", row[text]))
