"""Base class of heads that score a row by its summary vector.

Families with a pre-trained pooler (BERT, ALBERT, ERNIE) provide the pooled vector. For the others
the head follows the authors' code: RoBERTa has dropout and a dense layer with tanh, DistilBERT a
dense layer with ReLU, ELECTRA nothing (Hugging Face's ELECTRA has a dense layer). On request they
read the mean or the maximum of all tokens instead, without a pooler.

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 4.1; without a pooler: Liu et al. 2019, arXiv 1907.11692,
    Clark et al. 2020, arXiv 2003.10555, Sanh et al. 2019, arXiv 1910.01108, by their code. Mean and
    maximum: Reimers and Gurevych 2019, arXiv 1908.10084, 3.
"""

from __future__ import annotations

from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.projection import ActivatedProjection, projection
from models.layers.scorer import ScorerLayer
from models.layers.shared_tokens import SharedTokens
from models.layers.summary import BOTH, row_vectors
from models.layers.wide import WidePart
from models.protocols import Capability

NETWORK = "network"  # as its family's paper does
SUMMARIES = ("network", "mean", "max", "both")  # `NETWORK`, and those of all tokens


class RowScorer(ScorerLayer):
    """A pooler if the network has none, dropout and one dense layer.

    A subclass calls `build` at the end of its constructor.

    Args:
        network: The network whose rows are scored.
        name: Name of the head.
        units: Number of scores per row.
        dropout: Dropout rate of the pooled vector, 0-1.
        summary: One of `SUMMARIES`.
        wide: The wide part, if answers are by the network's scores and those of counted n-grams
            (`models.layers.wide`). In training the scores are the network's own; of a family that
            only counts they are the sum of both, always.
        shared: What tells the network which tokens both texts of a row have, if anything
            (`models.layers.shared_tokens`).
    """

    def __init__(
        self,
        network: Any,
        name: str,
        units: int,
        dropout: float,
        *,
        summary: str = NETWORK,
        wide: WidePart | None = None,
        shared: SharedTokens | None = None,
    ):
        dtype = network.dtype_policy.name
        super().__init__(name=name, dtype=dtype, autocast=False)
        own = summary == NETWORK
        self.summary = network.row_summary if own else summary
        self.reads = () if own else None  # nothing but the summary's position, or all
        self.hidden_dim = network.hidden_dim
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")
        self.output_projection = projection(units, name="output", dtype=dtype)
        self.wide = wide
        self.shared_tokens = shared
        self.blends = wide is not None and not getattr(network, "counts_only", False)
        self.pooler: Any = None
        self.is_pooled = own and Capability.POOLED_OUTPUT in network.provides
        self.input_dim = self.hidden_dim
        if summary == BOTH:
            self.input_dim = 2 * self.hidden_dim
        if self.is_pooled:
            self.input_dim = getattr(network, "pooled_dim", self.hidden_dim)
        if own and not self.is_pooled and network.pooler_activation:
            self.drops_before = network.pooler_dropout
            self.pooler = ActivatedProjection(
                self.hidden_dim, activation=network.pooler_activation, name="pooler", dtype=dtype
            )

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        for part in (self.shared_tokens, self.wide):
            if part is not None:
                part.build()
        if self.pooler is not None:
            self.pooler.build((None, self.hidden_dim))
        self.output_projection.build((None, self.input_dim))
        self.built = True

    def row_scores(self, batch: dict, outputs: dict, training: bool | None) -> Any:
        """The scores of each row, (B, units) float32."""
        scores = self.own_scores(batch, outputs, training)
        if self.wide is None or (self.blends and training):
            return scores
        return self.wide.beside(scores, self.counted(batch))

    def own_scores(self, batch: dict, outputs: dict, training: bool | None) -> Any:
        """The network's scores of each row, (B, units) float32."""
        pooled = self.dropout(self._pooled(batch, outputs, training), training=training)
        return ops.cast(self.output_projection(pooled), "float32")

    def counted(self, batch: dict) -> Any:
        """The wide part's scores of each row, (B, units) float32."""
        assert self.wide is not None, "asked for where there is one"
        return self.wide(batch)

    def _pooled(self, batch: dict, outputs: dict, training: bool | None) -> Any:
        """The pooled vector, (B, `input_dim`) float32."""
        if self.is_pooled:
            return outputs[keys.POOLED_OUTPUT]
        row = row_vectors(self.summary, batch, outputs)
        if self.pooler is not None:
            if self.drops_before:
                row = self.dropout(row, training=training)
            row = self.pooler(row, training=training)
        return ops.cast(row, "float32")
