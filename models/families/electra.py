"""ELECTRA: BERT's encoder without a pooler, its tables as wide as the tokens' vectors or narrower.

    token_ids, segment_ids, padding_mask
      → token + position + segment vectors → LayerNorm → dropout           (B, T, E)
      → projection where E is not D                                        (B, T, D)
      → num_layers × [attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)

A discriminator and its generator are this class at two sizes with tables of one width. Parameters
with the published vocabulary of 30,522: small 13,483,008, base 108,891,648, large 334,092,288.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "embedding_dim": 64,
    },
    "tiny_generator": {
        "num_layers": 2,
        "hidden_dim": 64,
        "num_heads": 1,
        "intermediate_dim": 256,
        "embedding_dim": 64,
    },
    "small": {
        "num_layers": 12,
        "hidden_dim": 256,
        "num_heads": 4,
        "intermediate_dim": 1024,
        "embedding_dim": 128,
    },
    "small_generator": {
        "num_layers": 12,
        "hidden_dim": 64,
        "num_heads": 1,
        "intermediate_dim": 256,
        "embedding_dim": 128,
    },
    "base": {
        "num_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "embedding_dim": 768,
    },
    "base_generator": {
        "num_layers": 12,
        "hidden_dim": 256,
        "num_heads": 4,
        "intermediate_dim": 1024,
        "embedding_dim": 768,
    },
    "large": {
        "num_layers": 24,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
        "embedding_dim": 1024,
    },
    "large_generator": {
        "num_layers": 24,
        "hidden_dim": 256,
        "num_heads": 4,
        "intermediate_dim": 1024,
        "embedding_dim": 1024,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        embedding_dim: Width of the embedding tables.
        num_segments: Number of segment ids.
        head_activation: Of the masked-token head where it is another one; Hugging Face computes
            it with ``gelu`` whatever the blocks have.
    """

    embedding_dim: int
    num_segments: int = 2
    activation: str = "gelu_tanh"
    head_activation: str | None = None


class Electra(TextTransformer):
    """The encoder of Clark et al., of the discriminator and of the generator.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32}

    Reference:
        Clark et al. 2020, arXiv 2003.10555, section 3 and table 6.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooler_activation = None  # Google's code classifies by the first position as it is
