"""T5: an encoder–decoder that reads and writes text, with relative positions and without biases.

    token_ids, padding_mask                            target_ids, target_mask
      → token vectors → dropout                          → the same token vectors → dropout
      → num_layers × [norm → attention → +               → num_decoder_layers × [norm → causal
          → norm → feed-forward → +]                         attention → + → norm → attention to the
      → norm → dropout                                       text → + → norm → feed-forward → +]
                                                         → norm → dropout → sequence_output

Norms divide by the root mean square. Each head adds a learned number to the score of a distance,
the same in all layers, and no attention score is divided by √K. The token table, times 1/√D, also
predicts; version 1.1 has a matrix of its own for it, and a gated feed-forward network.

Parameters with the published vocabulary of 32,128: small 60,506,624, base 222,903,552, large
737,668,096; v1.1-small 76,961,152, v1.1-base 247,577,856, v1.1-large 783,150,080.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from models.layers.relative_bias import RelativeBias
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
    "small": {
        "num_layers": 6,
        "num_decoder_layers": 6,
        "hidden_dim": 512,
        "num_heads": 8,
        "intermediate_dim": 2048,
    },
    "base": {
        "num_layers": 12,
        "num_decoder_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
    },
    "large": {
        "num_layers": 24,
        "num_decoder_layers": 24,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
    },
    "v1.1-small": {
        "num_layers": 8,
        "num_decoder_layers": 8,
        "hidden_dim": 512,
        "num_heads": 6,
        "intermediate_dim": 1024,
        "activation": "gelu_tanh",
        "gated": True,
        "tied_output": False,
    },
    "v1.1-base": {
        "num_layers": 12,
        "num_decoder_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 2048,
        "activation": "gelu_tanh",
        "gated": True,
        "tied_output": False,
    },
    "v1.1-large": {
        "num_layers": 24,
        "num_decoder_layers": 24,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 2816,
        "activation": "gelu_tanh",
        "gated": True,
        "tied_output": False,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config(EncoderDecoderConfig):
    """Every encoder–decoder's arguments, with T5's defaults, and its own.

    Attributes:
        head_dim: Width per attention head.
        num_buckets: Distances that the relative positions tell apart, even.
        max_distance: Distance in tokens from which on all are alike.
        gated: Whether the feed-forward network is gated (v1.1).
        tied_output: Whether the token table also predicts; else a matrix of its own (v1.1).
    """

    activation: str = "relu"
    layer_norm_epsilon: float = 1e-6
    head_dim: int = 64
    num_buckets: int = 32
    max_distance: int = 128
    gated: bool = False
    tied_output: bool = True


class T5(EncoderDecoder):
    """The encoder–decoder of Raffel et al.

    There is no table of positions: `max_sequence_length` is what it may be asked to read or write.

    Shape:
        {token_ids (B, T), padding_mask? (B, T), target_ids (B, S), target_mask? (B, S)} →
        {sequence_output (B, S, D) float32}; without target_ids {sequence_output (B, T, D) float32}

    Differs from the paper:
        The token table starts half as large as the paper's N(0, 1), with which the first
        predictions repeat the token that was read.

    Reference:
        Raffel et al. 2020, arXiv 1910.10683, 2.1; version 1.1: Shazeer 2020, arXiv 2002.05202, and
        ``released_checkpoints.md`` of google-research/text-to-text-transfer-transformer.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    embedding_norm = False
    norm_first = True
    rms_norm = True
    has_positions = False
    table_stddev = 0.5
    target_begin = ("pad",)
    pooler_activation = None  # heads read the vector of the last token as it is

    def block_arguments(self, config: Any) -> dict[str, Any]:
        """No biases, no scaling of scores, kernels that start as large as their inputs allow."""
        return super().block_arguments(config) | {
            "head_dim": config.head_dim,
            "scaled": False,
            "use_bias": False,
            "stddev": None,
            "gated": config.gated,
            "inner_dropout": True,
        }

    def residual_stddev(self, config: Any) -> None:
        """By the number of inputs, as for the other kernels."""

    def make_more(self, config: Any) -> None:
        """The decoder, the relative positions of both sides, and perhaps an output matrix."""
        super().make_more(config)

        def relative(name: str, both_directions: bool) -> RelativeBias:
            return RelativeBias(
                num_heads=config.num_heads,
                num_buckets=config.num_buckets,
                max_distance=config.max_distance,
                both_directions=both_directions,
                stddev=config.hidden_dim**-0.5,
                name=name,
            )

        self.relative_bias = relative("relative_bias", both_directions=True)
        self.decoder_relative_bias = relative("decoder_relative_bias", both_directions=False)
        self.output_table = None

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.relative_bias.build()
        self.decoder_relative_bias.build()
        if not self.tied_output:
            width = self.hidden_dim
            initializer: Any = keras.initializers.TruncatedNormal(stddev=width**-0.5)
            self.output_table = self.add_weight(
                shape=(self.vocabulary_size, width),
                initializer=initializer,
                name="output_table",
                autocast=False,
            )

    @property
    def key_dim(self) -> int:
        """K, width per head."""
        return self.head_dim

    @property
    def output_scale(self) -> float:
        """1/√D: rows of the token table have norms near √D, too large for what predicts."""
        return self.hidden_dim**-0.5

    def attention_bias(self, features: Mapping[str, Any]) -> Any:
        """Relative positions, without what is padding, (B or 1, H, T, T)."""
        relative = self.relative_bias(length=ops.shape(features[keys.TOKEN_IDS])[1])
        padding = super().attention_bias(features)
        return relative if padding is None else relative + padding

    def target_bias(self, length: Any, positions: Any = None) -> Any:
        """Relative positions, without what comes later, (B or 1, H, N, S + N)."""
        relative = self.decoder_relative_bias(length=length, positions=positions)
        return relative + super().target_bias(length, positions)

    def encode(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What the decoder attends to, (B, T, D) float32."""
        return self.embeddings.dropout(super().encode(features, training), training=training)

    def decoder_states(
        self, features: Mapping[str, Any], memory: Any, training: bool | None = None
    ) -> list[Any]:
        """What enters the decoder's first block, and what each of them gives: (B, S, D) each."""
        states = super().decoder_states(features, memory, training)
        states[-1] = self.decoder_embeddings.dropout(states[-1], training=training)
        return states
