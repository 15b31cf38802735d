"""Options that several verbs share, worded once."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer
from pathlib import Path
from typing import Any

from corpora.answer_shapes import KINDS

# What is said of the columns of files, where the survey of them is wrong.
COLUMNS = ("text", "pair", "label", "answers", "choices", "language")


def add_recipe(parser: ArgumentParser, count: str | None = None) -> None:
    """``RECIPE --set a.b=c --smoke``.

    Args:
        parser: The verb's parser.
        count: How many recipes, as argparse's ``nargs``; default exactly one.
    """
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        nargs=count,
        help="a file, or a name such as quickstart (`fourstage list recipes`)",
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="override a value of the recipe (stages.domain.budget.steps=100), or remove a key or a"
        " stage (stages.domain=)",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="quick trial: size tiny, at most 20 steps per stage, on text that comes with"
        " Fourstage; the model is called NAME-smoke",
    )


def add_input(parser: ArgumentParser, required: bool = False) -> None:
    """``--input FILE --encoding NAME``, rows of a file."""
    parser.add_argument(
        "--input",
        type=Path,
        required=required,
        metavar="FILE",
        help="rows in csv, tsv, jsonl or parquet, any number",
    )
    parser.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of --input, such as gb18030; by default UTF-8, or what a byte order mark"
        " names",
    )


def add_accept_code_change(parser: ArgumentParser) -> None:
    """``--accept-code-change STAGE``."""
    parser.add_argument(
        "--accept-code-change",
        action="append",
        default=[],
        metavar="STAGE",
        help="reuse a finished stage although the code that made it has changed; this is recorded",
    )


def add_init(parser: ArgumentParser) -> None:
    """``--init ADDRESS``, a pre-trained network."""
    parser.add_argument(
        "--init",
        metavar="ADDRESS",
        help="a pre-trained network to start from: folder:PATH, or hf:OWNER/NAME@COMMIT",
    )


def add_columns(parser: ArgumentParser) -> None:
    """`COLUMNS`, each an option."""
    parser.add_argument(
        "--text", metavar="COLUMN", help="the text column, if the one found is wrong"
    )
    parser.add_argument("--pair", metavar="COLUMN", help="the column of the second text of a pair")
    parser.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column of labels or answers, if the one found is wrong",
    )
    parser.add_argument(
        "--answers",
        choices=KINDS,
        help="what the label column holds, if the kind found is wrong; text: texts that the model"
        " is to write",
    )
    parser.add_argument(
        "--choices",
        nargs="+",
        metavar="COLUMN",
        help="the columns of each row's choices, or one that holds a list of them",
    )
    parser.add_argument("--language", metavar="CODE", help="language of the text, such as en or zh")


def columns_of(options: Namespace) -> dict[str, Any]:
    """Those of `COLUMNS` that were given, with their values."""
    return {name: value for name in COLUMNS if (value := getattr(options, name)) is not None}


def add_json(parser: _ActionsContainer) -> None:
    """``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output"
    )


def add_model(parser: ArgumentParser) -> None:
    """``NAME``, a registered model."""
    parser.add_argument("model", metavar="NAME", help="name of a registered model")


def minutes(text: str) -> float:
    """The type of ``--minutes``.

    Raises:
        ArgumentTypeError: It is no number from 1 up.
    """
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 1 <= found <= 1e5:
        raise ArgumentTypeError(f"expected minutes from 1 up, got {text[:40]!r}")
    return found
