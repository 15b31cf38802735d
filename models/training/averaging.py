"""The average of a stage's weights over its updates, which is measured and kept in their place.

Training goes on with the weights themselves; the average only follows. It is less noisy than they
are, as if the learning rate were lower.

Reference:
    Polyak and Juditsky 1992, SIAM Journal on Control and Optimization 30(4); with exponential
    weights: Tarvainen and Valpola 2017, arXiv 1703.01780, which also begins with the plain mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras


class WeightAverage:
    """The exponential moving average of variables.

    The share of the newest weights is 1 - decay, but at least 1 / t at update t. So the first
    1 / (1 - decay) updates count alike, and the weights before the first update do not count.

    Args:
        weights: The trained variables.
        decay: Share of the average that an update keeps, (0, 1).
    """

    def __init__(self, weights: Sequence[Any], decay: float):
        self.weights = list(weights)
        self.decay = decay
        self.variables = [
            keras.Variable(keras.ops.zeros(w.shape, w.dtype), trainable=False) for w in weights
        ]

    def start(self) -> None:
        """Begin with the weights as they are, before the first update."""
        _copy(self.weights, self.variables)

    def add(self, update: int) -> None:
        """Count the weights after `update`, counted from 1."""
        share = max(1.0 - self.decay, 1.0 / update)
        for average, weight in zip(self.variables, self.weights, strict=True):
            average.assign(average + (weight - average) * share)

    def put(self) -> None:
        """Replace the weights by their average."""
        _copy(self.variables, self.weights)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it the weights are their average; after it they are what they were."""
        kept = [keras.ops.copy(weight) for weight in self.weights]
        self.put()
        try:
            yield
        finally:
            for weight, value in zip(self.weights, kept, strict=True):
                weight.assign(value)


def _copy(values: Sequence[Any], variables: Sequence[Any]) -> None:
    """Assign copies: on JAX a variable holds the very array, which a compiled step uses up."""
    for value, variable in zip(values, variables, strict=True):
        variable.assign(keras.ops.copy(value))
