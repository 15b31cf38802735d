"""The Transformer: an encoder reads a text, a decoder writes the target, by attention alone.

    token_ids, padding_mask                            target_ids, target_mask
      → √D · token vectors + sinusoids → dropout         → the same, with the same table
      → num_layers × [attention → +, LayerNorm           → num_decoder_layers × [causal attention
          → ReLU network → +, LayerNorm]                     → +, LayerNorm → attention to the text
                                                             → +, LayerNorm → ReLU network → +,
                                                             LayerNorm] → sequence_output (B, S, D)

One matrix is the table of the text, that of the target and the output (3.4). Parameters with the
paper's 37,000 tokens: base 63,082,496, big 214,245,376; its table 3 says 65 and 213 million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from fourstage.errors import UnknownNameError
from models.layers.block import ResidualBlock
from models.layers.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from models.layers.projection import Projection
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
        "hidden_dim": 512,
        "num_heads": 8,
        "intermediate_dim": 2048,
    },
    "big": {
        "num_layers": 6,
        "num_decoder_layers": 6,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
        "dropout": 0.3,
    },
}

BEGINNINGS = ("sep", "pad")


@dataclass(frozen=True, kw_only=True)
class _Config(EncoderDecoderConfig):
    """Every encoder–decoder's arguments, with the Transformer's defaults, and its own.

    Attributes:
        biased_output: Whether a bias is added to the logits of what is written (Marian).
        begins_with: The special token with which a target begins: ``sep``, or ``pad`` (Marian).
    """

    biased_output: bool = False
    begins_with: str = "sep"
    activation: str = "relu"
    layer_norm_epsilon: float = 1e-6  # the paper gives none; this is the authors' code's


class Transformer(EncoderDecoder):
    """The encoder–decoder of Vaswani et al.

    The paper does not say how weights begin. As in the authors' code, the table is drawn from
    N(0, 1/D), so that √D times a token's vector is about as large as a position's, and kernels are
    Xavier's, uniform (Glorot and Bengio 2010, equation 16).

    Shape:
        {token_ids (B, T), padding_mask? (B, T), target_ids (B, S), target_mask? (B, S)} →
        {sequence_output (B, S, D) float32}; without target_ids {sequence_output (B, T, D) float32}

    Reference:
        Vaswani et al. 2017, arXiv 1706.03762, 3 and table 3.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    embedding_norm = False
    pooler_activation = None  # the paper classifies nothing: heads have no dense layer of their own

    def make_more(self, config: Any) -> None:
        """The decoder, and how a target begins."""
        if config.begins_with not in BEGINNINGS:
            raise UnknownNameError("size: begins_with", config.begins_with, "a token", BEGINNINGS)
        super().make_more(config)
        self.target_begin = (config.begins_with,)
        self.output_bias: Any = None

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        if self.biased_output:
            self.output_bias = self.add_weight(
                shape=(self.vocabulary_size,),
                initializer="zeros",
                name="output_bias",
                autocast=False,
            )

    def make_embeddings(self, config: Any, width: int, **more: Any) -> Any:
        """√D · token vectors + sinusoids."""
        own = {"stddev": width**-0.5, "scale": width**0.5, "sinusoidal": True}
        return super().make_embeddings(config, width, **own, **more)

    def make_block(self, kind: type[ResidualBlock], config: Any, number: int) -> Any:
        """Block `number`, of a kind, whose kernels begin as Xavier's."""
        block = super().make_block(kind, config, number)
        for layer in block._flatten_layers():
            if isinstance(layer, Projection):  # one initializer each: it always draws the same
                layer.kernel_initializer = keras.initializers.GlorotUniform()
        return block
