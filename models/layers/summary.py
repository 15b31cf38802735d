"""Summary of a row: one vector per row from the network's last layer.

first   position 0, BERT's [CLS], for bidirectional networks
last    the last real token, for causal networks (GPT), where only it sees the row
mean    the mean of all tokens without padding
max     the largest value of each number over all tokens without padding
both    mean and max side by side, twice as wide
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models import features as keys
from models.keras_ops import ops
from models.layers.gather import gather_positions

FIRST, LAST, MEAN, MAX, BOTH = "first", "last", "mean", "max", "both"
OF_ALL = (MEAN, MAX, BOTH)  # of all tokens, not of one position


def summary_positions(summary: str, batch: Mapping[str, Any]) -> Any:
    """The summary position of each row, (B, 1) int32.

    Args:
        summary: The network's ``row_summary``, `FIRST` or `LAST`.
        batch: A batch with token_ids, and with padding_mask if rows are padded, on the right or,
            for `LAST`, on the left.
    """
    first = ops.zeros_like(batch[keys.TOKEN_IDS][:, :1])
    if summary == FIRST:
        return first
    if keys.PADDING_MASK not in batch:
        return first + ops.shape(batch[keys.TOKEN_IDS])[1] - 1
    real = ops.cast(batch[keys.PADDING_MASK], "int32")
    places = ops.cumsum(ops.ones_like(real), axis=1)  # from 1 on
    return ops.max(real * places, axis=1, keepdims=True) - 1


def row_vectors(summary: str, batch: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The summary vector of each row, (B, D) float32; of `BOTH` (B, 2D).

    Args:
        summary: One of those above.
        batch: The network's input. If it has ``read_positions`` (`models.scored_positions`), the
            first of them is the summary position.
        outputs: The network's outputs, with sequence_output.
    """
    sequence = outputs[keys.SEQUENCE_OUTPUT]
    if summary in OF_ALL:
        return _of_all(summary, ops.cast(sequence, "float32"), batch.get(keys.PADDING_MASK))
    if summary == LAST and keys.READ_POSITIONS not in batch:
        sequence = gather_positions(sequence, summary_positions(summary, batch))
    return ops.cast(sequence[:, 0], "float32")


def _of_all(summary: str, sequence: Any, mask: Any) -> Any:
    """The summary of (B, T, D) float32 where the mask (B, T) is 1; without a mask, of all."""
    if summary == BOTH:
        return ops.concatenate([_of_all(each, sequence, mask) for each in (MEAN, MAX)], axis=-1)
    if mask is None:
        return (ops.mean if summary == MEAN else ops.max)(sequence, axis=1)
    real = ops.cast(mask, "float32")[:, :, None]  # (B, T, 1)
    if summary == MAX:
        return ops.max(ops.where(real > 0, sequence, -np.inf), axis=1)
    return ops.sum(sequence * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)
