"""A terminal, as far as our command writes to one: lines, and a last line that is rewritten."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import termios
import threading
from types import TracebackType

REWRITE = "\r\x1b[K"
STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """A pseudo-terminal whose other end is given to a process.

    Args:
        columns: How wide it is.
    """

    def __init__(self, columns: int):
        self.columns = columns
        self._read, self.end = os.openpty()
        fcntl.ioctl(self._read, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._written = bytearray()
        self._reader = threading.Thread(target=self._drain)

    def __enter__(self) -> Screen:
        """Begin to look."""
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Look to the end: until nobody else holds the terminal."""
        termios.tcdrain(self.end)  # what was written last would be lost now and then
        os.close(self.end)
        self._reader.join()
        os.close(self._read)

    @property
    def feet(self) -> list[str]:
        """Every last line that was rewritten later."""
        lines = self._plain().split("\n")
        return [foot for line in lines for foot in line.split(REWRITE)[:-1] if foot]

    @property
    def lines(self) -> list[str]:
        """What stays to be read."""
        return [line.split(REWRITE)[-1] for line in self._plain().split("\n")]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)

    def _plain(self) -> str:
        return STYLE.sub("", self._written.decode("utf-8").replace("\r\n", "\n"))

    def _drain(self) -> None:
        while True:
            try:
                read = os.read(self._read, 65536)
            except OSError:  # the last who held it is gone
                return
            if not read:
                return
            self._written += read
