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

SECONDS = 300  # for an answer
SCRIPT = Path(__file__).with_name("stranger.py")


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
            # Two predictions are asked for; a GPU another stage fills would only be in the way.
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
            cwd=self._elsewhere.name,
        )

    def ask(self, tracking_uri: str, model: str) -> Mapping[str, Any]:
        """Load a model and ask it something.

        Args:
            tracking_uri: Of the MLflow server.
            model: Such as ``models:/NAME@champion``.

        Returns:
            Seconds to load and milliseconds a prediction.

        Raises:
            SmokeTestFailed: With the last line of what it said.
        """
        question = json.dumps({"model": model, "tracking_uri": tracking_uri}) + "\n"
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


def try_in_a_fresh_process(tracking_uri: str, model: str) -> Mapping[str, Any]:
    """Load a model in a new process, with nothing of this project; as `FreshProcess.ask`."""
    process = _ready.pop() if _ready else FreshProcess()
    return process.ask(tracking_uri, model)


@atexit.register
def _end_unasked() -> None:
    while _ready:
        _ready.pop().end()
