"""A process that knows nothing of this project, to try a registered model in."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fourstage.errors import EnvironmentFault
from fourstage.settings import OWNER, PRIVATE_ENVIRONMENT

SECONDS = 300  # for an answer
KNOWN = (
    *("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "ONEDNN_MAX_CPU_ISA"),
    *("FOURSTAGE_HOME", OWNER),  # by these whoever looks for leftovers knows whose it is
    *PRIVATE_ENVIRONMENT,
)
SCRIPT = Path(__file__).with_name("smoke_test.py")


class SmokeTestFailed(EnvironmentFault):
    """A fresh process could not load a model or got a wrong answer from it."""


class FreshProcess:
    """Started with nothing but its imports; one question is put to it, then it ends.

    It ends with this process too: its standard input closes then.
    """

    def __init__(self):
        self._elsewhere = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_plain_environment(self._elsewhere.name),
            cwd=self._elsewhere.name,
        )

    def ask(self, model: Path) -> Mapping[str, Any]:
        """Load a model and ask it something.

        Args:
            model: The folder with its files.

        Returns:
            Seconds to load and milliseconds a prediction.

        Raises:
            SmokeTestFailed: With the last line of what it said.
        """
        question = json.dumps(str(model)) + "\n"
        try:
            said, complaints = self._process.communicate(question, timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise SmokeTestFailed(f"no answer within {SECONDS} s") from error
        finally:
            self.end()
        lines = [line for line in said.splitlines() if line.startswith("{")]
        if self._process.returncode or not lines:
            last = complaints.strip().splitlines() or [f"exit {self._process.returncode}"]
            raise SmokeTestFailed(last[-1][:300])
        return json.loads(lines[-1])

    def end(self) -> None:
        """End it, whatever it is doing."""
        with self._process:  # closes the pipes and waits
            self._process.kill()
        self._elsewhere.cleanup()


_ready: list[FreshProcess] = []


def get_ready() -> None:
    """Start a process now that `try_in_a_fresh_process` will need soon: imports take seconds."""
    if not _ready:
        _ready.append(FreshProcess())


def try_in_a_fresh_process(model: Path) -> Mapping[str, Any]:
    """Load a model in a new process, with nothing of this project; as `FreshProcess.ask`."""
    process = _ready.pop() if _ready else FreshProcess()
    return process.ask(model)


def _plain_environment(folder: str) -> dict[str, str]:
    """What a model may know of where it runs: no credential, no server, no home of a user."""
    known = {name: os.environ[name] for name in KNOWN if name in os.environ}
    # Two predictions are asked for; a GPU another stage fills would only be in the way.
    return {**known, "HOME": folder, "CUDA_VISIBLE_DEVICES": ""}


@atexit.register
def _end_unasked() -> None:
    while _ready:
        _ready.pop().end()
