"""The last layer computed only where it is read.

Masked-LM scores one token in seven and classification one vector a row. What the last layer would
give for all other positions no loss sees, and no gradient comes from; so its queries, its attention
and its feed-forward network run at the positions that are read. Values are the same up to rounding.

    positions of the batch     [3, 9, 0] [7, 8, 0]
    read by the network     [0, 3, 9, 0,  7, 8, 0]      first where it sums the row up
    to the scorers then       [1, 2, 3] [4, 5, 6]       where each stands among those read
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import keras

from models import features as keys
from models.layers.summary import MEAN, summary_positions

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


def where_read(network: Any, scorers: Iterable[Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """The batch for a network that computes its last layer where `scorers` read it.

    Args:
        network: Which must know ``read_positions``; for any other the batch stays as it is.
        scorers: All that see this batch; if one reads the whole sequence, the batch stays too.
        batch: {feature: (B, …)}, on its way into network and scorers.

    Returns:
        The batch with ``read_positions`` (B, R) and, under their names, the scorers' positions
        within them.
    """
    batch = dict(batch)
    said = [getattr(scorer, "reads", None) for scorer in scorers]
    wanted = [names for names in said if names is not None]
    some = getattr(network, "reads_positions", False) and network.row_summary != MEAN
    if not some or len(wanted) < len(said):
        return batch
    read = [summary_positions(network.row_summary, batch)]
    width = 1
    for name in dict.fromkeys(name for names in wanted for name in names if name in batch):
        positions = batch[name]
        read.append(positions)
        count = ops.shape(positions)[1]
        batch[name] = ops.zeros_like(positions) + ops.arange(width, width + count, dtype="int32")
        width += count
    return batch | {keys.READ_POSITIONS: ops.concatenate(read, axis=1)}
