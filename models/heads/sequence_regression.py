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
from models.inputs.wide_numbers import WideNumbers
from models.inputs.wide_rows import WideHead, check_can_tell
from models.keras_ops import ops
from models.layers.row_scorer import SUMMARIES, RowScorer
from models.layers.scorer import Scored
from models.layers.shared_tokens import shared_tokens
from models.layers.wide import WidePart
from models.protocols import Answer, Batch, Context, Index, TokenisedRows

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = False
ANSWERS = "number"
WIDE = True  # it can answer by counted n-grams alone


class SequenceRegression(WideHead):
    """Both halves of text and pair regression.

    The loss is the squared error in standard deviations of the training rows' numbers. Their mean
    and deviation are weights of the head, saved and restored with it.

    A text that is too long is cut (`framed_rows`); of a pair, the longer text first. The index's
    details count the rows that were cut.

    Args:
        context: The stage's constants.
        dropout: Dropout rate of the pooled vector, 0-1.
        summary: What the head reads of a row, as in `sequence_classification`.
        wide: Whether counted n-grams answer beside the network (`models.layers.wide`): those of a
            text, or how alike those of a pair are.
        shared_tokens: Whether the network is told which tokens the other text of a pair has, too
            (`models.layers.shared_tokens`).
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
        wide: bool = False,
        shared_tokens: bool = False,
        symmetric: bool = False,
    ):
        check_known("head.sequence_regression.summary", summary, "a summary", SUMMARIES)
        self.context = context
        self.dropout = dropout
        self.summary = summary
        self.shared_tokens = shared_tokens
        self.symmetric = symmetric
        # Without training rows, mean and deviation come with the weights.
        self.scale = (0.0, 1.0)
        if context.rows is not None:
            numbers = training_numbers("sequence_regression", context.rows)
            self.scale = float(numbers.mean()), float(numbers.std())
        self.wide = WideNumbers(context, self.known_labels) if wide else None

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
        batch = framed | {keys.NUMBER_LABELS: numbers}
        return batch if self.wide is None else batch | self.wide.features(corpus, entries["row"])

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _SequenceRegressionScorer:
        """The head: a pooler if the network has none, dropout and one dense layer.

        Raises:
            RecipeError: The family has no network, and there is no wide part, either.
        """
        check_can_tell("sequence_regression", self.wide, network)
        return _SequenceRegressionScorer(
            network,
            self.dropout,
            *self.scale,
            summary=self.summary,
            wide=WidePart(1) if self.wide else None,
            shared=shared_tokens(self.shared_tokens, network, self.context),
        )

    def known_labels(self, rows: TokenisedRows) -> np.ndarray:
        """(rows,) numbers in deviations of the training rows', NaN for none."""
        mean, deviation = self.scale
        return (single_precision(rows.answers).astype(np.float64) - mean) / deviation

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

    def __init__(self, network: Any, dropout: float, mean: float, deviation: float, **reading: Any):
        super().__init__(network, "sequence_regression", 1, dropout, **reading)
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
        found = self.row_scores(batch, outputs, training)  # (B, 1), in standard deviations
        predictions, scores = self.said(found), found[:, 0]
        if keys.NUMBER_LABELS not in batch:
            return {}, predictions
        mean, deviation = map(ops.convert_to_tensor, (self.mean, self.deviation))
        numbers = batch[keys.NUMBER_LABELS]
        known = ops.isfinite(numbers)
        weights = ops.cast(known, "float32")
        weights = self.weighted(batch, weights)
        wanted = (ops.where(known, numbers, mean) - mean) / deviation
        squares = ops.square(scores - wanted)
        return {"loss": (ops.sum(weights * squares), ops.sum(weights))}, predictions

    def said(self, scores: Any) -> dict:
        """The predictions of scores (B, 1)."""
        # JAX takes no variables in some operations.
        mean, deviation = map(ops.convert_to_tensor, (self.mean, self.deviation))
        return {keys.NUMBERS: scores[:, 0] * deviation + mean}

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Squared difference in standard deviations, as R-Drop's authors have for numbers."""
        known = ops.cast(ops.isfinite(batch[keys.NUMBER_LABELS]), "float32")
        weights = known * batch[keys.ROW_WEIGHTS]
        apart = first[keys.NUMBERS] - second[keys.NUMBERS]
        squares = ops.square(apart / ops.convert_to_tensor(self.deviation))
        return ops.sum(weights * squares), ops.sum(weights)
