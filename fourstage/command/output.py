"""Standard output: tables for people, exactly one object for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fourstage.text_width import padded, width, wrapped

NARROWEST = 20  # columns; text is not wrapped to less


def print_json(value: Any) -> None:
    """Print one JSON value, indented for people."""
    spells_all = sys.stdout.encoding.lower().startswith("utf")
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=not spells_all) + "\n")


def print_line(text: str = "") -> None:
    """Print one line of text."""
    sys.stdout.write(f"{text}\n")


def print_text(text: str) -> None:
    """Print sentences; at a terminal, wrapped between words."""
    for line in _lines(text, 0):
        print_line(line)


def tell(line: str) -> None:
    """Print progress to standard error, because standard output is for the result."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as wide as their widest cell; at a terminal the last one is wrapped."""
    table = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(width(row[i]) for row in table) for i in range(len(head))]
    before = sum(widths[:-1]) + 2 * len(widths[:-1])
    for *cells, last in table:
        left = "".join(f"{padded(cell, wide)}  " for cell, wide in zip(cells, widths, strict=False))
        first, *more = _lines(last, before)
        print_line(f"{left}{first}".rstrip())
        for line in more:
            print_line(" " * before + line)


def _lines(text: str, indent: int) -> list[str]:
    """A text, wrapped between words if the terminal is wide enough for the indentation."""
    room = shutil.get_terminal_size().columns - indent if sys.stdout.isatty() else 0
    return wrapped(text, room) if room >= NARROWEST else [text]


@contextmanager
def only_this_on_standard_output(json_only: bool) -> Iterator[Callable[[Any], None]]:
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

    def say(value: Any) -> None:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as stream:
            stream.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    try:
        yield say
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
