"""Computing the last layer only at the positions that scorers read.

Masked-LM reads one token in seven, classification one vector per row. At all other positions, the
last layer's output has no effect on the loss. So its queries, attention and feed-forward network
are computed at the read positions only. The results are the same up to rounding.

    positions of two scorers        [3, 9, 0] [7, 8, 0]
    ``read_positions``           [0, 3, 9, 0,  7, 8, 0]     the first is the row summary
    the scorers' new positions     [1, 2, 3] [4, 5, 6]      indices into ``read_positions``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.summary import MEAN, summary_positions


def where_read(network: Any, scorers: Iterable[Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare a batch for a network that computes its last layer only where `scorers` read it.

    Args:
        network: The network; if it does not support ``read_positions``, the batch is unchanged.
        scorers: All scorers of this batch; if one reads the whole sequence, the batch is unchanged.
        batch: {feature: (B, …)}, the input of network and scorers.

    Returns:
        The batch with ``read_positions`` (B, R), and with the scorers' positions replaced by
        indices into them.
    """
    batch = dict(batch)
    reads = [getattr(scorer, "reads", None) for scorer in scorers]
    wanted = [names for names in reads if names is not None]
    some = getattr(network, "reads_positions", False) and network.row_summary != MEAN
    if not some or len(wanted) < len(reads):
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
