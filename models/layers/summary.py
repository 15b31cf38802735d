"""One vector a row, read where the network says that it sums a row up.

first   position 0, which a bidirectional network sees everything from (BERT's [CLS])
last    the last real token, the only one that a causal network shows the whole row (GPT)
mean    the mean of all real tokens
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from models import features as keys
from models.layers.gather import gather_positions

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

FIRST, LAST, MEAN = "first", "last", "mean"


def summary_positions(summary: str, batch: Mapping[str, Any]) -> Any:
    """(B, 1) int32, the position that sums each row up.

    Args:
        summary: The network's; `FIRST` or `LAST`.
        batch: With token_ids, and padding_mask where rows are padded on the right.
    """
    first = ops.zeros_like(batch[keys.TOKEN_IDS][:, :1])
    if summary == FIRST:
        return first
    if keys.PADDING_MASK not in batch:
        return first + ops.shape(batch[keys.TOKEN_IDS])[1] - 1
    return ops.sum(ops.cast(batch[keys.PADDING_MASK], "int32"), axis=1, keepdims=True) - 1


def row_vectors(summary: str, batch: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """(B, D) float32, what the network's last layer holds of each row.

    Args:
        summary: The network's.
        batch: What the network was fed; where it was read at some positions alone
            (`models.reading`), the summary's is the first of them.
        outputs: Its outputs, sequence_output among them.
    """
    sequence = outputs[keys.SEQUENCE_OUTPUT]
    if summary == MEAN:
        sequence = ops.cast(sequence, "float32")
        if keys.PADDING_MASK not in batch:
            return ops.mean(sequence, axis=1)
        real = ops.cast(batch[keys.PADDING_MASK], "float32")[:, :, None]  # (B, T, 1)
        return ops.sum(sequence * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)
    if summary == LAST and keys.READ_POSITIONS not in batch:
        sequence = gather_positions(sequence, summary_positions(summary, batch))
    return ops.cast(sequence[:, 0], "float32")
