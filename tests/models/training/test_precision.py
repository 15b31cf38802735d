"""Precision: asked for, or by the machine's description."""

from __future__ import annotations

import pytest

from fourstage.errors import RecipeError
from models.training import precision as module
from models.training.precision import policy, resolve_precision


def test_what_is_asked_for_is_given():
    assert resolve_precision("float32") == "float32"
    assert resolve_precision("bfloat16") == "bfloat16"
    assert resolve_precision("auto") == resolve_precision(None)
    assert policy("bfloat16") == "mixed_bfloat16"


INTEL, AMD = "vendor_id\t: GenuineIntel\n", "vendor_id\t: AuthenticAMD\n"


@pytest.mark.parametrize(
    ("cpuinfo", "faster"),
    [
        (f"{INTEL}flags\t\t: fpu avx2\n", False),
        (f"{INTEL}flags\t\t: fpu avx2 avx512_bf16\n", False),
        (f"{INTEL}flags\t\t: fpu avx512_bf16 amx_bf16\n", True),
        (f"{AMD}flags\t\t: fpu avx2 avx512f\n", False),
        (f"{AMD}flags\t\t: fpu avx512_bf16\n", True),
        ("Features\t: fp asimd bf16\n", False),
        # The first core tells.
        (f"{INTEL}flags : fpu\n\n{AMD}flags : fpu avx512_bf16 amx_bf16\n", False),
        (None, False),
    ],
)
def test_a_cpu_takes_bfloat16_where_its_products_are_faster(tmp_path, monkeypatch, cpuinfo, faster):
    path = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        path.write_text(cpuinfo)
    monkeypatch.setattr(module, "CPUINFO", path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert module.bfloat16_is_faster.__wrapped__() == faster


@pytest.mark.parametrize(
    ("capability", "libraries", "faster"),
    [("9.0", True, True), ("7.5", True, False), ("9.0", False, False), ("[N/A]", True, False)],
)
def test_a_gpu_takes_bfloat16_where_it_has_it_and_the_backend_has_its_libraries(
    capability, libraries, faster, tmp_path, monkeypatch
):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n[ $1 = --query-gpu=compute_cap ] && echo {capability!r}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(module, "CPUINFO", tmp_path / "absent")
    package = "json" if libraries else "no_such_package"
    monkeypatch.setattr("fourstage.accelerator.LIBRARIES", {module.backend(): (package,)})
    assert module.bfloat16_is_faster.__wrapped__() == faster


def test_anything_else_is_refused():
    with pytest.raises(RecipeError, match="precision: expected one of auto"):
        resolve_precision("float16")
