"""Keeps the terminal for our own messages and sends the libraries' output to a log.

TensorFlow's C++ code, Prefect and MLflow all write to standard error. During a run that output goes
to a file, so that the terminal shows only the run's own lines, and an error is the last of them.
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

REWRITE = "\r\x1b[K"  # go to the beginning of the line and clear it

_own: TextIO | None = None
_writing = threading.RLock()
_foot = ""
_listeners: list[Callable[[str], None]] = []


def terminal() -> TextIO:
    """The stream for our messages and progress: standard error as the user started us with it."""
    return _own or sys.stderr


def say(message: str) -> None:
    """Print one sentence, with control characters replaced."""
    line = "".join(c if c.isprintable() else " " for c in message)
    with _writing:
        _write(f"{REWRITE if _foot else ''}{line}\n{_foot}")
    tell_listeners(line)


def also_tell(listener: Callable[[str], None]) -> None:
    """Pass all messages to a listener as well, such as the log of a flow run."""
    _listeners.append(listener)


def tell_listeners(line: str) -> None:
    """Pass a line to the listeners only, because the terminal shows it already."""
    for listener in _listeners:
        listener(line)


def set_foot(line: str) -> None:
    """Show a line below all messages, replacing the previous one; an empty line removes it.

    Only for a terminal, because the line is overwritten in place.
    """
    global _foot
    with _writing:
        if line or _foot:
            _foot = line
            _write(REWRITE + line)


def at_terminal() -> bool:
    """Whether messages go to a terminal that can rewrite a line."""
    return terminal().isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """The width of the terminal in characters."""
    return os.get_terminal_size(terminal().fileno()).columns or 80


def _write(text: str) -> None:
    stream = terminal()
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        # The terminal was closed. Continue without it, and discard the buffer, which would fail
        # again when the stream is closed.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def new_log(verb: str) -> Path:
    """The path of a new log for a command, under the home."""
    return home() / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{verb}-{os.getpid()}.log"


@contextmanager
def libraries_speak_to(log: Path) -> Iterator[None]:
    """Redirect everything else that is written to standard error to a file.

    Args:
        log: The file to append to; only its owner can read it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with _redirected(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)):
        try:
            yield
        finally:
            # At exit Prefect logs about its temporary server and unsent events, after our last
            # message.
            logging.getLogger("prefect").setLevel(logging.CRITICAL)
            logging.raiseExceptions = False  # nor errors about log records it could not deliver


@contextmanager
def libraries_are_silent() -> Iterator[None]:
    """Discard everything else that is written to standard error, such as TensorFlow's greeting."""
    with _redirected(os.open(os.devnull, os.O_WRONLY)):
        yield


@contextmanager
def _redirected(file: int) -> Iterator[None]:
    """Let all but our messages go to an open file, which is closed."""
    global _own
    sys.stderr.flush()
    kept, before = os.dup(2), _own
    os.dup2(file, 2)
    os.close(file)
    ours = os.fdopen(os.dup(kept), "w", encoding="utf-8", errors="replace")
    _own = before or ours
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        _own = before
        ours.close()
