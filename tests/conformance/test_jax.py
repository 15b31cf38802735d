"""The JAX backend trains the same network: the same names, the same losses, with every head."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests.conformance.on_jax import run


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
def test_twenty_steps_on_jax_give_the_losses_of_tensorflow_and_so_does_every_head():
    # JAX compiles each operation of each shape: a quarter of the time goes without optimising.
    jax = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_backend_optimization_level=0",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.on_jax", "20"],
        env=os.environ | jax,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        ours = run(20)
        said, _ = process.communicate()
    assert process.returncode == 0
    theirs = json.loads(said.splitlines()[-1])
    assert (ours["backend"], theirs["backend"]) == ("tensorflow", "jax")
    assert ours["names"] == theirs["names"]
    assert ours["losses"] == pytest.approx(theirs["losses"], abs=1e-4)
    assert ours["losses"][-1] < ours["losses"][0]
    assert ours["heads"] == pytest.approx(theirs["heads"], rel=1e-4)
    assert ours["remembering"] == pytest.approx(theirs["remembering"], rel=1e-4)
