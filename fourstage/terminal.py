"""The terminal is for our own messages; what the libraries print goes to a log.

TensorFlow's C++ parts, Prefect and MLflow all write to standard error at will. During a run that
goes to a file, so that a person reads the run's own lines, and an error is the last of them.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from fourstage.settings import home

REWRITE = "\r\x1b[K"  # to the beginning of the line, and nothing on it

_own: TextIO | None = None
_writing = threading.RLock()
_foot = ""
_listeners: list[Callable[[str], None]] = []


def terminal() -> TextIO:
    """Where our sentences, bars and tables go: standard error as the user gave it to us."""
    return _own or sys.stderr


def say(message: str) -> None:
    """Print one sentence; control characters never reach the terminal."""
    line = "".join(c if c.isprintable() else " " for c in message)
    with _writing:
        _write(f"{REWRITE if _foot else ''}{line}\n{_foot}")
    tell_listeners(line)


def also_tell(listener: Callable[[str], None]) -> None:
    """Let someone else hear what is said, such as the log of a run that others look at."""
    _listeners.append(listener)


def tell_listeners(line: str) -> None:
    """Tell them alone: at the terminal it can be seen already."""
    for listener in _listeners:
        listener(line)


def set_foot(line: str) -> None:
    """Show a line below all that is said, in place of the one before; an empty one ends it.

    Only for a terminal: it is written over and over.
    """
    global _foot
    with _writing:
        if line or _foot:
            _foot = line
            _write(REWRITE + line)


def at_terminal() -> bool:
    """Whether a person may be looking on, at something that can rewrite a line."""
    return terminal().isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """How many characters fit on a line of the terminal."""
    return os.get_terminal_size(terminal().fileno()).columns or 80


def _write(text: str) -> None:
    stream = terminal()
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        # The terminal was closed. What may go on does so without it; what is still in the buffer
        # must not fail once more when the stream is closed.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def new_log(verb: str) -> Path:
    """A log of its own for a command, under the home."""
    return home() / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{verb}-{os.getpid()}.log"


@contextmanager
def libraries_speak_to(log: Path) -> Iterator[None]:
    """Send what anything else writes to standard error to a file.

    Args:
        log: Appended to; made readable by its owner only.
    """
    global _own
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 2)
    os.close(file)
    _own = os.fdopen(os.dup(kept), "w", encoding="utf-8", errors="replace")
    try:
        yield
    finally:
        # When the process ends it says goodbye to its temporary server, and how many events it has
        # still to send, after our own last word.
        logging.getLogger("prefect").setLevel(logging.CRITICAL)
        logging.raiseExceptions = False  # nor what its logger could not deliver any more
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        _own.close()
        _own = None
