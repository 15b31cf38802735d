"""Files of an evaluation, a probe or a measurement: predictions, one line per row; what is seen."""

from __future__ import annotations

PREDICTIONS = "predictions.parquet"
GATE_PREDICTIONS = "gate-predictions.parquet"
WORD_REGIONS = "word_regions.json"  # of a few rows, what their words look at
