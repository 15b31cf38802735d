"""Files of an evaluation or a probe that hold its answers, row by row."""

from __future__ import annotations

PREDICTIONS = "predictions.parquet"
GATE_PREDICTIONS = "gate-predictions.parquet"
