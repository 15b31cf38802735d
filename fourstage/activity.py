"""Shows the current activity, so that no terminal is silent for long.

At a terminal it is a single line below all others that is rewritten. Elsewhere, such as in a log,
it is a plain line when something takes longer, then one per minute.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fourstage.terminal import at_terminal, columns, say, set_foot, tell_listeners
from fourstage.text_width import cropped, width

REWRITE_SECONDS = 0.5
FIRST_LINE_SECONDS = 3
NEXT_LINE_SECONDS = 60
BAR = (5, 24)  # characters, least and most


class _Activity:
    def __init__(self, what: str):
        self.what = what
        self.told = ""
        self.done = self.total = 0
        self.began = time.monotonic()
        self.first: tuple[int, float] | None = None
        self.over = threading.Event()

    def progress(self, done: int, total: int, told: str) -> None:
        self.done, self.total, self.told = done, total, told
        if self.first is None:
            self.first = (done, time.monotonic())
            self.show()

    def tell(self) -> None:
        """Report until the activity is over; runs in its own thread."""
        due = self.began + FIRST_LINE_SECONDS
        while not self.over.wait(REWRITE_SECONDS):
            if _now is not self:
                continue
            self.show()
            if time.monotonic() >= due:
                (tell_listeners if at_terminal() else say)("  ".join(self._parts()))
                due = time.monotonic() + NEXT_LINE_SECONDS

    def show(self) -> None:
        """Rewrite the terminal's last line; does nothing without a terminal."""
        if at_terminal():
            set_foot(self._line(columns() - 1))

    def _line(self, room: int) -> str:
        parts = self._parts()
        left = room - width("  ".join(parts)) - 2
        if self.total and left >= BAR[0]:
            length = min(left, BAR[1])
            full = length * self.done // self.total
            parts.insert(1, "━" * full + "╌" * (length - full))
        return cropped("  ".join(parts), room)

    def _parts(self) -> list[str]:
        parts = [self.what]
        if self.total:  # the counts say what is being done, so the short name is enough
            parts = [self.what.partition(": ")[0], f"{self.done:,} of {self.total:,}"]
        gone, left = time.monotonic() - self.began, self._seconds_left()
        parts.append(_clock(gone) if left is None else f"{_clock(gone)}, {_clock(left)} left")
        if self.told:
            parts.append(self.told)
        return parts

    def _seconds_left(self) -> float | None:
        if not self.total or self.first is None or self.done == self.first[0]:
            return None
        pace = (time.monotonic() - self.first[1]) / (self.done - self.first[0])
        return pace * (self.total - self.done)


_now: _Activity | None = None


@contextmanager
def activity(what: str) -> Iterator[None]:
    """Show an activity and the time it has taken, until the block ends.

    Args:
        what: For example ``stage general: training``. A nested activity is shown in its place.
    """
    global _now
    outer, _now = _now, _Activity(what)
    _now.show()
    teller = threading.Thread(target=_now.tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        _now.over.set()
        teller.join()
        _now = outer
        set_foot("")


def progress(done: int, total: int, told: str = "") -> None:
    """Report the progress of the current activity.

    Args:
        done: Units done.
        total: Units in all.
        told: Further information to show, such as the loss.
    """
    if _now is not None:
        _now.progress(done, total, told)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
