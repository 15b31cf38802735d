"""Graceful interruption: signals, deadline and disk limit set a flag that training polls."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """Context manager that handles signals during training and restores the old handlers after it.

    Args:
        deadline_seconds: Time from now until training has to stop; None for no deadline.
    """

    def __init__(self, deadline_seconds: float | None = None):
        self._end = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        self._old: dict[int, Any] = {}
        self._asked_by = ""
        self.signal_number = 0

    def __enter__(self) -> Interruption:
        # Handlers can be set in the main thread only; other threads have no signals.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._old[number] = signal.signal(number, self._raised)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _raised(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = self.signal_number or number

    def ask(self, cause: str) -> None:
        """Ask training to stop at the next safe point.

        Args:
            cause: The cause, for the message.
        """
        self._asked_by = cause

    @property
    def asked(self) -> bool:
        """Whether training has been asked to stop."""
        return bool(self.signal_number or self._asked_by) or self.deadline_passed

    @property
    def deadline_passed(self) -> bool:
        """Whether the deadline has passed."""
        return self._end is not None and time.monotonic() >= self._end

    @property
    def cause(self) -> str:
        """The cause of the stop, for the message."""
        if self.signal_number:
            return signal.Signals(self.signal_number).name
        return self._asked_by or "the deadline"
