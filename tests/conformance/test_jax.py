"""The JAX backend has the same network: the same names, the same losses, with every head.

Twenty updates on either backend are in `tests/models/training/test_gradient.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests.conformance.on_jax import run


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
def test_losses_on_jax_are_those_of_tensorflow_with_every_head():
    # JAX compiles each operation of each shape: a quarter of the time goes without optimising.
    jax = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_backend_optimization_level=0",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.on_jax"],
        env=os.environ | jax,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        ours = run()
        said, _ = process.communicate()
    assert process.returncode == 0
    theirs = json.loads(said.splitlines()[-1])
    assert (ours["backend"], theirs["backend"]) == ("tensorflow", "jax")
    assert ours["names"] == theirs["names"]
    assert ours["losses"] == pytest.approx(theirs["losses"], rel=1e-4)
    assert ours["heads"] == pytest.approx(theirs["heads"], rel=1e-4)
    assert ours["remembering"] == pytest.approx(theirs["remembering"], rel=1e-4)
