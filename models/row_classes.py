"""Base class of objectives that classify rows and choose the segments themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from models.layers.pooled_classifier import PooledClassifier
from models.protocols import Batch, Context


class RowClasses:
    """The scoring half of an objective that classifies rows; labels come with the segments.

    Labels are ``<name>_labels`` (B,) int32 in a batch, predictions ``<name>_logits`` (B, classes).

    Attributes:
        name: Name of the objective and its file.
        classes: Meaning of each label, in order.

    Args:
        context: The stage's constants.
    """

    name: ClassVar[str]
    classes: tuple[Any, ...]
    chooses = 2

    def __init__(self, context: Context):
        self.context = context
        self.labels, self.logits = f"{self.name}_labels", f"{self.name}_logits"

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> PooledClassifier:
        """The head: one dense layer on the pooled vector."""
        return PooledClassifier(network, self.name, len(self.classes), self.labels, self.logits)

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[Any]:
        """The most likely class of each row, from `classes`."""
        return [self.classes[i] for i in np.asarray(outputs[self.logits]).argmax(axis=-1)]
