"""Regression of a text or a pair of texts: one number from the row's summary vector.

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 4.1, on STS-B (Cer et al. 2017, arXiv 1708.00055).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from fourstage.errors import check_known
from models import features as keys
from models.inputs.numbers import single_precision, training_numbers
from models.inputs.rows import framed_rows, in_orders, row_index
from models.keras_ops import ops
from models.layers.row_scorer import SUMMARIES, RowScorer
from models.layers.scorer import Scored
from models.protocols import Answer, Batch, Context, Index, TokenisedRows

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = False
ANSWERS = "number"


class SequenceRegression:
    """Both halves of text and pair regression.

    The loss is the squared error in standard deviations of the training rows' numbers. Their mean
    and deviation are weights of the head, saved and restored with it.

    A text that is too long is cut (`framed_rows`); of a pair, the longer text first. The index's
    details count the rows that were cut.

    Args:
        context: The stage's constants.
        dropout: Dropout rate of the pooled vector, 0-1.
        summary: What the head reads of a row, as in `sequence_classification`.
        symmetric: Read each pair in both orders, which are two examples in training and whose
            numbers are averaged in predictions.

    Raises:
        ContractViolation: The training rows' answers are not numbers, or are all the same.
        UnknownNameError: `summary` is unknown.
    """

    chooses = CHOOSES
    targets = (keys.NUMBER_LABELS,)

    def __init__(
        self,
        context: Context,
        *,
        dropout: float = 0.1,
        summary: str = "network",
        symmetric: bool = False,
    ):
        check_known("head.sequence_regression.summary", summary, "a summary", SUMMARIES)
        self.context = context
        self.dropout = dropout
        self.summary = summary
        self.symmetric = symmetric
        # Without training rows, mean and deviation come with the weights.
        self.scale = (0.0, 1.0)
        if context.rows is not None:
            numbers = training_numbers("sequence_regression", context.rows)
            self.scale = float(numbers.mean()), float(numbers.std())

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every row once, in order; a pair twice if its order does not matter."""
        once = row_index(corpus, self.context.sequence_length)
        return in_orders(once, corpus, self.symmetric)

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Rows and their numbers, NaN for a row without one."""
        numbers = single_precision([corpus.answers[row] for row in entries["row"].tolist()])
        framed = framed_rows(corpus, entries["row"], self.context, entries["swapped"])
        return framed | {keys.NUMBER_LABELS: numbers}

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _SequenceRegressionScorer:
        """The head: a pooler if the network has none, dropout and one dense layer."""
        return _SequenceRegressionScorer(network, self.dropout, self.summary, *self.scale)

    def served(self) -> dict[str, Any]:
        """What a served model has to know of the head."""
        return {"symmetric": self.symmetric}

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The row's number, the mean over the orders in which it was read."""
        number = np.mean([entry[keys.NUMBERS] for entry in outputs], dtype=np.float64)
        # A number of single precision, in its shortest spelling.
        return Answer(json.dumps(float(str(np.float32(number)))), math.nan)


class _SequenceRegressionScorer(RowScorer):
    """One number per row; the loss is a mean over rows."""

    def __init__(self, network: Any, dropout: float, summary: str, mean: float, deviation: float):
        super().__init__(network, "sequence_regression", 1, dropout, summary=summary)
        self.initial = {"mean": mean, "deviation": deviation}
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.mean, self.deviation = (
            self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(value),
                trainable=False,
                dtype="float32",
                autocast=False,
                name=name,
            )
            for name, value in self.initial.items()
        )
        super().build(input_shape)

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss, and the numbers (B,); without correct numbers, only the numbers."""
        scores = self.row_scores(batch, outputs, training)[:, 0]  # (B,), in standard deviations
        # JAX takes no variables in some operations.
        mean, deviation = map(ops.convert_to_tensor, (self.mean, self.deviation))
        predictions = {keys.NUMBERS: scores * deviation + mean}
        if keys.NUMBER_LABELS not in batch:
            return {}, predictions
        numbers = batch[keys.NUMBER_LABELS]
        known = ops.isfinite(numbers)
        weights = ops.cast(known, "float32")
        weights = self.weighted(batch, weights)
        wanted = (ops.where(known, numbers, mean) - mean) / deviation
        squares = ops.square(scores - wanted)
        return {"loss": (ops.sum(weights * squares), ops.sum(weights))}, predictions

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Squared difference in standard deviations, as R-Drop's authors have for numbers."""
        known = ops.cast(ops.isfinite(batch[keys.NUMBER_LABELS]), "float32")
        weights = known * batch[keys.ROW_WEIGHTS]
        apart = first[keys.NUMBERS] - second[keys.NUMBERS]
        squares = ops.square(apart / ops.convert_to_tensor(self.deviation))
        return ops.sum(weights * squares), ops.sum(weights)
