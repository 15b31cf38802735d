"""What decoders share: a Transformer in which each token sees itself and the tokens before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from models import features as keys
from models.layers.attention import causal_bias
from models.layers.embedding import positions_of_tokens
from models.layers.summary import LAST
from models.layers.transformer import TextTransformer

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class CausalTransformer(TextTransformer):
    """Embeddings without LayerNorm → causal blocks → (LayerNorm).

    A row is summarised by its last real token, the only one that has seen the whole row. Positions
    count real tokens, so rows may be padded on either side.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32};
        with read_positions (B, R), the summary's first: {sequence_output (B, R, D)}
    """

    embedding_norm = False
    row_summary = LAST

    def position_ids(self, features: Mapping[str, Any]) -> Any:
        """Number of real tokens before each one; 0 for padding."""
        return positions_of_tokens(features.get(keys.PADDING_MASK))

    def attention_bias(self, features: Mapping[str, Any]) -> Any:
        """Hides later tokens and padding, (B or 1, 1, T, T)."""
        causal = causal_bias(ops.shape(features[keys.TOKEN_IDS])[1])
        padding = super().attention_bias(features)
        return causal if padding is None else ops.minimum(causal, padding)
