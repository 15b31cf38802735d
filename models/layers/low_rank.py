"""LoRA: a low-rank update of a projection, trained in place of its kernel and merged at the end.

    y = x W + b + (α / r) · dropout(x) A B

A is random and B zero, so that training starts from the projection as it is.

Reference:
    Hu et al. 2021, arXiv 2106.09685, 4.1; the initial A is that of the authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import keras

from fourstage.errors import RecipeError
from models.keras_ops import ops
from models.layers.projection import Projection


class LowRankUpdate(keras.layers.Layer):
    """The update of one projection, which adds it to its product until it is merged.

    Its variables' paths begin with the projection's, so that they belong to the same layer of the
    network.

    Args:
        dense: A built projection.
        rank: r, less than the projection's smaller width.
        alpha: α; the update is scaled by α / r.
        dropout: Dropout rate of the update's input, 0-1.

    Shape:
        (…, D) → (…, units) in the compute dtype.
    """

    def __init__(self, dense: Any, *, rank: int, alpha: float, dropout: float):
        super().__init__(name="low_rank", dtype=dense.dtype_policy.name, autocast=False)
        # Wrapped in a function, so that Keras does not track the projection here.
        self._dense = lambda: dense
        self.scale = alpha / rank
        width, units = dense.kernel.shape
        initial: Any = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
        with ExitStack() as scopes:
            for part in dense.path.split("/"):
                scopes.enter_context(keras.name_scope(part))
            self.a = self.add_weight(shape=(width, rank), initializer=initial, name="a")
            self.b = self.add_weight(shape=(rank, units), initializer="zeros", name="b")
            self.dropout = keras.layers.Dropout(
                dropout, name="dropout", dtype=dense.dtype_policy.name
            )
        self.built = True
        dense.beside = lambda inputs, training: self(inputs, training=training)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """The update for these inputs."""
        a, b = (ops.cast(matrix, self.compute_dtype) for matrix in (self.a, self.b))
        x = self.dropout(ops.cast(inputs, self.compute_dtype), training=training)
        return ops.matmul(ops.matmul(x, a), b) * self.scale

    def merge(self) -> None:
        """Add the update to the projection's kernel; the projection is then a plain one again."""
        dense = self._dense()
        dense.kernel.assign(dense.kernel + self.scale * ops.matmul(self.a, self.b))
        dense.beside = None


def add_low_rank(
    kind: str, network: Any, *, rank: int, alpha: float, targets: Sequence[str], dropout: float
) -> list[LowRankUpdate]:
    """Freeze a network and give the projections of these names a low-rank update each.

    Args:
        kind: The stage's kind, for messages.
        network: A built network.
        rank: r.
        alpha: α.
        targets: Names of projections, such as ``query`` and ``value``.
        dropout: Dropout rate of the updates' input, 0-1.

    Raises:
        RecipeError: There is no projection of a name, the rank is not low, or the backend is not
            TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise RecipeError(f"{kind}: lora: needs the TensorFlow backend")
    found: dict[str, list[Any]] = {}
    for layer in network._flatten_layers(include_self=False):
        if isinstance(layer, Projection):
            found.setdefault(layer.name, []).append(layer)
    for name in targets:
        if name not in found:
            there = ", ".join(sorted(found)) or "none"
            raise RecipeError(f"{kind}: lora.targets: no projection {name!r}; there are {there}")
        narrowest = min(min(dense.kernel.shape) for dense in found[name])
        if rank >= narrowest:
            raise RecipeError(
                f"{kind}: lora.rank: expected less than the width of {name}, {narrowest}, got"
                f" {rank}"
            )
    for variable in network.trainable_variables:
        variable.trainable = False
    return [
        LowRankUpdate(dense, rank=rank, alpha=alpha, dropout=dropout)
        for name in dict.fromkeys(targets)
        for dense in found[name]
    ]
