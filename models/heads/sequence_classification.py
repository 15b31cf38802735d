"""One label for a text or a pair of texts, from the vector where the network sums a row up.

A network that was pre-trained with a pooler (BERT, ALBERT, ERNIE) has pooled it. For the others the
head does as the authors' code: RoBERTa has dropout and a dense layer with tanh there, DistilBERT a
dense layer with ReLU, ELECTRA nothing (Hugging Face's ELECTRA has a dense layer).

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 4.1; without a pooler: Liu et al. 2019, arXiv 1907.11692,
    Clark et al. 2020, arXiv 2003.10555, Sanh et al. 2019, arXiv 1910.01108, by their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError, UnknownNameError
from models import features as keys
from models.inputs.rows import framed_rows, labels_of, row_index
from models.layers.loss import cross_entropy
from models.layers.projection import ActivatedProjection, projection
from models.layers.scorer import ScorerLayer
from models.layers.summary import row_vectors
from models.protocols import Answer, Batch, Capability, Context, Index, TokenisedRows

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = False
ANSWERS = "label"
CLASS_WEIGHTS = ("none", "balanced")


class SequenceClassification:
    """Both halves of text and pair classification.

    Too long a text keeps its head (of a pair the longer text is cut first); how many were cut is in
    the index's details.

    Args:
        context: What is fixed for the stage, label names among it.
        class_weights: ``none``, or ``balanced`` to weigh every label by the inverse of its
            frequency in the training rows.
        dropout: Share of the pooled vector dropped in training, 0-1.

    Raises:
        RecipeError: If there are fewer than two labels.
        UnknownNameError: If `class_weights` is unknown.
    """

    needs = frozenset(Capability(name) for name in NEEDS)
    provides = frozenset(Capability(name) for name in PROVIDES)
    chooses = CHOOSES
    prepares = PREPARES
    targets = (keys.LABELS,)

    def __init__(self, context: Context, *, class_weights: str = "none", dropout: float = 0.1):
        if class_weights not in CLASS_WEIGHTS:
            raise UnknownNameError(
                "head.sequence_classification.class_weights",
                str(class_weights),
                "a kind of class weights",
                CLASS_WEIGHTS,
            )
        if len(context.label_names) < 2:
            raise RecipeError(
                "head.sequence_classification: two labels or more are needed, the dataset has "
                f"{len(context.label_names)}"
            )
        self.context = context
        self.class_weights = class_weights
        self.dropout = dropout

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every row once."""
        return row_index(corpus, self.context.sequence_length)

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Rows and labels."""
        answers = [corpus.answers[int(row)] for row in entries]
        labels = labels_of(answers, self.context.label_names)
        return framed_rows(corpus, entries, self.context) | {keys.LABELS: labels}

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _SequenceClassificationScorer:
        """The head: dropout and one dense layer on the pooled vector, which it may have to make."""
        label_weights = None
        if self.class_weights == "balanced":
            # A trained head is rebuilt for prediction with no rows at hand: then no loss is asked.
            label_weights = self._balanced() if self.context.rows else ()
        return _SequenceClassificationScorer(
            network, len(self.context.label_names), self.dropout, label_weights
        )

    def _balanced(self) -> tuple[float, ...]:
        """One weight a label; one that no training row has is counted as if a single row had it."""
        assert self.context.rows is not None
        labels = labels_of(self.context.rows.answers, self.context.label_names)
        counts = np.bincount(labels[labels >= 0], minlength=len(self.context.label_names))
        return tuple(map(float, counts.sum() / (len(counts) * np.maximum(counts, 1))))

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[Answer]:
        """The likeliest label of each row; the details are every label's probability."""
        logits = np.asarray(outputs[keys.LOGITS], np.float64)
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        names = self.context.label_names
        return [
            Answer(
                names[int(row.argmax())],
                float(row.max()),
                dict(zip(names, row.tolist(), strict=True)),
            )
            for row in shares
        ]


class _SequenceClassificationScorer(ScorerLayer):
    """One score a label from the pooled vector; the loss is a weighted mean over rows."""

    reads = ()

    def __init__(
        self,
        network: Any,
        num_labels: int,
        dropout: float,
        label_weights: tuple[float, ...] | None,
    ):
        dtype = network.dtype_policy.name
        super().__init__(name="sequence_classification", dtype=dtype, autocast=False)
        self.summary = network.row_summary
        self.hidden_dim = network.hidden_dim
        self.label_weights = label_weights
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")
        self.output_projection = projection(num_labels, name="output", dtype=dtype)
        self.pooler: Any = None
        self.is_pooled = Capability.POOLED_OUTPUT in network.provides
        if not self.is_pooled and network.pooler_activation:
            self.drops_before = network.pooler_dropout
            self.pooler = ActivatedProjection(
                self.hidden_dim, activation=network.pooler_activation, name="pooler", dtype=dtype
            )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        if self.pooler is not None:
            self.pooler.build((None, self.hidden_dim))
        self.output_projection.build((None, self.hidden_dim))
        self.built = True

    def _pooled(self, batch: dict, outputs: dict, training: bool | None) -> Any:
        """(B, D) float32."""
        if self.is_pooled:
            return outputs[keys.POOLED_OUTPUT]
        row = row_vectors(self.summary, batch, outputs)
        if self.pooler is not None:
            if self.drops_before:
                row = self.dropout(row, training=training)
            row = self.pooler(row, training=training)
        return ops.cast(row, "float32")

    def call(
        self, batch: dict, outputs: dict, training: bool | None = None
    ) -> tuple[dict[str, tuple[Any, Any]], dict]:
        """Loss, accuracy, and the logits (B, N); logits only where no labels are given."""
        pooled = self.dropout(self._pooled(batch, outputs, training), training=training)
        logits = ops.cast(self.output_projection(pooled), "float32")  # (B, N)
        predictions = {keys.LOGITS: logits}
        if keys.LABELS not in batch:
            return {}, predictions
        labels = batch[keys.LABELS]
        # A row without a label (-1) counts nowhere.
        weights = ops.cast(labels >= 0, "float32")
        if keys.ROW_WEIGHTS in batch:
            weights = weights * batch[keys.ROW_WEIGHTS]
        known = ops.maximum(labels, 0)
        scores = cross_entropy(logits, known, weights)
        if self.label_weights is not None:
            if len(self.label_weights) != logits.shape[-1]:
                raise RecipeError(
                    "head.sequence_classification.class_weights: 'balanced' needs a weight for "
                    f"each of the {logits.shape[-1]} labels, got {len(self.label_weights)}"
                )
            table = ops.convert_to_tensor(self.label_weights, dtype="float32")
            weighted = cross_entropy(logits, known, weights * ops.take(table, known))
            scores["loss"] = weighted["loss"]
        return scores, predictions
