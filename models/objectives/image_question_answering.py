"""Image question answering: the answer to a question about its picture, one of a fixed set.

The rows are those of the stage's captions. One is a question if it has an answer, which is the
row's label, and shows its own picture; any other row weighs nothing, as does an answer outside of
the set, which are the commonest answers of the training rows.

Reference:
    Tan and Bansal 2019, arXiv 1908.07490, 3.1.3, and the authors' code: two layers on the pooled
    vector; no answer where the picture is another caption's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.loss import cross_entropy
from models.layers.norm import norm_layer
from models.layers.projection import ActivatedProjection, projection
from models.layers.scorer import Scored, ScorerLayer
from models.protocols import Batch, Context

NEEDS = ("pooled_output", "regions")
PROVIDES = ()
CHOOSES = 1
PREPARES = False
ASKS = "answers"
MEASURED = {}
PER_TOKEN = False  # the loss is of whole rows
LOGITS = "image_question_answering_logits"  # (B, N) float32, of each answer


class ImageQuestionAnswering(Windows):
    """Both halves of image question answering.

    Each part of a text that is longer than a row is asked for the text's answer.

    Args:
        context: The stage's constants, with its answers.
        answers: Number of answers that are learned: the commonest of the training rows.

    Raises:
        RecipeError: `answers` is below 2.
        ContractViolation: The stage's captions have fewer than two answers.
    """

    chooses = CHOOSES

    def __init__(self, context: Context, *, answers: int = 9500):
        if answers < 2:
            raise RecipeError(
                f"objectives.image_question_answering.answers: expected 2 or more, got {answers}"
            )
        if len(context.answers) < 2:
            raise ContractViolation(
                "image_question_answering: expected two or more answers among the training rows"
                f" with pictures, got {len(context.answers)}; look at the labels of the datasets"
                " among the corpora of the stage"
            )
        self.context = context

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add the loss weights: 1 for a row with an answer.

        Raises:
            ContractViolation: What chooses the segments knows of no answers.
        """
        if keys.ANSWER_LABELS not in batch:
            raise ContractViolation(
                "objectives.image_question_answering: its rows are not those of captions; beside it"
                " expected image_text_match or objectives that read plain windows of text, or let"
                " it take turns with the others (`alternate: true`)"
            )
        labels = batch[keys.ANSWER_LABELS]
        return batch | {
            keys.ANSWER_LABELS: np.maximum(labels, 0),
            keys.ANSWER_WEIGHTS: (labels >= 0).astype(np.float32),
        }

    def attach(self, network: Any) -> _AnswerScorer:
        """The head: dense → activation → LayerNorm → dense."""
        return _AnswerScorer(network, len(self.context.answers))

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[str]:
        """The likeliest answer of each row."""
        return [self.context.answers[i] for i in np.asarray(outputs[LOGITS]).argmax(axis=-1)]


class _AnswerScorer(ScorerLayer):
    """Scores the answers of rows that are questions."""

    reads = ()

    def __init__(self, network: Any, num_answers: int):
        dtype = network.dtype_policy.name
        super().__init__(name="image_question_answering", dtype=dtype, autocast=False)
        self.pooled_dim = getattr(network, "pooled_dim", network.hidden_dim)
        self.transform = ActivatedProjection(
            2 * self.pooled_dim, activation=network.activation, name="transform", dtype=dtype
        )
        self.norm = norm_layer("norm", network.layer_norm_epsilon)
        self.output_projection = projection(num_answers, name="output", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.transform.build((None, self.pooled_dim))
        for layer in (self.norm, self.output_projection):
            layer.build((None, 2 * self.pooled_dim))
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy over questions, the share of rows that are any, and logits (B, N)."""
        hidden = self.transform(outputs[keys.POOLED_OUTPUT], training=training)
        hidden = self.norm(ops.cast(hidden, "float32"))
        logits = ops.cast(self.output_projection(hidden), "float32")  # (B, N)
        if keys.ANSWER_LABELS not in batch:
            return {}, {LOGITS: logits}
        asked = batch[keys.ANSWER_WEIGHTS]
        rows = self.weighted(batch, ops.ones_like(asked))
        weights = asked * rows
        scores = cross_entropy(logits, batch[keys.ANSWER_LABELS], weights)
        return scores | {"asked": (ops.sum(weights), ops.sum(rows))}, {LOGITS: logits}
