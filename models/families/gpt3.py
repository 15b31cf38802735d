"""GPT-3: GPT-2 whose layers see, in turn, everything before a token and a band just before it.

    token_ids, padding_mask
      → token + position vectors → dropout                                    (B, T, D)
      → num_layers × [LayerNorm → causal attention → +, LayerNorm → feed-forward → +]
      → LayerNorm → sequence_output (B, T, D)

    of 6 tokens and a band of 3     layers 0, 2, 4…     layers 1, 3, 5…
                                    1 . . . . .         1 . . . . .
                                    1 1 . . . .         1 1 . . . .
                                    1 1 1 . . .         1 1 1 . . .
                                    1 1 1 1 . .         . 1 1 1 . .
                                    1 1 1 1 1 .         . . 1 1 1 .
                                    1 1 1 1 1 1         . . . 1 1 1

Parameters with the vocabulary of 50,257: small 125,226,240, medium 355,871,744, large
760,300,032.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.attention import banded_bias
from models.layers.causal import CausalTransformer
from models.layers.embedding import positions_of_tokens
from models.layers.transformer import TransformerConfig
from models.protocols import Capability

PROVIDES = ("causal", "generation", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "band": 8,
    },
    "small": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "medium": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
    "large": {"num_layers": 24, "hidden_dim": 1536, "num_heads": 16, "intermediate_dim": 6144},
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """Every Transformer's arguments, with GPT-3's defaults.

    Attributes:
        band: Tokens that one sees in every second layer, itself included; 0 for no band, so that
            all layers are dense. The paper gives no width; this is GPT-Neo's.
    """

    max_sequence_length: int = 2048
    activation: str = "gelu_tanh"
    layer_norm_epsilon: float = 1e-5
    band: int = 256


class Gpt3(CausalTransformer):
    """The decoder of Brown et al. 2020.

    The band is a mask: it hides what a sparse kernel would leave out, and saves no time.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Brown et al. 2020, "Language Models are Few-Shot Learners", arXiv 2005.14165, 2.1 and
        table 2.1; the band: Child et al. 2019, arXiv 1904.10509.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    norm_first = True
    pooler_activation = None  # heads read the vector of the last token as it is

    def residual_stddev(self, config: Any) -> float:
        """0.02 / √(2 · layers), as in GPT-2."""
        return 0.02 / (2 * config.num_layers) ** 0.5

    def attention_biases(self, features: Mapping[str, Any]) -> list[Any]:
        """Dense in layers 0, 2, 4 and so on, banded in the others."""
        dense = self.attention_bias(features)
        width = self._arguments["band"]
        if width == 0:
            return [dense] * len(self.order)
        new = ops.shape(features[keys.TOKEN_IDS])[1]
        mask = features.get(keys.PADDING_MASK)
        # Positions count real tokens, so that padding between them does not narrow the band.
        seen = ops.arange(new)[None] if mask is None else positions_of_tokens(mask)  # (B, S + N)
        asking = seen[:, ops.shape(seen)[1] - new :]
        local = ops.minimum(dense, banded_bias(asking, seen, width))
        return [local if number % 2 else dense for number in range(len(self.order))]
