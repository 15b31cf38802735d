"""Classification of a text or a pair of texts into any number of labels at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, RecipeError, check_known
from models import features as keys
from models.answers.label_set import set_of, written
from models.inputs.rows import check_answers, framed_rows, row_index
from models.inputs.wide_rows import WideHead, WideRows, check_can_tell
from models.keras_ops import ops
from models.layers.class_weights import CLASS_WEIGHTS, balanced, weights_of
from models.layers.divergence import symmetric_binary_kl
from models.layers.loss import binary_cross_entropy
from models.layers.row_scorer import SUMMARIES, RowScorer
from models.layers.scorer import Scored
from models.layers.wide import WidePart
from models.protocols import Answer, Batch, Context, Index, TokenisedRows

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = False
ANSWERS = "label_set"
WIDE = True  # it can answer by counted n-grams alone
THRESHOLD = "threshold"
ANSWER_SETTINGS = ("threshold",)
THRESHOLDS = ("dev",)  # what it may be instead of a number


class MultiLabelClassification(WideHead):
    """Both halves of text and pair classification, with an independent yes or no for each label.

    A text that is too long is cut (`framed_rows`); of a pair, the longer text first. The index's
    details count the rows that were cut.

    Args:
        context: The stage's constants, with label names.
        threshold: A label is predicted if its probability is above this, between 0 and 1; ``dev``
            for the one that is best on the dev rows (0.5 until training ends).
        class_weights: ``none``, or ``balanced`` to weight, for each label, the rows with it and
            those without by the inverse of their frequency in the training rows.
        dropout: Dropout rate of the pooled vector, 0-1.
        summary: What the head reads of a row, as in `sequence_classification`.
        wide: Whether counted n-grams answer beside the network (`models.layers.wide`).

    Raises:
        RecipeError: There are no labels, or the threshold is not between 0 and 1.
        ContractViolation: The training rows' answers are not sets of labels, or are all the same.
        UnknownNameError: `class_weights` or `summary` is unknown.
    """

    chooses = CHOOSES
    targets = (keys.SET_LABELS,)

    def __init__(
        self,
        context: Context,
        *,
        threshold: float | str = 0.5,
        class_weights: str = "none",
        dropout: float = 0.1,
        summary: str = "network",
        wide: bool = False,
    ):
        check_known("head.multi_label_classification.summary", summary, "a summary", SUMMARIES)
        place = "head.multi_label_classification.class_weights"
        check_known(place, class_weights, "a kind of class weights", CLASS_WEIGHTS)
        threshold = 0.5 if threshold in THRESHOLDS else float(threshold)
        if not 0 < threshold < 1:
            raise RecipeError(
                "head.multi_label_classification.threshold: expected a probability between 0 and "
                f"1, got {threshold}"
            )
        if context.rows is not None:
            _check(context.rows)
        if not context.label_names:
            raise RecipeError(
                "head.multi_label_classification: one label or more is needed, the dataset has 0"
            )
        self.context = context
        self.threshold = threshold
        self.class_weights = class_weights
        self.dropout = dropout
        self.summary = summary
        self.wide = WideRows(context, self.known_labels) if wide else None

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every row once, in order."""
        return row_index(corpus, self.context.sequence_length)

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Rows, and which labels each has: -1 throughout for a row without an answer."""
        labels = self._labels([corpus.answers[int(row)] for row in entries])
        batch = framed_rows(corpus, entries, self.context) | {keys.SET_LABELS: labels}
        return batch if self.wide is None else batch | self.wide.features(corpus, entries)

    def _labels(self, answers: Sequence[str]) -> np.ndarray:
        """(rows, N) int32, 1 for a label of the row; -1 throughout for a row without an answer."""
        names = self.context.label_names
        labels = np.full((len(answers), len(names)), -1, np.int32)
        for row, answer in enumerate(answers):
            own = set_of(answer)
            if own is not None:
                labels[row] = [name in own for name in names]
        return labels

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _MultiLabelClassificationScorer:
        """The head: a pooler if the network has none, dropout and one dense layer.

        Raises:
            RecipeError: The family has no network, and there is no wide part, either.
        """
        check_can_tell("multi_label_classification", self.wide, network)
        return _MultiLabelClassificationScorer(
            network,
            len(self.context.label_names),
            self.dropout,
            self._balanced() if self.class_weights == "balanced" else None,
            summary=self.summary,
            wide=WidePart(len(self.context.label_names)) if self.wide else None,
        )

    def known_labels(self, rows: TokenisedRows) -> np.ndarray:
        """(rows, N) int32, 1 for a label of the row; -1 throughout for a row without an answer."""
        return self._labels(rows.answers)

    def _balanced(self) -> np.ndarray:
        """(N, 2) weights of no and yes for each label; none without training rows."""
        if self.context.rows is None:
            return np.zeros(0, np.float32)
        labels = self.known_labels(self.context.rows)
        return balanced(np.stack([(labels == said).sum(axis=0) for said in (0, 1)], axis=1))

    def served(self) -> dict[str, Any]:
        """What a served model has to know of the head."""
        return {"threshold": self.threshold}

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The labels above the threshold; the details are the probabilities of all labels.

        The probability of the set takes labels as independent.
        """
        shares = _shares(outputs)
        chosen = shares > self.threshold
        names = self.context.label_names
        return Answer(
            self._said(chosen),
            float(np.where(chosen, shares, 1 - shares).prod()),
            dict(zip(names, shares.tolist(), strict=True)),
        )

    def thresholds(
        self, rows: TokenisedRows, outputs: Sequence[Sequence[Mapping[str, np.ndarray]]]
    ) -> Iterator[tuple[float, list[str]]]:
        """Thresholds from .01 to .99, each with the answers to all rows under it."""
        shares = np.array([_shares(own) for own in outputs])
        for percent in range(1, 100):
            chosen = shares > percent / 100
            yield percent / 100, [self._said(row) for row in chosen]

    def _said(self, chosen: np.ndarray) -> str:
        names = self.context.label_names
        return written(name for name, there in zip(names, chosen, strict=True) if there)


