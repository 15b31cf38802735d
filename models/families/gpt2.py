"""GPT-2: GPT with LayerNorm before each part of a block instead of after it, and one at the end.

    token_ids, padding_mask
      → token + position vectors → dropout                                    (B, T, D)
      → num_layers × [LayerNorm → causal attention → +, LayerNorm → feed-forward → +]
      → LayerNorm → sequence_output (B, T, D)

Parameters with the published vocabulary of 50,257: base 124,439,808, medium 354,823,168, large
774,030,080, xl 1,557,611,200.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.layers.causal import CausalTransformer
from models.layers.transformer import TransformerConfig
from models.protocols import Capability

PROVIDES = ("causal", "generation", "added_vectors")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "medium": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
    "large": {"num_layers": 36, "hidden_dim": 1280, "num_heads": 20, "intermediate_dim": 5120},
    "xl": {"num_layers": 48, "hidden_dim": 1600, "num_heads": 25, "intermediate_dim": 6400},
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """Every Transformer's arguments, with GPT-2's defaults."""

    max_sequence_length: int = 1024
    activation: str = "gelu_tanh"
    layer_norm_epsilon: float = 1e-5


class Gpt2(CausalTransformer):
    """The decoder of Radford et al. 2019.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", 2.3.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    norm_first = True
    pooler_activation = None  # heads read the vector of the last token as it is

    def residual_stddev(self, config: Any) -> float:
        """0.02 / √(2 · layers): the stream gets as many additions (2.3)."""
        return 0.02 / (2 * config.num_layers) ** 0.5
