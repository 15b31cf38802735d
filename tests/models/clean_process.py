"""A fresh process without the project that loads what is served: its imports are paid for once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.registry.predict import UNUSED

ROOMS = ("fourstage", "flows", "tasks", "corpora", "models", "data_contracts", "tokenizers")
# No served model needs what Keras and TensorFlow import where it is installed either, which takes
# half the time of a start.
HIDDEN = (*ROOMS, *UNUSED)
ANSWERING = f"""
import json, os, sys
for name in {HIDDEN!r}:
    sys.modules[name] = None
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is no answer
{{program}}
for line in sys.stdin:
    print(json.dumps(answer(*json.loads(line))), file=answers, flush=True)
"""


class CleanProcess:
    """A process that answers requests, one line each."""

    def __init__(self, process: subprocess.Popen[str]):
        self._process = process

    def asks(self, *request: Any) -> Any:
        """What ``answer(*request)`` gives there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"the process ended with {self._process.wait()}"
        return json.loads(line)


@contextmanager
def clean_process(program: str, folder: Path) -> Iterator[CleanProcess]:
    """Start one.

    Args:
        program: Python that defines ``answer(model's path, ...)``; plain JSON both ways.
        folder: Where it runs.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-c", ANSWERING.format(program=program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    ) as process:
        yield CleanProcess(process)
