"""Classification of a text or a pair of texts, from the row's summary vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fourstage.errors import RecipeError, check_known
from models import features as keys
from models.inputs.rows import framed_rows, in_orders, labels_of, row_index
from models.inputs.wide_rows import WideHead, WideRows, check_can_tell
from models.keras_ops import ops
from models.layers.class_weights import CLASS_WEIGHTS, balanced, weights_of
from models.layers.divergence import symmetric_kl
from models.layers.loss import cross_entropy
from models.layers.row_scorer import SUMMARIES, RowScorer
from models.layers.scorer import Scored
from models.layers.shared_tokens import shared_tokens
from models.layers.wide import WidePart
from models.protocols import Answer, Batch, Context, Index, TokenisedRows

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = False
ANSWERS = "label"
WIDE = True  # it can answer by counted n-grams alone
EXCLUSIVE = {("symmetric", "wide"): "what is counted is of a pair in its one order"}


class SequenceClassification(WideHead):
    """Both halves of text and pair classification.

    A text that is too long is cut (`framed_rows`); of a pair, the longer text first. The index's
    details count the rows that were cut.

    Args:
        context: The stage's constants, with label names.
        class_weights: ``none``, or ``balanced`` to weight every label by the inverse of its
            frequency in the training rows.
        dropout: Dropout rate of the pooled vector, 0-1.
        summary: What the head reads of a row: ``network``, what its family's paper reads, such as
            [CLS] or the last token; ``mean`` or ``max`` of all tokens, or ``both``.
        wide: Whether counted n-grams answer beside the network (`models.layers.wide`).
        shared_tokens: Whether the network is told which tokens the other text of a pair has, too
            (`models.layers.shared_tokens`).
        symmetric: Read each pair in both orders, which are two examples in training and whose
            probabilities are averaged in predictions. GPT adds the vectors of both instead. Not
            with `wide`.

    Raises:
        RecipeError: There are fewer than two labels, or `symmetric` is asked with `wide`.
        UnknownNameError: `class_weights` or `summary` is unknown.
    """

    chooses = CHOOSES
    targets = (keys.LABELS,)

    def __init__(
        self,
        context: Context,
        *,
        class_weights: str = "none",
        dropout: float = 0.1,
        summary: str = "network",
        wide: bool = False,
        shared_tokens: bool = False,
        symmetric: bool = False,
    ):
        check_known("head.sequence_classification.summary", summary, "a summary", SUMMARIES)
        place = "head.sequence_classification.class_weights"
        check_known(place, class_weights, "a kind of class weights", CLASS_WEIGHTS)
        if len(context.label_names) < 2:
            raise RecipeError(
                "head.sequence_classification: two labels or more are needed, the dataset has "
                f"{len(context.label_names)}"
            )
        if wide and symmetric:
            raise RecipeError(
                "head.sequence_classification.symmetric: expected false with wide, got true:"
                f" {EXCLUSIVE['symmetric', 'wide']}; leave one of them out"
            )
        self.context = context
        self.symmetric = symmetric
        self.class_weights = class_weights
        self.dropout = dropout
        self.summary = summary
        self.shared_tokens = shared_tokens
        self.wide = WideRows(context, self.known_labels) if wide else None

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every row once, in order; a pair twice if its order does not matter."""
        once = row_index(corpus, self.context.sequence_length)
        return in_orders(once, corpus, both=True) if self.symmetric else once

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Rows and label ids."""
        rows, swapped = (entries["row"], entries["swapped"]) if self.symmetric else (entries, None)
        answers = [corpus.answers[int(row)] for row in rows]
        labels = labels_of(answers, self.context.label_names)
        batch = framed_rows(corpus, rows, self.context, swapped) | {keys.LABELS: labels}
        return batch if self.wide is None else batch | self.wide.features(corpus, rows)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _SequenceClassificationScorer:
        """The head: a pooler if the network has none, dropout and one dense layer.

        Raises:
            RecipeError: The family has no network, and there is no wide part, either.
        """
        check_can_tell("sequence_classification", self.wide, network)
        label_weights = None
        if self.class_weights == "balanced":
            label_weights = self._balanced()
        return _SequenceClassificationScorer(
            network,
            len(self.context.label_names),
            self.dropout,
            label_weights,
            summary=self.summary,
            wide=WidePart(len(self.context.label_names)) if self.wide else None,
            shared=shared_tokens(self.shared_tokens, network, self.context),
        )

    def known_labels(self, rows: TokenisedRows) -> np.ndarray:
        """(rows,) label ids, -1 for none."""
        return labels_of(rows.answers, self.context.label_names)

    def _balanced(self) -> np.ndarray:
        """(N,) weights of the labels; none without training rows."""
        if self.context.rows is None:
            return np.zeros(0, np.float32)
        labels = self.known_labels(self.context.rows)
        return balanced(np.bincount(labels[labels >= 0], minlength=len(self.context.label_names)))

    def served(self) -> dict[str, Any]:
        """What a served model has to know of the head."""
        return {"symmetric": True} if self.symmetric else {}

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The row's most likely label; the details are the probabilities of all labels.

        They are the means over the orders in which it was read.
        """
        read = [np.asarray(entry[keys.LOGITS], np.float64) for entry in outputs]
        powers = [np.exp(logits - logits.max()) for logits in read]
        shares = np.mean([each / each.sum() for each in powers], axis=0)
        names = self.context.label_names
        return Answer(
            names[int(shares.argmax())],
            float(shares.max()),
            dict(zip(names, shares.tolist(), strict=True)),
        )


class _SequenceClassificationScorer(RowScorer):
    """One logit per label; the loss is a weighted mean over rows."""

    def __init__(
        self,
        network: Any,
        num_labels: int,
        dropout: float,
        label_weights: np.ndarray | None,
        **reading: Any,
    ):
        super().__init__(network, "sequence_classification", num_labels, dropout, **reading)
        self.label_weights = label_weights
        self.build()

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss, accuracy, and the logits (B, N); without labels, only the logits."""
        logits = self.row_scores(batch, outputs, training)  # (B, N)
        predictions = self.said(logits)
        if keys.LABELS not in batch:
            return {}, predictions
        labels = batch[keys.LABELS]
        # Rows without a label (-1) have weight 0.
        weights = ops.cast(labels >= 0, "float32")
        weights = self.weighted(batch, weights)
        known = ops.maximum(labels, 0)
        scores = cross_entropy(logits, known, weights)
        if self.label_weights is not None:
            own = weights_of(
                known, self.label_weights, "head.sequence_classification.class_weights"
            )
            scores["loss"] = cross_entropy(logits, known, weights * own)["loss"]
        return scores, predictions

    @staticmethod
    def said(scores: Any) -> dict:
        """The predictions of scores (B, N)."""
        return {keys.LOGITS: scores}

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Symmetric divergence of the labels' distributions, over rows with a label."""
        weights = ops.cast(batch[keys.LABELS] >= 0, "float32") * batch[keys.ROW_WEIGHTS]
        return symmetric_kl(first[keys.LOGITS], second[keys.LOGITS], weights)
