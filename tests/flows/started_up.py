"""``fourstage up`` in a home, for as long as a test needs it."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.flows.conftest import free_port
from tests.flows.person import Person, end, end_all

START_SECONDS = 300


@dataclass
class Up:
    """What ``fourstage up`` started."""

    person: Person
    process: subprocess.Popen[str]
    prefect: str
    mlflow: str
    said: Path

    @property
    def login(self) -> str:
        """``user:password``, as its owner can read it."""
        return (self.person.home / "login").read_text("utf-8").strip()

    def ask(self, path: str, body: Any | None = None) -> Any:
        """Ask Prefect's API, as the client of somebody who is logged in."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": basic(self.login)}
        if data is not None:
            ours = {"Prefect-Csrf-Client": "a-test"}
            token = self.ask("csrf-token?client=a-test")["token"]
            headers |= ours | {"Prefect-Csrf-Token": token}
        request = urllib.request.Request(f"{self.prefect}/api/{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def basic(login: str) -> str:
    """The header by which a client says who it is."""
    return f"Basic {base64.b64encode(login.encode()).decode()}"


@contextmanager
def started_up(person: Person, folder: Path) -> Iterator[Up]:
    """Start everything and wait until it says so; afterwards nothing of the home runs on.

    Args:
        person: Who types it, in a project folder.
        folder: For what it says.
    """
    ports = free_port(), free_port()
    said = folder / "said"
    with open(said, "wb") as stream:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "fourstage.command", "up"),
                *("--prefect-port", str(ports[0]), "--mlflow-port", str(ports[1])),
            ],
            cwd=person.folder,
            env=person.variables(),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while "Ctrl-C ends" not in said.read_text("utf-8"):
            assert process.poll() is None, said.read_text("utf-8")
            assert time.monotonic() < deadline, said.read_text("utf-8")
            time.sleep(0.2)
        yield Up(person, process, *(f"http://127.0.0.1:{port}" for port in ports), said)
    finally:
        end(process)
        end_all(person.home)
