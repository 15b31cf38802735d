"""What a stage draws is its own: other threads draw from Python's generator as they please."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from models.training.gradient import train
from models.training.stage import Budget, Phase
from tests.models.training.memory import pretraining


@contextmanager
def somebody_draws() -> Iterator[None]:
    """A thread that draws all the time, as Prefect's does before each retry of a request."""
    enough = threading.Event()

    def draw() -> None:
        while not enough.wait(1e-5):
            random.random()

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def test_a_thread_that_draws_random_numbers_changes_no_weight(tmp_path: Path):
    job = pretraining(phases=[Phase(16)], budget=Budget("steps", 3))
    train(job, tmp_path / "alone")
    with somebody_draws():
        train(job, tmp_path / "in company")
    alone, in_company = (
        (tmp_path / name / "network.safetensors").read_bytes() for name in ("alone", "in company")
    )
    assert alone == in_company
