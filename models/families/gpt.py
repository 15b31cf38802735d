"""GPT: a Transformer decoder; each token sees itself and the tokens before it.

    token_ids, padding_mask
      → token + position vectors → dropout                                    (B, T, D)
      → num_layers × [causal attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)

Parameters with the published vocabulary of 40,478: base 116,534,784.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.layers.causal import CausalTransformer
from models.layers.transformer import TransformerConfig
from models.protocols import Capability

PROVIDES = ("causal", "generation", "added_vectors")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """Every Transformer's arguments, with GPT's defaults."""

    activation: str = "gelu_tanh"
    layer_norm_epsilon: float = 1e-5


class Gpt(CausalTransformer):
    """The decoder of Radford et al. 2018.

    Unlike theirs, positions have a table of their own; theirs are further rows of the token table.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", 4.1.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooler_activation = None  # heads read the vector of the last token as it is