def _shares(outputs: Sequence[Mapping[str, np.ndarray]]) -> np.ndarray:
    """(N,) probabilities of the labels of a row, which is one entry."""
    (entry,) = outputs
    return np.asarray(entry[keys.PROBABILITIES], np.float64)


def _check(rows: TokenisedRows) -> None:
    """Check that there is something to learn.

    Raises:
        ContractViolation: The training rows' answers are not sets of labels, or are all the same.
    """
    sets = [set_of(answer) for answer in rows.answers]
    right = [labels is not None for labels in sets]
    check_answers("multi_label_classification", rows, right, "a JSON array of label names")
    if len({labels for labels in sets if labels is not None}) < 2:
        raise ContractViolation(
            "head.multi_label_classification: expected training rows with different labels, got "
            f"the same set of labels in all of {sum(right):,} rows; look at the answers of the "
            "train split"
        )


class _MultiLabelClassificationScorer(RowScorer):
    """One log odds per label; the loss is a mean over rows and labels."""

    def __init__(
        self,
        network: Any,
        num_labels: int,
        dropout: float,
        label_weights: np.ndarray | None,
        **reading: Any,
    ):
        super().__init__(network, "multi_label_classification", num_labels, dropout, **reading)
        self.label_weights = label_weights
        self.build()

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss, accuracy over labels, and the probabilities (B, N); without labels, only these."""
        scores = self.row_scores(batch, outputs, training)  # (B, N)
        predictions = self.said(scores)
        if keys.SET_LABELS not in batch:
            return {}, predictions
        labels = batch[keys.SET_LABELS]
        weights = ops.cast(labels >= 0, "float32")
        weights = self.weighted(batch, weights)
        labels = ops.maximum(labels, 0)
        yes = ops.cast(labels, "float32")
        found = binary_cross_entropy(scores, yes, weights)
        if self.label_weights is not None:
            classes = 2 * ops.arange(scores.shape[-1], dtype="int32") + labels
            place = "head.multi_label_classification.class_weights"
            own = weights_of(classes, self.label_weights, place)
            found["loss"] = binary_cross_entropy(scores, yes, weights * own)["loss"]
        return found, predictions

    @staticmethod
    def said(scores: Any) -> dict:
        """The predictions of scores (B, N)."""
        return {keys.PROBABILITIES: ops.sigmoid(scores)}

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Symmetric divergence of each label's yes and no, over those known."""
        known = ops.cast(batch[keys.SET_LABELS] >= 0, "float32")
        weights = known * batch[keys.ROW_WEIGHTS][:, None]
        return symmetric_binary_kl(first[keys.PROBABILITIES], second[keys.PROBABILITIES], weights)
