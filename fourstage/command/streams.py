"""Makes standard streams usable that are closed, or whose encoding lacks characters."""

from __future__ import annotations

import io
import os
import sys


def make_usable() -> None:
    """Open what is closed, and let a locale without a character show its code.

    A closed stream is missing in Python, and the next file to be opened would get its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
