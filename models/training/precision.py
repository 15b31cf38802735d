"""Precision of the matrix products: bfloat16 where the processor is faster with it.

Variables, LayerNorms, softmax, losses and the optimizer are always float32. The precision is part
of a stage's key, so it is chosen without loading TensorFlow.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fourstage.accelerator import backend, gpus, has_libraries
from fourstage.errors import RecipeError

PRECISIONS = ("auto", "float32", "bfloat16")
# What avx512_bf16 is worth depends on who built it: with it oneDNN's matrix products took .53 times
# as long in bfloat16 as in float32 on AMD's Zen 4, and 1.65 times on an Intel Xeon without AMX
# (benchmarks/matrix_products.py; docs/performance.md). So alone it counts on AMD only.
_AMX, _AVX512 = "amx_bf16", "avx512_bf16"
_AMD = "AuthenticAMD"
CPUINFO = Path("/proc/cpuinfo")
_FIRST_CAPABILITY = 8.0  # compute capability of the first NVIDIA GPUs with bfloat16 (A100)


def resolve_precision(asked: str | None = None) -> str:
    """The precision for a recipe's setting: ``float32`` or ``bfloat16``.

    Args:
        asked: The setting; ``auto`` or None for the faster one on this machine.

    Raises:
        RecipeError: The setting is none of `PRECISIONS`.
    """
    if asked in (None, "auto"):
        return "bfloat16" if bfloat16_is_faster() else "float32"
    if asked not in PRECISIONS:
        raise RecipeError(
            f"precision: expected one of {', '.join(PRECISIONS)}, got {str(asked)[:40]!r}"
        )
    return asked


def policy(precision: str) -> str:
    """The Keras dtype policy of a network for a resolved precision."""
    return {"float32": "float32", "bfloat16": "mixed_bfloat16"}[precision]


@cache
def bfloat16_is_faster() -> bool:
    """Whether this machine multiplies matrices faster in bfloat16 than in float32."""
    return _gpu_has_bfloat16() or _cpu_has_fast_bfloat16(CPUINFO)


def _cpu_has_fast_bfloat16(cpuinfo: Path) -> bool:
    """Whether the first core has AMX, or is AMD's with bfloat16; False where nothing tells."""
    if not cpuinfo.exists():
        return False
    first = cpuinfo.read_text("utf-8", "replace").partition("\n\n")[0]
    lines = (line.partition(":") for line in first.splitlines())
    told = {name.strip(): value.strip() for name, _, value in lines}
    flags = told.get("flags", "").split()
    return _AMX in flags or (_AVX512 in flags and told.get("vendor_id") == _AMD)


def _gpu_has_bfloat16() -> bool:
    """Whether the backend will find GPUs with bfloat16: driver, libraries, compute capability."""
    if not has_libraries(backend()):
        return False
    told = [line.strip() for line in gpus("compute_cap")]
    capabilities = [float(line) for line in told if line.replace(".", "").isdigit()]
    return min(capabilities, default=0.0) >= _FIRST_CAPABILITY
