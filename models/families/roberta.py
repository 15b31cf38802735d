"""RoBERTa: BERT's encoder with one segment type and no pooler; positions count real tokens.

    token_ids, padding_mask
      → token + position + the one segment vector → LayerNorm → dropout    (B, T, D)
      → num_layers × [attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)

Parameters with the published vocabulary of 50,265: base 124,053,504, large 354,308,096. The
published tables of positions have two rows more, for the padding id and the one below it, which no
text reads; they are left out when a checkpoint is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models import features as keys
from models.layers.embedding import positions_of_tokens
from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "added_vectors")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        head_activation: Of the masked-token head where it is another one; Hugging Face computes
            it with ``gelu`` whatever the blocks have.
    """

    head_activation: str | None = None
    layer_norm_epsilon: float = 1e-5


class Roberta(TextTransformer):
    """The encoder of Liu et al.; what was changed against BERT is how it is trained.

    A token's position is the number of real tokens before it, so that padding on the left changes
    nothing.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Liu et al. 2019, arXiv 1907.11692, section 3 and table 9.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    num_segments = 1
    pooler_activation = "tanh"  # of the dense layer that a classification head makes for itself
    pooler_dropout = True  # before that layer

    def position_ids(self, features: Mapping[str, Any]) -> Any:
        """Number of real tokens before each one; 0 for padding."""
        return positions_of_tokens(features.get(keys.PADDING_MASK))

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What enters the first block; segment ids are not read."""
        one_segment = {key: value for key, value in features.items() if key != keys.SEGMENT_IDS}
        return super().embed(one_segment, training=training)
