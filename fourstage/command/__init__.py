"""The command ``fourstage``: parses a verb, calls plain functions, returns an exit code.

Nothing heavy is imported here. Every handler imports what it calls, so that ``--help`` and ``list``
answer at once.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

from fourstage.command.exits import exit_code_of
from fourstage.command.standard_streams import make_usable
from fourstage.settings import make_private, refuse_backend, refuse_optimised, refuse_shadowed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after ``fourstage``; by default those of the process.

    Returns:
        The exit code: 0 done, 1 environment, 2 wrong usage or recipe, 3 data or contract, 4 gate
        refused, 130 and 143 interrupted.
    """
    make_private()
    make_usable()
    # What is imported and traced stays: looking for cycles in it takes a seventh of a start.
    gc.set_threshold(10_000)
    # Otherwise the interpreter searches TensorFlow's graphs for cycles at exit: 3 s after training.
    atexit.register(gc.freeze)
    return exit_code_of(lambda: _run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> int:
    from fourstage.command.parser import parse

    refuse_optimised()
    refuse_shadowed()
    parsed = parse(arguments)
    if not parsed.handler.__module__.endswith(".doctor"):  # which tells it among other findings
        refuse_backend()
    return parsed.handler(parsed) or 0
