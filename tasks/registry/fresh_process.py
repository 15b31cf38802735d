"""Smoke test of a registered model in a fresh process, isolated from this project."""

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

SECONDS = 300  # timeout of an answer
KNOWN = (
    *("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "ONEDNN_MAX_CPU_ISA"),
    *("FOURSTAGE_HOME", OWNER),  # identify the owner of an orphaned process
    *PRIVATE_ENVIRONMENT,
)
SCRIPT = Path(__file__).with_name("smoke_test.py")


class SmokeTestFailed(EnvironmentFault):
    """A fresh process could not load the model or got an invalid answer."""


class FreshProcess:
    """A process that imports its libraries, tests one model and exits.

    It also exits when this process ends, because its standard input closes.
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
        """Load a model and predict with it.

        Args:
            model: The folder with its files.

        Returns:
            Seconds to load and milliseconds per prediction.

        Raises:
            SmokeTestFailed: The test failed or timed out; with the last line of its output.
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
        """Kill the process."""
        with self._process:  # closes the pipes and waits
            self._process.kill()
        self._elsewhere.cleanup()


_ready: list[FreshProcess] = []


def get_ready() -> None:
    """Start a process for `try_in_a_fresh_process` in advance, since imports take seconds."""
    if not _ready:
        _ready.append(FreshProcess())


def try_in_a_fresh_process(model: Path) -> Mapping[str, Any]:
    """Test a model in a fresh process, without this project's code; as `FreshProcess.ask`."""
    process = _ready.pop() if _ready else FreshProcess()
    return process.ask(model)


def _plain_environment(folder: str) -> dict[str, str]:
    """Environment of the test: no credentials, no server, no user's home folder."""
    known = {name: os.environ[name] for name in KNOWN if name in os.environ}
    # No GPU: the test makes a few predictions, and another stage may be filling its memory.
    return {**known, "HOME": folder, "CUDA_VISIBLE_DEVICES": ""}


@atexit.register
def _end_unasked() -> None:
    while _ready:
        _ready.pop().end()
