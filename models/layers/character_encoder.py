"""Vectors of words from their characters: convolutions, highways, a projection.

    characters (…, C) → vectors of characters → for each width a convolution, its largest value
      over all places, ReLU → num_highways × [g · ReLU(W x + b) + (1 - g) · x] → projection

g = σ(W' x + b'), whose bias begins at -2, so that a highway begins near its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from models.keras_ops import ops
from models.layers.projection import Projection, kernel_initializer, projection
from models.layers.spelling import NUM_CHARACTERS


class CharacterEncoder(keras.layers.Layer):
    """ELMo's character encoder.

    Args:
        character_dim: Width of a character's vector.
        filters: (width, number) of each convolution.
        num_highways: Number of highway layers.
        output_dim: D.
        dtype: Policy of the products behind the convolutions, which are float32.

    Shape:
        (B, T, C) int32 → (B, T, D) float32.

    Reference:
        Peters et al. 2018, arXiv 1802.05365, 3.4; Kim et al. 2016, arXiv 1508.06615, 2.2 and 2.3;
        initial weights and the gate as in the authors' code, allenai/bilm-tf.
    """

    def __init__(
        self,
        *,
        character_dim: int,
        filters: Sequence[Sequence[int]],
        num_highways: int,
        output_dim: int,
        dtype: str,
        name: str = "embeddings",
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.character_dim = character_dim
        self.width = sum(number for _, number in filters)

        def uniform(limit: float) -> Any:
            return keras.initializers.RandomUniform(-limit, limit)

        nearly_shut: Any = keras.initializers.Constant(-2.0)
        self.characters = keras.layers.Embedding(
            NUM_CHARACTERS,
            character_dim,
            embeddings_initializer=uniform(1.0),
            name="characters",
            dtype="float32",
        )
        self.convolutions = [
            keras.layers.Conv1D(
                number,
                width,
                kernel_initializer=uniform(0.05),
                name=f"convolution_{width}",
                dtype="float32",
            )
            for width, number in filters
        ]
        self.highways = [
            (
                projection(self.width, name=f"transform_{i}", dtype=dtype, stddev=None),
                Projection(
                    self.width,
                    kernel_initializer=kernel_initializer(None),
                    bias_initializer=nearly_shut,
                    name=f"gate_{i}",
                    dtype=dtype,
                ),
            )
            for i in range(num_highways)
        ]
        self.output_layer = projection(output_dim, name="output", dtype=dtype, stddev=None)

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        self.characters.build((None, None))
        for convolution in self.convolutions:
            convolution.build((None, None, self.character_dim))
        for pair in self.highways:
            for layer in pair:
                layer.build((None, None, self.width))
        self.output_layer.build((None, None, self.width))
        self.built = True

    def call(self, characters: Any) -> Any:
        """Encode."""
        rows, tokens = ops.shape(characters)[:2]
        x = self.characters(ops.reshape(characters, (-1, characters.shape[-1])))
        found = [ops.max(convolution(x), axis=1) for convolution in self.convolutions]
        x = ops.relu(ops.concatenate(found, axis=-1))
        for transform, gate in self.highways:
            share = ops.sigmoid(ops.cast(gate(x), "float32"))
            x = share * ops.relu(ops.cast(transform(x), "float32")) + (1.0 - share) * x
        x = ops.cast(self.output_layer(x), "float32")
        return ops.reshape(x, (rows, tokens, self.output_layer.units))
