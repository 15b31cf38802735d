"""``nearest``: the texts of a file that are most similar to a text, or the words to a word."""

from __future__ import annotations

import heapq
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from fourstage.command.options import add_input, add_json
from fourstage.command.output import ONE_CELL, only_results, print_cells, print_table
from fourstage.command.row_files import named, read_one_text
from fourstage.errors import RecipeError, did_you_mean
from fourstage.settings import make_home

HELP = "find the texts of a file that are most similar to a text, or the words nearest to a word"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "model", metavar="NAME@alias", help="or NAME/VERSION; for words also a stage's folder"
    )
    parser.add_argument(
        "text",
        metavar="TEXT",
        help="the text to compare with; without --input a word, for a model with one vector a word",
    )
    add_input(parser)
    parser.add_argument("--column", metavar="NAME", help="the column of --input with the texts")
    parser.add_argument(
        "--analogy",
        nargs=2,
        metavar=("A", "B"),
        help="find the words that are to the word TEXT as B is to A",
    )
    parser.add_argument(
        "--count", type=int, default=5, metavar="N", help="how many to print; 5 by default"
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Print the nearest texts of a file, or the nearest words."""
    if options.count < 1:
        raise RecipeError(f"--count: expected 1 or more, got {options.count}")
    if not options.text.strip():
        raise RecipeError("TEXT: expected a text, got an empty one")
    if (options.input is None) != (options.column is None):
        raise RecipeError("expected --input with --column for texts, or neither for words")
    if options.input is None:
        return _words(options)
    if options.analogy:
        raise RecipeError("--analogy applies to words; omit --input and --column")
    return _texts(options)


def _texts(options: Namespace) -> int:
    """Read the file once, a batch at a time, and keep the nearest texts.

    The time is that of reading every text with the network, and one product of vectors for each.
    """
    if not options.input.is_file():
        raise RecipeError(f"--input: there is no file {options.input}")
    batches = read_one_text(options.input, options.column, options.encoding)
    first = next(batches, [])  # before the model is loaded, to report a wrong file at once
    make_home()
    with only_results(options.json, "nearest") as print_object:
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
                    answers = ask([[text.translate(ONE_CELL)] for _, text in batch])
                    for (row, text), answer in zip(batch, answers, strict=True):
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


def _words(options: Namespace) -> int:
    """Look the words up in the table of the model's last stage."""
    with only_results(options.json, "nearest") as print_object, ExitStack() as files:
        from models.catalogue import literals, provided
        from models.interchange.stage_folder import is_stage
        from models.saved_tokenizer import load_tokenizer, scheme_of
        from models.stage_format import CONFIG, TOKENIZER
        from models.vectors.lookup import nearest, word_table
        from tasks.store.artifacts import tokenizer_in_store

        stage = Path(options.model)
        if is_stage(stage):
            vocabulary = tokenizer_in_store(stage) or stage / TOKENIZER
        else:
            from tasks.registry.stage_files import stage_files

            stage, vocabulary = files.enter_context(stage_files(options.model))
        tokenizer = load_tokenizer(vocabulary)
        scheme = scheme_of(tokenizer)
        family = str(json.loads((stage / CONFIG).read_text("utf-8"))["family"])
        whole = literals("tokenizers", scheme).get("WHOLE_WORDS")
        if "static" not in provided(family) or not whole:
            raise RecipeError(
                f"{options.model}: expected a model with one vector a word, such as word2vec with"
                f" tokenizer word, got {family} with {scheme}; to compare texts, give"
                " --input"
            )
        asked = [*(options.analogy or ()), options.text]
        table = word_table(stage, tokenizer, asked)
        found, missing = nearest(table, asked, options.count)
        if missing:
            raise RecipeError(
                f"{options.model}: {missing[0][:80]!r} has no vector: it is not among the"
                f" {len(table.ids):,} words of the vocabulary{did_you_mean(missing[0], table.ids)}"
            )
        rows = [{"word": word, "cosine": cosine} for word, cosine in found]
        if options.json:
            print_object({"model": options.model, "asked": asked, "nearest": rows})
        else:
            print_table(("word", "cosine"), [(word, f"{cosine:.4f}") for word, cosine in found])
    return 0
