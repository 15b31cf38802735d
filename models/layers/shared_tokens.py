"""Tells a network which tokens the other text of a pair has, too.

    [CLS] who wrote emma ? [SEP] emma is a novel by austen [SEP]
                    *            *                          + a trained vector, one for each text

A small network does not learn by itself, from some thousand rows, to hold each token against all
others. The vectors begin at random, as long as the tokens' own: from zero they grow too slowly
(docs/decisions/0078).

Reference:
    Chen et al. 2017, arXiv 1704.00051, 3.2: "exact match", there for words of the passage alone,
    and one of several features that enter an LSTM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.protocols import Context

TEXTS = 2


def shared_tokens(wanted: bool, network: Any, context: Context) -> SharedTokens | None:
    """What a head adds for a network, if it is wanted."""
    return SharedTokens(network.hidden_dim, context.tokenizer.special_ids) if wanted else None


class SharedTokens(keras.layers.Layer):
    """What is added to the vectors of tokens that both texts have.

    Args:
        hidden_dim: D, the width of the network.
        special_ids: Ids of special tokens, which belong to no text.

    Shape:
        {token_ids, segment_ids, padding_mask (B, T)} → (B, T, D) float32.
    """

    def __init__(self, hidden_dim: int, special_ids: Sequence[int]):
        super().__init__(name="shared_tokens", dtype="float32", autocast=False)
        self.hidden_dim = hidden_dim
        self.special_ids = tuple(special_ids)

    def build(self, input_shape: Any = None) -> None:
        """Create the vectors."""
        self.vectors = self.add_weight(
            shape=(TEXTS, self.hidden_dim),
            initializer=keras.initializers.TruncatedNormal(stddev=1.0),
            name="vectors",
            autocast=False,
        )
        self.built = True

    def call(self, batch: dict) -> Any:
        """The vector of its text for each shared token, zero for all others."""
        segments = batch[keys.SEGMENT_IDS]
        vectors: Any = ops.convert_to_tensor(self.vectors)
        return ops.where(self.found(batch)[..., None], ops.take(vectors, segments, axis=0), 0.0)

    def found(self, batch: dict) -> Any:
        """Which tokens the other text of the row has, too, (B, T) bool."""
        ids, segments = batch[keys.TOKEN_IDS], batch[keys.SEGMENT_IDS]
        special = ops.convert_to_tensor(self.special_ids, dtype=ids.dtype)
        own = ops.logical_and(
            batch[keys.PADDING_MASK] > 0, ops.all(ids[..., None] != special, axis=-1)
        )
        same = ops.logical_and(
            ids[:, :, None] == ids[:, None, :], segments[:, :, None] != segments[:, None, :]
        )
        return ops.logical_and(own, ops.any(ops.logical_and(same, own[:, None, :]), axis=-1))
