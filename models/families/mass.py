"""MASS: an encoder reads a text with a gap, a decoder writes what stood there, where it stood.

    token_ids, padding_mask                            target_ids, target_positions, target_mask
      → √D · token + position vectors → LayerNorm        → the same, with its own positions and norm
      → dropout → num_layers × [attention → +,           → num_decoder_layers × [causal attention
          LayerNorm → feed-forward → +, LayerNorm]           → +, LayerNorm → attention to the text
                                                             → +, LayerNorm → feed-forward → +,
                                                             LayerNorm] → sequence_output (B, S, D)

The network is the one that the authors published for summaries. Parameters with its vocabulary of
30,522: base 123,468,288, middle 208,664,576; the authors say 123 and 208 million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.layers.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "encoder_decoder", "generation", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "num_decoder_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
    },
    "base": {
        "num_layers": 6,
        "num_decoder_layers": 6,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
    },
    "middle": {
        "num_layers": 6,
        "num_decoder_layers": 6,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config(EncoderDecoderConfig):
    """Every encoder–decoder's arguments, with MASS's defaults."""

    layer_norm_epsilon: float = 1e-5


class Mass(EncoderDecoder):
    """The encoder–decoder of Song et al., as in their code for summaries.

    That for translation has vectors of languages and no factor √D. Weights begin as BERT's in both.

    Shape:
        {token_ids (B, T), padding_mask? (B, T), target_ids (B, S), target_mask? (B, S),
        target_positions? (B, S), attended_mask? (B, T)} →
        {sequence_output (B, S, D) float32}; without target_ids {sequence_output (B, T, D) float32}

    Reference:
        Song et al. 2019, arXiv 1905.02450, 3; ``s2s_model.py`` of microsoft/MASS.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooler_activation = None  # the paper classifies nothing: heads have no dense layer of their own

    def make_embeddings(self, config: Any, width: int, **more: Any) -> Any:
        """√D · token + position vectors, with a LayerNorm."""
        return super().make_embeddings(config, width, scale=width**0.5, **more)
