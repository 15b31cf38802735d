"""Processes that work when asked, so that peers are measured in turns on a busy machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager


class Worker:
    """A process that answers each line with numbers. Its first line says that it is ready."""

    def __init__(self, *command: str):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._line()  # "ready": the next one starts when this one has nothing to do

    def ask(self, question: str) -> list[float]:
        """The numbers it answers with."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{question}\n")
        self.process.stdin.flush()
        return [float(number) for number in self._line().split()]

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"{self.process.args}: ended with {self.process.wait()}")
        return line


@contextmanager
def started(commands: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, Worker]]:
    """Workers by name, started one after the other; ended afterwards."""
    with ExitStack() as stack:
        workers = {}
        for name, command in commands.items():
            workers[name] = worker = Worker(*command)
            stack.callback(worker.process.wait)
            stack.callback(worker.process.stdin.close)  # type: ignore[union-attr]
        yield workers
