"""Bidirectional language modelling: predict each token from those before it, and from those after.

    token_ids   [CLS]   in    the   beginning   [SEP]
    forward      in    the  beginning
    backward                  in       the    beginning

The loss is the mean of both directions' cross-entropy over the same tokens: all of a row but its
first and its last. One softmax, with weights of its own, predicts for both.

Reference:
    Peters et al. 2018, arXiv 1802.05365, 3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models import features as keys
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.projection import kernel_initializer
from models.layers.scorer import Scored, ScorerLayer
from models.layers.slices import part
from models.layers.token_scores import tied_logits, token_scores
from models.protocols import Batch, Context

NEEDS = ("two_directions",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
MEASURED = {}
PREDICTS_ENDS = "between"
KEEPS_INPUT = True


class BidirectionalLM(Windows):
    """Both halves of bidirectional language modelling.

    If no other objective chooses the segments, rows are full windows over the corpus between [CLS]
    and [SEP], with [SEP] between documents. So every token of the text is predicted once a pass in
    each direction; the last window may repeat some, to be full. Beside a head, the row's own tokens
    are predicted.

    Differs from the paper: the softmax is over all tokens in training, too, where the paper draws
    8,192.

    Args:
        context: The stage's constants.
        across_documents: Whether a row continues with the next document where one ends.
    """

    chooses = CHOOSES

    def __init__(self, context: Context, *, across_documents: bool = True):
        self.context = context
        self.across_documents = across_documents

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add the tokens between two others and their loss weights, (B, T - 2)."""
        real = batch[keys.PADDING_MASK]
        between = real[..., :-2] * real[..., 1:-1] * real[..., 2:]
        return batch | {
            keys.INNER_LABELS: batch[keys.TOKEN_IDS][..., 1:-1],
            keys.INNER_WEIGHTS: between.astype(np.float32),
        }

    def attach(self, network: Any) -> _BidirectionalLMScorer:
        """Make the softmax."""
        return _BidirectionalLMScorer(network, self.context.tokenizer.vocabulary_size)


class _BidirectionalLMScorer(ScorerLayer):
    """One softmax over the tokens, for both directions."""

    def __init__(self, network: Any, vocabulary_size: int):
        super().__init__(name="bidirectional_lm", dtype=network.dtype_policy.name, autocast=False)
        self.output_table = self.add_weight(
            shape=(vocabulary_size, network.hidden_dim // 2),
            initializer=_normal(network.hidden_dim // 2),
            name="output_table",
            autocast=False,
        )
        self.output_bias = self.add_weight(
            shape=(vocabulary_size,), initializer="zeros", name="output_bias", autocast=False
        )
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy of both directions, and their logits (B, 2, T - 2, V)."""
        forward, backward = ops.split(outputs[keys.SEQUENCE_OUTPUT], 2, axis=-1)
        inner = ops.shape(forward)[1] - 2
        hidden = ops.stack([part(forward, 0, inner), part(backward, 2)], axis=1)
        table, bias, dtype = self.output_table, self.output_bias, self.compute_dtype
        predicted = {keys.TOKEN_LOGITS: tied_logits(hidden, table, bias, dtype)}
        if keys.INNER_LABELS not in batch:
            return {}, predicted
        labels, weights = batch[keys.INNER_LABELS], batch[keys.INNER_WEIGHTS]
        weights = self.weighted(batch, weights)
        length = ops.shape(labels)[-1]  # a head may read a row's texts by themselves, (B, C, T)
        labels, weights = (ops.reshape(each, (-1, length)) for each in (labels, weights))
        labels, weights = (ops.stack([each, each], axis=1) for each in (labels, weights / 2.0))
        scores = token_scores(hidden, table, bias, labels, weights, dtype, training=training)
        return scores, predicted


def _normal(inputs: int) -> Any:
    """N(0, 1 / inputs), as in the authors' code, truncated."""
    return kernel_initializer(inputs**-0.5)
