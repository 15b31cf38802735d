"""A fresh process without the project that loads what is served: its imports are paid for once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

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
import mlflow.pyfunc

def predicts(path, *asked):
    model = mlflow.pyfunc.load_model(path)
    return [said(model, rows) for rows in asked]

def said(model, rows):
    try:
        return model.predict(rows)
    except ValueError as error:
        return str(error)

def signs(path):
    return mlflow.pyfunc.load_model(path).metadata.signature.to_dict()

def serves(path, columns):
    import tensorflow as tf
    import tensorflow_text
    loaded = tf.saved_model.load(path)
    return loaded.serve(*(tf.constant(texts) for texts in columns)).numpy().tolist()

for line in sys.stdin:
    name, *request = json.loads(line)
    print(json.dumps(globals()[name](*request)), file=answers, flush=True)
"""


class CleanProcess:
    """A process that answers requests, one line each.

    Args:
        process: Runs `ANSWERING`.
        said: File with what it says besides.
    """

    def __init__(self, process: subprocess.Popen[str], said: Path):
        self._process = process
        self.said = said

    def predicts(self, model: Path, *asked: Any) -> list[Any]:
        """What MLflow's model answers to each list of rows; the message where it refuses them."""
        return self._asks("predicts", str(model), *asked)

    def signature(self, model: Path) -> dict[str, Any]:
        """What MLflow's model says that it takes and gives."""
        return self._asks("signs", str(model))

    def serves(self, saved_model: Path, columns: list[list[str]]) -> list[Any]:
        """What TensorFlow's graph gives to columns of text."""
        return self._asks("serves", str(saved_model), columns)

    def _asks(self, *request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        last = self.said.read_text("utf-8", "replace")[-2000:]
        assert line, f"the process ended with {self._process.wait()}: {last}"
        return json.loads(line)


@contextmanager
def clean_process(folder: Path) -> Iterator[CleanProcess]:
    """Start one.

    Args:
        folder: Where it runs; new.
    """
    said = folder / "said"
    with (
        open(said, "wb") as complaints,
        subprocess.Popen(
            [sys.executable, "-I", "-c", ANSWERING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            cwd=folder,
        ) as process,
    ):
        yield CleanProcess(process, said)


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CleanProcess]:
    """One for all models that this worker's tests serve."""
    with clean_process(tmp_path_factory.mktemp("elsewhere")) as started:
        yield started
