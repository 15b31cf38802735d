"""What every room's tests share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.faults.finished_home import finished as finished
from tests.faults.finished_home import listener_of as listener_of
from tests.flows.databases import empty_mlflow as empty_mlflow
from tests.flows.databases import empty_prefect as empty_prefect
from tests.models.clean_process import elsewhere as elsewhere
from tests.untraced import untraced

gc.set_threshold(10_000)  # as the command does
# No test is about time: an example may take long on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_DATA = os.environ.get("FOURSTAGE_DATA", "")


@pytest.fixture(scope="session", autouse=True)
def no_data() -> Iterator[None]:
    """No test finds a real data set but by ``shared_data``, so that none needs one unsaid."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("FOURSTAGE_DATA", raising=False)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data sets: of FOURSTAGE_DATA, else ``shared/data`` beside the clone."""
    configured = [Path(part) for part in _DATA.split(os.pathsep) if part]
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (*configured, beside):
        if (folder / "tasks").is_dir():
            return folder
    pytest.skip("no real data sets: FOURSTAGE_DATA names no folder that has tasks/")


@pytest.fixture(name="untraced")
def _untraced() -> Iterator[None]:
    """Graphs run operation by operation: a few steps take less time than tracing them."""
    with untraced():
        yield
