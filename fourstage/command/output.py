"""Standard output: tables for people, exactly one object for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fourstage.terminal import libraries_speak_to, new_log
from fourstage.text_width import harmless, width, wrapped

UNLIMITED = 100_000  # columns, where output goes to no terminal
ONE_CELL = str.maketrans("\t\n\r", "   ")


def print_json(value: object) -> None:
    """Print one JSON value, indented for people."""
    spells_all = sys.stdout.encoding.lower().startswith("utf")
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=not spells_all) + "\n")


def print_line(text: str = "") -> None:
    """Print one line of text, with control characters made visible."""
    sys.stdout.write(f"{harmless(text)}\n")


def print_cells(cells: Sequence[str]) -> None:
    """Print one tab-separated line; tabs and line breaks in cells become blanks."""
    print_line("\t".join(cell.translate(ONE_CELL) for cell in cells))


def print_text(text: str) -> None:
    """Print sentences; at a terminal, wrapped between words."""
    for line in wrapped(text, _columns()):
        print_line(line)


def tell(line: str) -> None:
    """Print progress to standard error, because standard output is for the result."""
    sys.stderr.write(f"{harmless(line)}\n")
    sys.stderr.flush()


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns; a terminal's width is kept as far as no word has to be broken."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = [[Text(harmless(str(cell))) for cell in row] for row in (head, *rows)]
    table = Table.grid(padding=(0, 2, 0, 0))
    for column in zip(*lines, strict=True):
        words = [word for cell in column for word in cell.plain.split()]
        # Folded, for a line that is cut otherwise loses a Chinese character to the blank behind it.
        table.add_column(min_width=max(map(width, words), default=0), overflow="fold")
    for line in lines:
        table.add_row(*line)
    console = Console(width=_columns(), color_system=None)
    with console.capture() as said:
        console.print(table, crop=False)
    for line in said.get().splitlines():
        print_line(line.rstrip())


def _columns() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


@contextmanager
def only_this_on_standard_output(json_only: bool) -> Iterator[Callable[[object], None]]:
    """Keep everything else off standard output, including output of native libraries.

    Inside the block, file descriptor 1 is standard error. The yielded function prints one JSON
    value to the real standard output.

    Args:
        json_only: Whether to do so; otherwise nothing changes and the function prints nothing.

    Yields:
        A function that prints the one object.
    """
    if not json_only:
        yield lambda _: None
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)

    def say(value: object) -> None:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as stream:
            stream.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    try:
        yield say
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def only_results(json_only: bool, verb: str) -> Iterator[Callable[[object], None]]:
    """As `only_this_on_standard_output`, while libraries speak to a new log of the command."""
    with only_this_on_standard_output(json_only) as say, libraries_speak_to(new_log(verb)):
        yield say
