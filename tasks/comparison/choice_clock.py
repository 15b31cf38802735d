"""The clock of a choice, by which each second is charged once."""

from __future__ import annotations

import time


class Clock:
    """Seconds since they were last taken.

    Args:
        begun: When they began, by `time.time`; by default now.
    """

    def __init__(self, begun: float | None = None):
        past = 0.0 if begun is None else max(0.0, time.time() - begun)
        self._since = time.monotonic() - past

    def take(self) -> float:
        """The seconds so far, which then begin anew."""
        before, self._since = self._since, time.monotonic()
        return self._since - before
