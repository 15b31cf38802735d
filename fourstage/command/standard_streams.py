"""Makes standard streams usable if they are closed or their encoding lacks characters."""

from __future__ import annotations

import io
import os
import sys


def make_usable() -> None:
    """Open closed streams, and escape characters that the locale's encoding lacks.

    A closed stream does not exist in Python, and the next file to be opened would get its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free number
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
