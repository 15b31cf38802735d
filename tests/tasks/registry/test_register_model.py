"""A package that two recipes have in common."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tasks.registry import register_model
from tasks.registry.register_model import register
from tasks.store.ancestry import gather
from tasks.store.registry_memory import Version
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import start_lifecycle
from tests.tasks.lifecycle import Lifecycle, make_light_package


def test_recipes_that_differ_in_the_models_name_alone_upload_their_package_once(
    tracking: Tracking, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lifecycle = Lifecycle(home, package=make_light_package(tmp_path / "package"))
    package = gather(lifecycle.store.root, lifecycle["package"])
    run, begun, upload = start_lifecycle(tracking, "demo"), [], register_model.upload

    def slow(*given: Any, **more: Any) -> Any:
        begun.append(more["name"])
        time.sleep(1)
        return upload(*given, **more)

    def registered(name: str) -> Version:
        return register(tracking, package, name=name, run_id=run)

    monkeypatch.setattr(register_model, "upload", slow)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(registered, ("one", "two"))
    assert len(begun) == 1
    assert (one.number, two.number) == (1, 1)
    assert one.model_id == two.model_id
