"""Someone with a home of their own who types commands, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from fourstage.settings import REPOSITORY
from tests.flows.screen import Screen

OURS = ("PREFECT_", "MLFLOW_", "FOURSTAGE_", "KERAS_", "COLUMNS", "PYTEST_")
LISTENER = Path(__file__).with_name("listener.py")
UNTRACED = "--untraced"
ABSENT = Path(__file__).with_name("absent")


@dataclass(frozen=True)
class Answer:
    """What a command said.

    Attributes:
        code: Its exit code; as a shell sees it, 128 + the number of a signal it died of.
        out: Standard output.
        err: Standard error.
        seconds: How long it took.
    """

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> Any:
        """The one value on standard output; anything else there is an error."""
        return json.loads(self.out)

    def told(self) -> str:
        """For the message of an assertion."""
        return f"exit {self.code}\n{self.out[-1500:]}\n{self.err[-3000:]}"


@dataclass
class Person:
    """A home and a folder to be in.

    Args:
        home: ``FOURSTAGE_HOME``.
        folder: Where commands are typed.
        environment: What else is set.
    """

    home: Path
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def variables(self, **more: str) -> dict[str, str]:
        """The environment, with nothing of whoever runs the tests."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{clean.get('PATH', '')}"  # activated
        modules = f"{REPOSITORY}{os.pathsep}{ABSENT}"
        own = {"FOURSTAGE_HOME": str(self.home), "PYTHONPATH": modules, "PATH": path}
        return clean | own | self.environment | more

    def start(
        self, *words: str, stderr: int = subprocess.PIPE, **environment: str
    ) -> subprocess.Popen[str]:
        """Start ``fourstage WORDS`` in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "fourstage.command", *words],
            cwd=self.folder,
            env=self.variables(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    def types(self, *words: str, seconds: float = 900, **environment: str) -> Answer:
        """Run ``fourstage WORDS`` and wait."""
        began = time.monotonic()
        return answer_of(self.start(*words, **environment), began, seconds)

    def sees(self, *words: str, columns: int, **environment: str) -> tuple[Answer, Screen]:
        """Run ``fourstage WORDS`` with standard error at a terminal, and wait."""
        began = time.monotonic()
        with Screen(columns) as screen:
            answer = answer_of(self.start(*words, stderr=screen.end, **environment), began)
        return replace(answer, err=screen.text), screen

    def python(
        self, code: str, *arguments: str, seconds: float = 200, **environment: str
    ) -> Answer:
        """Run a little program, isolated from the project (``-I``)."""
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", code, *arguments],
            cwd=self.folder,
            env=self.variables(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return answer_of(process, began, seconds)


def answer_of(process: subprocess.Popen[str], began: float, seconds: float = 900) -> Answer:
    """Wait for a process; one that takes too long is ended and is an error."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end(process)
        out, err = process.communicate()
        raise AssertionError(f"no end within {seconds} s\n{out[-1500:]}\n{err[-3000:]}") from None
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Answer(code, out, err or "", time.monotonic() - began)


def end(process: subprocess.Popen[str]) -> None:
    """End a process of ours with all it started."""
    family = [process.pid]
    if psutil.pid_exists(process.pid):
        family += [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    for pid in family:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def living(home: Path) -> list[psutil.Process]:
    """Processes that run in a home."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("FOURSTAGE_HOME") == str(home):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def end_all(home: Path) -> None:
    """End what tests of a home may have left."""
    for process in living(home):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


class Listener:
    """One process that runs one command after another, so that imports are paid for once.

    Only for tests that are about what a command answers; what is about a process's life, its
    signals or its speed gets a process of its own.

    Args:
        person: Whose home and environment.
        untraced: Whether graphs run operation by operation: a few steps take less time than tracing
            them, but end with other bits in the last place.
    """

    def __init__(self, person: Person, untraced: bool = False):
        self.person = person
        self.process = subprocess.Popen(
            [sys.executable, str(LISTENER), *([UNTRACED] if untraced else [])],
            cwd=person.folder,
            env=person.variables(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def types(self, *words: str) -> Answer:
        """Run ``fourstage WORDS``."""
        return self.asks(command=words)

    def asks(self, **request: Any) -> Answer:
        """Send one request and wait for what came of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        began = time.monotonic()
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the listener ended with {self.process.wait()}"
        return Answer(**json.loads(line), seconds=time.monotonic() - began)

    def close(self) -> None:
        """Let it go, and end it if it stays."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            end(self.process)
