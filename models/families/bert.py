"""BERT: a Transformer encoder in which every token sees every other.

    token_ids, segment_ids, padding_mask
      → token + position + segment vectors → LayerNorm → dropout         (B, T, D)
      → num_layers × [attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)
      → first position → dense → tanh → pooled_output (B, D)

Parameters with the published vocabulary of 30,522 and the pooler: tiny 4,385,920, mini 11,170,560,
small 28,763,648, medium 41,373,184, base 109,482,240, large 335,141,888.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from models import features as keys
from models.layers.attention import bias_from_padding
from models.layers.block import TransformerBlock
from models.layers.embedding import TextEmbedding
from models.layers.projection import projection
from models.protocols import Capability

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

PROVIDES = ("bidirectional", "segments", "pooled_output")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "mini": {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024},
    "small": {"num_layers": 4, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "medium": {"num_layers": 8, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


class Bert(keras.Model):
    """The encoder of Devlin et al. with its pooler; heads bring their own variables.

    Variables are made in the constructor, so that their paths below the network are the same
    whatever wraps it later and on every backend.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Transformer blocks.
        hidden_dim: Width of a token's vector.
        num_heads: Attention heads; divides `hidden_dim`.
        intermediate_dim: Width inside the feed-forward network.
        max_sequence_length: Longest text in tokens.
        num_segments: Number of segment ids.
        dropout: Share dropped of embeddings, attention weights and residual branches, 0-1.
        activation: ``gelu_tanh`` (Google's code) or ``gelu`` (Hugging Face's ``gelu``).
        layer_norm_epsilon: Added to the variance in LayerNorms.
        dtype: Policy name of the matrix products, ``float32`` or ``mixed_bfloat16``. Variables,
            LayerNorms, softmax and the residual stream are float32 in both.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Reference:
        Devlin et al. 2019, arXiv 1810.04805; sizes below base: Turc et al. 2019, arXiv 1908.08962.
    """

    provides = frozenset(Capability(name) for name in PROVIDES)

    def __init__(
        self,
        *,
        vocabulary_size: int,
        num_layers: int,
        hidden_dim: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        activation: str = "gelu_tanh",
        layer_norm_epsilon: float = 1e-12,
        dtype: str = "float32",
        name: str = "bert",
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.activation = activation
        self.layer_norm_epsilon = layer_norm_epsilon

        self.embeddings = TextEmbedding(
            vocabulary_size=vocabulary_size,
            hidden_dim=hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
        )
        self.blocks = [
            TransformerBlock(
                hidden_dim=hidden_dim,
                num_heads=num_heads,
                intermediate_dim=intermediate_dim,
                dropout=dropout,
                activation=activation,
                layer_norm_epsilon=layer_norm_epsilon,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        self.pooler = projection(hidden_dim, name="pooler", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        self.embeddings.build((None, None))
        for block in self.blocks:
            block.build((None, None, self.hidden_dim))
        self.pooler.build((None, self.hidden_dim))
        self.built = True

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        """The token table; heads that tie weights use its very variable."""
        return self.embeddings.token

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        x = self.embeddings(
            features[keys.TOKEN_IDS], features.get(keys.SEGMENT_IDS), training=training
        )
        mask = features.get(keys.PADDING_MASK)
        bias = None if mask is None else bias_from_padding(mask)  # (B, 1, 1, T)
        for block in self.blocks:
            x = block(x, bias=bias, training=training)
        pooled = ops.tanh(ops.cast(self.pooler(x[:, 0]), "float32"))  # (B, D)
        return {keys.SEQUENCE_OUTPUT: x, keys.POOLED_OUTPUT: pooled}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "hidden_dim": self.hidden_dim,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "dtype": self.dtype_policy.name,
            "name": self.name,
        }
