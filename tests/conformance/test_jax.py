"""The JAX backend has the same network: the same names, the same losses, the same updates."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from models.stage_format import NETWORK
from models.training.gradient import train
from models.training.stage import Budget
from tests.conformance.on_jax import every, few, still
from tests.untraced import untraced

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed"
)
# JAX compiles each operation of each shape: a quarter of the time goes without optimising.
JAX = {
    "KERAS_BACKEND": "jax",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}


def on_both(ask: Callable[..., dict[str, Any]], **of: tuple[Path, ...]) -> tuple[dict, dict]:
    """What a function of `on_jax.py` gives here and, at the same time, in a process with JAX.

    Args:
        ask: The function.
        **of: Its arguments, ``here`` and on ``jax``.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.on_jax", ask.__name__, *of.get("jax", ())],
        env=os.environ | JAX,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        ours = ask(*of.get("here", ()))
        said, _ = process.communicate()
    assert process.returncode == 0
    theirs = json.loads(said.splitlines()[-1])
    assert (ours["backend"], theirs["backend"]) == ("tensorflow", "jax")
    return ours, theirs


@pytest.fixture
def initial(tmp_path: Path) -> Path:
    """A stage to start from; of one step, which takes less time than tracing it."""
    folder = tmp_path / "initial"
    with untraced():
        train(still(budget=Budget("steps", 1)), folder)
    return folder


def test_twenty_updates_and_the_losses_of_unlike_heads_are_the_same_on_jax(
    initial: Path, tmp_path: Path
):
    folders = {name: tmp_path / name for name in ("here", "jax")}
    ours, theirs = on_both(few, **{name: (initial, folders[name]) for name in folders})
    assert len(ours["steps"]) == 20
    assert ours["steps"] == pytest.approx(theirs["steps"], rel=1e-4)
    assert ours["heads"] == pytest.approx(theirs["heads"], rel=1e-4)
    names, others = (set(load_file(folder / NETWORK)) for folder in folders.values())
    assert names == others


@pytest.mark.slow
def test_losses_on_jax_are_those_of_tensorflow_with_every_head():
    ours, theirs = on_both(every)
    assert ours["names"] == theirs["names"]
    for name in ("losses", "heads", "remembering"):
        assert ours[name] == pytest.approx(theirs[name], rel=1e-4)
