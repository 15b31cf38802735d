"""Files of steps: predictions, one line per row; what is attended to."""

from __future__ import annotations

PREDICTIONS = "predictions.parquet"
GATE_PREDICTIONS = "gate-predictions.parquet"
ATTENTION = "attention.parquet"  # a line for each pair of tokens, by text, kind, layer and head
WORD_REGIONS = "word_regions.json"  # of a few rows, what their words look at
