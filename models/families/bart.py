"""BART: an encoder reads a damaged text, a decoder writes the whole one.

    token_ids, padding_mask                            target_ids, target_mask
      → token + position vectors → LayerNorm → dropout   → the same, with its own positions and norm
      → num_layers × [attention → +, LayerNorm           → num_decoder_layers × [causal attention
          → feed-forward → +, LayerNorm]                     → +, LayerNorm → attention to the text
                                                             → +, LayerNorm → feed-forward → +,
                                                             LayerNorm] → sequence_output (B, S, D)

Parameters with the published vocabulary of 50,265: base 139,417,344, large 406,287,360. The
published tables of positions have two rows more each, which no text reads; they are left out when a
checkpoint is read.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    "large": {
        "num_layers": 12,
        "num_decoder_layers": 12,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config(EncoderDecoderConfig):
    """Every encoder–decoder's arguments, with BART's defaults."""

    max_sequence_length: int = 1024
    layer_norm_epsilon: float = 1e-5


class Bart(EncoderDecoder):
    """The encoder–decoder of Lewis et al.

    Heads read the decoder, which reads the text again (`models.layers.encoder_decoder`). A row is
    summarised at its last token.

    Shape:
        {token_ids (B, T), padding_mask? (B, T), target_ids (B, S), target_mask? (B, S)} →
        {sequence_output (B, S, D) float32}; without target_ids {sequence_output (B, T, D) float32}

    Reference:
        Lewis et al. 2020, arXiv 1910.13461, 2.1 and 3.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    target_begin = ("sep", "cls")
    pooler_activation = "tanh"  # of the dense layer that a classification head makes for itself
    pooler_dropout = True  # before that layer
