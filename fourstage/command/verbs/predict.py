"""``predict``: labels texts, lines of standard input or rows of a file with a registered model."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fourstage.command.options import add_input, add_json
from fourstage.command.output import only_results, print_cells
from fourstage.command.row_files import (
    BATCH,
    SUFFIXES,
    Row,
    named,
    read_rows,
    read_texts,
    written,
)
from fourstage.errors import RecipeError, listed
from fourstage.settings import make_home
from fourstage.terminal import say

# The columns that --output adds; the last says why there is no answer.
LABEL, SCORE, ERROR = "predicted_label", "predicted_score", "prediction_error"
# Of a text that is written, {name: its value where there was no room}.
LIMITS = {"cut": True, "ended": False}
WITH_LIMIT = {
    "cut": "cut, as longer than the model reads: {}",
    "ended": "stopped at the largest length of an answer: {}",
}
Ask = Callable[[Sequence[Sequence[str]]], list[dict[str, Any]]]
HELP = "ask a registered model about texts; prints tab-separated lines below a header"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="NAME@alias", help="or NAME/VERSION")
    parser.add_argument(
        "text",
        nargs="*",
        metavar="TEXT",
        help="texts. A text with tabs is a pair, a text with its choices, or a text with the path"
        " of its picture. By default the lines of standard input",
    )
    add_input(parser)
    parser.add_argument(
        "--column",
        metavar="NAME",
        action="append",
        help="the column of --input with the texts, by default its only one. For pairs, give two."
        " For choices, give the text's, then one for each choice or one that holds lists of them."
        " For pictures, give that of their paths last",
    )
    parser.add_argument(
        "--pictures",
        type=Path,
        metavar="FOLDER",
        help="the folder that paths of pictures are relative to and must stay in; by default the"
        " current one",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"write --input's rows with all their columns and, added, {LABEL}, {SCORE} and"
        f" {ERROR}",
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Predict, a batch at a time."""
    _check(options)
    batches = _batches(options)
    first = next(batches, [])  # before the model is loaded, to report a wrong file at once
    make_home()
    with only_results(options.json, "predict") as print_object:
        from fourstage.activity import activity, progress
        from tasks.registry.predict import asking

        with (
            activity(f"asking {options.model}"),
            asking(options.model, pictures=options.pictures) as (version, ask),
        ):
            limits: Counter[str] = Counter()
            answers = _counted(
                _answers(ask, chain([first], batches), lambda n: progress(n, 0, f"{n:,} rows")),
                limits,
            )
            said = (answer for _, answer in answers)
            if options.output:
                _write(options.output, answers)
            elif options.json:
                about = {"model": version.name, "version": version.number}
                print_object({**about, "predictions": list(said)})
            else:
                _print(said)
        if limits:
            say(_told(limits))
    return 0


def _check(options: Namespace) -> None:
    if options.pictures is not None and not options.pictures.is_dir():
        raise RecipeError(
            f"--pictures: expected a folder, got {options.pictures}; unpack an archive first"
        )
    if options.input is None:
        for name in ("column", "output", "encoding"):
            if getattr(options, name) is not None:
                raise RecipeError(f"--{name} needs --input FILE, which is missing")
        for file in options.text:
            if file.endswith(SUFFIXES) and Path(file).is_file():
                raise RecipeError(
                    f"expected texts, got a file; its rows are read by --input {file}"
                )
        return
    if options.text:
        raise RecipeError("expected texts or --input FILE, got both")
    if options.json and options.output:
        raise RecipeError("expected --json or --output FILE, got both")
    if not options.input.is_file():
        raise RecipeError(f"--input: there is no file {options.input}")
    if options.column is None:
        options.column = [_only_column(options.input, options.encoding)]


def _only_column(file: Path, encoding: str | None) -> str:
    """The column of a file that has no other."""
    columns = [*next(read_rows(file, encoding), [{}])[0]]
    if len(columns) != 1:
        raise RecipeError(
            "--input: name the column with the texts, --column NAME;"
            f" {file} has {listed(columns, 20) or 'none'}"
        )
    return columns[0]


def _batches(options: Namespace) -> Iterator[list[tuple[Row, list[str]]]]:
    """Rows with their texts; without a file the rows are empty."""
    if options.input is None:
        texts = iter(options.text or (line.rstrip("\n") for line in sys.stdin))
        while batch := [({}, [text]) for text in islice(texts, BATCH)]:
            yield batch
        return
    for batch in read_texts(options.input, options.column, options.encoding):
        if taken := {LABEL, SCORE, ERROR} & {name for row, _ in batch for name in row}:
            raise RecipeError(
                f"{options.input} has a column {min(taken)} already, which --output adds; rename it"
            )
        yield batch


def _answers(
    ask: Ask, batches: Iterable[list[tuple[Row, list[str]]]], done: Callable[[int], None]
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each row with its answer, which begins with the row's id, or its number."""
    number = 0
    for batch in batches:
        for (row, _), answer in zip(batch, ask([texts for _, texts in batch]), strict=True):
            number += 1
            yield row, named(row, number) | answer
        done(number)


def _counted(
    answers: Iterable[tuple[Row, dict[str, Any]]], limits: Counter[str]
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The same, while counting texts that were not read whole, or not written to their end."""
    for row, answer in answers:
        limits.update(name for name, at_limit in LIMITS.items() if answer.get(name) is at_limit)
        yield row, answer


def _told(limits: Counter[str]) -> str:
    """What was counted, in one sentence."""
    parts = [WITH_LIMIT[name].format(f"{limits[name]:,}") for name in LIMITS if limits[name]]
    return "; ".join(parts)


def _said(answer: dict[str, Any]) -> str | None:
    """The label, or the text that was written; of other kinds the answer as JSON, or the vector."""
    if "ended" in answer:
        return answer["text"]
    if vector := answer.get("vector"):
        return json.dumps(vector)
    return answer.get("label") or answer.get("answer")


def _write(file: Path, answers: Iterator[tuple[Row, dict[str, Any]]]) -> None:
    number = 0
    without = 0
    with written(file, {LABEL: str, SCORE: float, ERROR: str}) as writer:
        while batch := list(islice(answers, BATCH)):
            writer.write(
                [
                    row | {LABEL: _said(a), SCORE: a["score"], ERROR: a.get("error")}
                    for row, a in batch
                ]
            )
            number += len(batch)
            without += sum("error" in answer for _, answer in batch)
    say(f"{file}: {number:,} rows" + (f", {without:,} of them without an answer" * (without > 0)))


def _print(answers: Iterable[dict[str, Any]]) -> None:
    for number, answer in enumerate(answers):
        name, score = next(iter(answer)), answer["score"]
        if not number:
            print_cells((name, "label", "score", "error"))
        cells = (
            str(answer[name]),
            _said(answer) or "",
            "" if score is None else f"{score:.4f}",
            answer.get("error", ""),
        )
        print_cells(cells)
