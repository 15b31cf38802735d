"""Turns errors into exit codes and one readable message."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType

from fourstage.errors import (
    ContractViolation,
    EnvironmentFault,
    GateRefused,
    Interrupted,
    RecipeError,
)
from fourstage.settings import EMBEDDED, home, without_credentials
from fourstage.space import no_space, too_many_open_files
from fourstage.text_width import harmless

TRACEBACK = "FOURSTAGE_TRACEBACK"
INTERRUPTED = 128 + signal.SIGINT
ENDED = 128 + signal.SIGTERM
BROKEN_PIPE = 128 + signal.SIGPIPE

# A signal that arrives within `logging` is put off so long and so often; a log that nobody reads
# can block for ever.
PUT_OFF_SECONDS, MOST_PUT_OFF = 0.02, 50

_obeyed: int | None = None  # the signal that ends this command
_put_off = 0


class _Ended(BaseException):
    """SIGTERM as an exception: the default action would leave our servers running."""


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command and turn what it raises into its exit code and a message.

    A stack trace is shown only with ``FOURSTAGE_TRACEBACK=1``. It helps developers only, and its
    values could contain a user's text.
    """
    sys.excepthook = _say_internal_error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
        # A shell starts background jobs with SIGINT ignored. Our servers would inherit that, and
        # Prefect's worker could not be stopped.
        signal.signal(signal.SIGINT, _interrupt)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # ignored under nohup
            signal.signal(signal.SIGHUP, _hang_up)
    try:
        code = command()
        sys.stdout.flush()
        return code
    except (RecipeError, ContractViolation, GateRefused, EnvironmentFault) as error:
        if isinstance(error, Interrupted):
            _ignore_interrupts()
        return _said(str(error), error.exit_code)
    except (KeyboardInterrupt, _Ended):
        return _said_ended()
    except BrokenPipeError:
        # The reader of our output is gone, as with `| head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except MemoryError:
        return _said("out of memory; a smaller batch_size, or more micro_batches, needs less", 1)
    except _prefect_out_of_reach() as error:
        return _said(_of_prefect(error), 1)
    except OSError as error:
        if error.errno == errno.EMFILE:
            return _said(
                f"{too_many_open_files()}. Finished steps are kept; run the same command again", 1
            )
        place = f" ({error.filename})" if error.filename else ""
        return _said(f"{error.strerror or error}{place}; finished steps are kept", 1)
    except Exception:
        # Prefect may swallow a signal's exception, and fail for want of what it interrupted.
        if _obeyed is None:
            raise
        return _said_ended()


def _prefect_out_of_reach() -> tuple[type[Exception], ...]:
    """The errors that Prefect's client lets through, if it was used at all."""
    httpx = sys.modules.get("httpx")
    return (httpx.TransportError, httpx.HTTPStatusError) if httpx else ()


def _of_prefect(error: Exception) -> str:
    """Why a flow could not reach its server, named or temporary."""
    said = f"{type(error).__name__}: {error}".split("\n", 1)[0][:200]
    named = os.environ.get("PREFECT_API_URL") if not os.environ.get(EMBEDDED) else None
    where = without_credentials(named or "")
    lack = "" if where else no_space(home())
    if lack:
        return f"Prefect's database: {lack}; make room, then run the same command again"
    server = f"PREFECT_API_URL={where}" if where else "Prefect's server of this run"
    return (
        f"{server} does not answer as it should: {said}. What is finished is kept; once it runs,"
        " run the same command again to go on"
    )


def _said(message: str, code: int) -> int:
    if os.environ.get(TRACEBACK) == "1":
        traceback.print_exc()
    try:
        sys.stderr.write(f"fourstage: {harmless(message)}\n")
        sys.stderr.flush()
    except OSError:
        # The terminal was closed. Python would flush once more at exit, and fail with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code


def _said_ended() -> int:
    """Say which signal ended the command."""
    by_hand = _obeyed is None or _obeyed == signal.SIGINT
    what = "interrupted" if by_hand else "ended by SIGTERM"
    return _said(f"{what}; run the same command again to go on", INTERRUPTED if by_hand else ENDED)


def _end(number: int, frame: FrameType | None) -> None:
    if _obeys(number, frame):
        raise _Ended


def _hang_up(number: int, frame: FrameType | None) -> None:
    """The terminal was closed: end like after SIGTERM, by its current handler."""
    signal.raise_signal(signal.SIGTERM)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Obey the first Ctrl-C; a second one would only disturb the clean-up."""
    if _obeys(number, frame):
        raise KeyboardInterrupt


def _obeys(number: int, frame: FrameType | None) -> bool:
    """Whether to end at once; within `logging`, the signal comes again a moment later.

    An exception between the line that takes a handler's lock and the ``try`` that releases it would
    leave the lock taken, and every thread that logs during the clean-up would wait for ever.
    """
    global _obeyed, _put_off
    if _is_logging(frame) and _put_off < MOST_PUT_OFF:
        _put_off += 1
        to = [threading.main_thread().ident, number]  # it alone wakes up then
        again = threading.Timer(PUT_OFF_SECONDS, signal.pthread_kill, to)
        again.daemon = True
        again.start()
        return False
    _obeyed = number
    _ignore_interrupts()
    return True


def _is_logging(frame: FrameType | None) -> bool:
    """Whether a function of `logging` has called what runs in a frame."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "logging":
            return True
        frame = frame.f_back
    return False


def _ignore_interrupts() -> None:
    """Ignore further signals, so that one during the clean-up does not end in a stack trace."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _say_internal_error(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Report an unhandled error by its place in the code, without values; Python exits with 1."""
    if os.environ.get(TRACEBACK) == "1":
        sys.__excepthook__(kind, error, trace)
        return
    frames = traceback.extract_tb(trace)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    sys.stderr.write(
        f"fourstage: internal error: {kind.__name__}{place}. This is a fault of Fourstage; "
        f"{TRACEBACK}=1 shows all of it. Finished steps are kept.\n"
    )
