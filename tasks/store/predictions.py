"""Prediction files of an evaluation or a probe, one line per row."""

from __future__ import annotations

PREDICTIONS = "predictions.parquet"
GATE_PREDICTIONS = "gate-predictions.parquet"
