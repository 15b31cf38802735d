"""The vectors with which words are predicted, kept beside the network for the next stage."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.layers.scorer import ScorerLayer
from models.weights import array_of


class ContextVectors(ScorerLayer):
    """What an objective of word vectors has beside the network; it scores nothing by itself.

    Args:
        network: The network of word vectors.
        name: Name of the objective.

    Attributes:
        context: (V, D) vectors of predicted words, or of the nodes of their tree; zeros at first.
        tree: (V,) share of each word in the text of the first stage with hierarchical softmax. The
            tree is made from it, so that a node means the same in each stage. Zeros for none.
    """

    def __init__(self, network: Any, name: str):
        super().__init__(name=name, dtype="float32", autocast=False)
        self.shape = tuple(network.token_embedding.embeddings.shape)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.context: Any = self.add_weight(shape=self.shape, initializer="zeros", name="context")
        self.tree: Any = self.add_weight(
            shape=self.shape[:1], initializer="zeros", name="tree", trainable=False
        )
        self.built = True

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Context vectors and the shares of the tree."""
        return array_of(self.context), array_of(self.tree)
