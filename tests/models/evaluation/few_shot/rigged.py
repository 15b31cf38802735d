"""GPT-2 with weights set by hand, so that it can only answer from its context: an induction head.

    layer 0   each position attends to the one before and notes which token stands there
    layer 1   each position attends to those whose noted token is its own, and predicts theirs

After "… 17 30 … 17" it predicts 30. Where a token was not there before, the tokens of the context
are mixed, and what the context lacks is equally likely. The feed-forward networks give 0.

    dimensions   [0, V) the token   [V, V + T) the position   [V + T, 2 V + T) the token before
"""

from __future__ import annotations

import numpy as np

from models.families.gpt2 import Gpt2
from models.weights import load_weights, named_weights

SHARP, LOUD = 400.0, 20.0


def rigged(vocabulary_size: int, length: int) -> Gpt2:
    """The network, for texts of up to `length` tokens."""
    tokens = slice(0, vocabulary_size)
    places = slice(vocabulary_size, vocabulary_size + length)
    noted = slice(vocabulary_size + length, 2 * vocabulary_size + length)
    width = noted.stop
    network = Gpt2(
        vocabulary_size=vocabulary_size,
        num_layers=2,
        hidden_dim=width,
        num_heads=1,
        intermediate_dim=4,
        max_sequence_length=length,
        dropout=0.0,
    )
    weights = {n: np.zeros(v.shape, np.float32) for n, v in named_weights(network).items()}
    for name in weights:
        if name.endswith("gamma"):
            weights[name] += 1.0
    weights["embeddings/token/embeddings"][:, tokens] = np.eye(vocabulary_size)
    weights["embeddings/position/embeddings"][:, places] = np.eye(length)

    def put(name: str, source: slice, target: slice, matrix: np.ndarray) -> None:
        weights[f"{name}/kernel"][source, target] = matrix

    same = np.eye(vocabulary_size)
    before = np.eye(length, k=-1)  # from a position to the one before
    put("block_0/attention/query", places, places, SHARP * before)
    put("block_0/attention/key", places, places, np.eye(length))
    put("block_0/attention/value", tokens, noted, same)
    put("block_1/attention/query", tokens, tokens, SHARP * same)
    put("block_1/attention/key", noted, tokens, same)
    put("block_1/attention/value", tokens, tokens, same)
    for block, strength in (("block_0", 1.0), ("block_1", LOUD)):
        weights[f"{block}/attention/output/kernel"] = strength * np.eye(width, dtype=np.float32)
    load_weights(network, weights)
    return network
