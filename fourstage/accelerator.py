"""Whether a GPU will be used, told without loading TensorFlow or JAX."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from shutil import which

# Packages with which pip's wheels of a backend run on an NVIDIA GPU; one of them is enough.
LIBRARIES = {
    "tensorflow": ("nvidia.cudnn",),
    "jax": ("jax_cuda13_plugin", "jax_cuda12_plugin"),
}

SECONDS = 20.0  # timeout of the driver's answer


def backend() -> str:
    """The backend of Keras that this process uses or will use."""
    return os.environ.get("KERAS_BACKEND", "tensorflow")


def gpus(query: str) -> list[str]:
    """What NVIDIA's driver says of each GPU; empty without a driver, or where GPUs are hidden.

    Args:
        query: A property as ``nvidia-smi --help-query-gpu`` lists them, such as ``name``.

    Raises:
        subprocess.TimeoutExpired: The driver does not answer.
    """
    smi = which("nvidia-smi")
    if smi is None or _hidden():
        return []
    asked = subprocess.run(
        [smi, f"--query-gpu={query}", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return asked.stdout.splitlines() if asked.returncode == 0 else []


def _hidden() -> bool:
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return True
    platforms = os.environ.get("JAX_PLATFORMS", "") if backend() == "jax" else ""
    return bool(platforms) and not {"cuda", "gpu"} & set(platforms.split(","))


def has_libraries(name: str) -> bool:
    """Whether a backend has been installed with what it needs on an NVIDIA GPU."""
    return any(_is_installed(package) for package in LIBRARIES.get(name, ()))


def _is_installed(package: str) -> bool:
    parent = package.partition(".")[0]
    return find_spec(parent) is not None and find_spec(package) is not None
