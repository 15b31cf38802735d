"""Base class of scorers."""

from __future__ import annotations

import keras


class ScorerLayer(keras.layers.Layer):
    """A `models.protocols.Scorer` that does not change the batch."""

    def prepare(self, batch: dict, training: bool) -> dict:
        """Return the batch unchanged."""
        return batch
