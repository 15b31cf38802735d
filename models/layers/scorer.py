"""What every scorer is: a layer that may change the batch before the network sees it."""

from __future__ import annotations

import keras


class ScorerLayer(keras.layers.Layer):
    """A `models.protocols.Scorer` that leaves the batch as it is."""

    def prepare(self, batch: dict, training: bool) -> dict:
        """Nothing to change."""
        return batch
