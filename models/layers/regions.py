"""Regions of a picture as vectors: what is read of them, and what of their boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.norm import norm_layer
from models.layers.projection import projection

# Features (B, O, E), boxes (B, O, 4) or None where nothing reads them, mask (B, O) float32.
Regions = tuple[Any, Any, Any]


def regions_of(features: Mapping[str, Any], region_dim: int) -> Regions | None:
    """The regions of a batch; None for a batch without.

    Raises:
        RecipeError: They have another number of features than `region_dim`, or no four of a box.
    """
    given = features.get(keys.REGION_FEATURES)
    if given is None:
        return None
    boxes = features.get(keys.REGION_BOXES)
    for key, numbers, wanted in (
        (keys.REGION_FEATURES, given, region_dim),
        (keys.REGION_BOXES, boxes, 4),
    ):
        if numbers is not None and numbers.shape[-1] != wanted:
            raise RecipeError(
                f"{key}: {numbers.shape[-1]} numbers a region, but the network reads {wanted}; set"
                " size.region_dim to the width of the features, boxes have four numbers"
            )
    mask = features.get(keys.REGION_MASK)
    mask = ops.ones_like(given[:, :, 0]) if mask is None else ops.cast(mask, "float32")
    return given, boxes, mask


def with_whole(regions: Regions) -> Regions:
    """Regions with the whole picture before them: the mean of their features, and a box round all.

    It is masked where they all are.
    """
    features, boxes, mask = regions
    count = ops.maximum(ops.sum(mask, axis=1, keepdims=True), 1.0)  # (B, 1)
    mean = ops.sum(features * mask[:, :, None], axis=1) / count  # (B, E)
    whole = ops.zeros_like(mean[:, :4]) + ops.convert_to_tensor([0.0, 0.0, 1.0, 1.0])
    seen = ops.cast(ops.sum(mask, axis=1, keepdims=True) > 0, "float32")
    parts = ((mean[:, None], features), (whole[:, None], boxes), (seen, mask))
    first, second, third = (ops.concatenate(part, axis=1) for part in parts)
    return first, second, third


def box_numbers(boxes: Any, count: int) -> Any:
    """What a network reads of boxes (…, 4), left, top, right, bottom as shares of the picture.

    Args:
        boxes: (…, 4).
        count: 4 as they are, 5 with the area, 7 with width, height and area.

    Returns:
        (…, count).
    """
    width, height = boxes[..., 2:3] - boxes[..., 0:1], boxes[..., 3:4] - boxes[..., 1:2]
    more = {4: [], 5: [width * height], 7: [width, height, width * height]}[count]
    return ops.concatenate([boxes, *more], axis=-1)


class RegionEmbedding(keras.layers.Layer):
    """The features of a region and its box as one vector.

        one norm          LayerNorm(W f + W′ box)                           ViLBERT, Unicoder-VL
        apart             (LayerNorm(W f) + LayerNorm(W′ box)) / 2          LXMERT
        apart, one norm   LayerNorm(LayerNorm(W f) + LayerNorm(W′ box) + …) UNITER

    Args:
        region_dim: E, numbers of a region.
        box_dim: Numbers of a box, 4, 5 or 7 (`box_numbers`).
        hidden_dim: D.
        apart: Whether both have a norm of their own.
        one_norm: Whether their sum has one.
        dropout: Dropout rate of the vectors, 0-1.
        layer_norm_epsilon: Added to the variance.
        dtype: Dtype policy of the matrix products.

    Shape:
        features (B, O, E), boxes (B, O, 4), `more` broadcast to (B, O, D) → (B, O, D) float32.
    """

    def __init__(
        self,
        *,
        region_dim: int,
        box_dim: int,
        hidden_dim: int,
        apart: bool = False,
        one_norm: bool = True,
        dropout: float,
        layer_norm_epsilon: float,
        dtype: str,
        name: str = "region_embedding",
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.widths = {"feature": region_dim, "box": box_dim}
        self.hidden_dim = hidden_dim
        self.feature_embedding, self.box_embedding = (
            projection(hidden_dim, name=f"{name}_embedding", dtype=dtype) for name in self.widths
        )
        self.feature_norm = self.box_norm = self.norm = None
        if apart:
            self.feature_norm, self.box_norm = (
                norm_layer(f"{name}_embedding_norm", layer_norm_epsilon) for name in self.widths
            )
        if one_norm:
            self.norm = norm_layer("norm", layer_norm_epsilon)
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        self.feature_embedding.build((None, None, self.widths["feature"]))
        if self.feature_norm is not None:
            self.feature_norm.build((None, None, self.hidden_dim))
        self.box_embedding.build((None, None, self.widths["box"]))
        for norm in (self.box_norm, self.norm):
            if norm is not None:
                norm.build((None, None, self.hidden_dim))
        self.built = True

    def call(
        self, features: Any, boxes: Any, more: Any = None, training: bool | None = None
    ) -> Any:
        """Embed regions; `more` is added before the norm of the sum."""
        seen = ops.cast(self.feature_embedding(features), "float32")
        where = self.box_embedding(box_numbers(boxes, self.widths["box"]))
        where = ops.cast(where, "float32")
        if self.feature_norm is not None and self.box_norm is not None:
            seen, where = self.feature_norm(seen), self.box_norm(where)
        x = seen + where
        if more is not None:
            x = x + more
        x = x / 2.0 if self.norm is None else self.norm(x)
        return self.dropout(x, training=training)
