"""Empty databases, as the first start of a home makes them: made once, then copied.

That a first start makes them is told by the quickstart in `test_lifecycle.py`, and by
tests/fourstage/test_embedded_prefect.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fourstage.settings import PRIVATE_ENVIRONMENT
from tasks.tracking.connection import connect
from tests.made_once import made_once


def put_prefect(database: Path, folder: Path) -> None:
    """Let a folder be a PREFECT_HOME in which a server has started before."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in database.parent.glob(f"{database.name}*"):
        shutil.copy(file, folder)


@pytest.fixture(scope="session")
def empty_prefect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prefect's, which knows no run."""

    def make(folder: Path) -> None:
        subprocess.run(
            [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"],
            env=os.environ | PRIVATE_ENVIRONMENT | {"PREFECT_HOME": str(folder)},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    return made_once(tmp_path_factory, "empty-prefect", make) / "prefect.db"


@pytest.fixture(scope="session")
def empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's, which knows no run."""

    def make(folder: Path) -> None:
        connect(f"sqlite:///{folder / 'mlflow.db'}", folder)

    return made_once(tmp_path_factory, "empty-mlflow", make) / "mlflow.db"
