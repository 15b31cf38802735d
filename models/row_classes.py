"""What the objectives share that ask one question of a row, with a few answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from models.layers.pooled_classifier import PooledClassifier
from models.protocols import Batch, Capability, Context


class RowClasses:
    """The scoring half of such an objective; the labels come with the segments, which it chooses.

    A batch has ``<name>_labels`` (B,) int32, predictions are ``<name>_logits`` (B, classes).

    Attributes:
        name: Of the objective, which is that of its file.
        classes: What each label says of a row.

    Args:
        context: What is fixed for the stage.
    """

    name: ClassVar[str]
    classes: tuple[Any, ...]
    needs: frozenset[Capability] = frozenset((Capability.POOLED_OUTPUT, Capability.SEGMENTS))
    provides: frozenset[Capability] = frozenset()
    chooses = 2
    prepares = False

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
        """One of `classes`, a row."""
        return [self.classes[i] for i in np.asarray(outputs[self.logits]).argmax(axis=-1)]
