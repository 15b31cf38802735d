"""Sentences for the person who runs this, on standard error; never a text of theirs."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """Print one line; control characters do not reach the terminal."""
    line = "".join(c if c.isprintable() else " " for c in message)
    print(line, file=sys.stderr, flush=True)  # noqa: T201
