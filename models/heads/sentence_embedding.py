"""Embedding of texts: vectors whose cosine says how similar two texts are.

Each text of a pair is read alone, so that the vectors of many texts can be compared without reading
them again. A vector is the mean of the text's token vectors, divided by its length.

    row       text | text_pair | number
    batch     (B, 2, T)    [CLS] text [SEP]   [CLS] text_pair [SEP]
    network   (2 · B, T)
    vectors   (B, 2, D)    of length 1
    cosines   (B,)         towards the number, scaled to 0-1

The loss is the squared error of the cosine: a mean over rows, whichever share a batch. With
`positive_from` it is contrastive: in row i of a batch, `text` should find its own `text_pair` among
those of all rows j,

    loss_i = -log( exp(cos(a_i, b_i) / τ) / Σ_j exp(cos(a_i, b_j) / τ) )        eq. 5 without the
                                                                                hard negatives

as a mean over the rows whose number, scaled to 0-1, is at least `positive_from`. Other rows give
negatives alone.

Reference:
    Reimers & Gurevych 2019, Sentence-BERT, arXiv 1908.10084, section 3 (mean pooling; regression
    objective function); numbers scaled to 0-1 as in their code for the STS benchmark.
    Gao et al. 2021, SimCSE, arXiv 2104.08821, section 4 (in-batch negatives; τ = .05). Unlike
    theirs, a text that equals `text` or its own pair is no negative.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.inputs.numbers import single_precision, training_numbers
from models.inputs.rows import check_rows, framed_texts, text_index
from models.keras_ops import ops
from models.layers.scorer import Scored, ScorerLayer
from models.layers.summary import MEAN, row_vectors
from models.protocols import Answer, Batch, Context, Index, TokenisedRows

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = True
ANSWERS = "number"
EMBEDS = True

ROUNDING = 1e-6  # 4 of 5, in single precision, is at least .8


class SentenceEmbedding:
    """Both halves of text embedding.

    A text that is too long is cut (`framed_texts`). The index's details count the rows of which a
    text was cut.

    Args:
        context: The stage's constants.
        positive_from: Least similarity of a positive of the contrastive loss, from above 0 to 1:
            .8 is 4 of numbers from 0 to 5. None: the loss is the squared error. A batch of several
            micro-batches has the negatives of each by itself.
        temperature: τ of the contrastive loss, above 0.

    Raises:
        ContractViolation: The training rows' answers are not numbers, or are all the same.
        RecipeError: A setting is out of range.
    """

    chooses = CHOOSES
    targets = (keys.NUMBER_LABELS,)

    def __init__(
        self, context: Context, *, positive_from: float | None = None, temperature: float = 0.05
    ):
        if not temperature > 0:
            raise RecipeError(
                f"head.sentence_embedding.temperature: expected more than 0, got {temperature}"
            )
        if positive_from is not None and not 0 < positive_from <= 1:
            raise RecipeError(
                "head.sentence_embedding.positive_from: expected a similarity above 0, at most 1"
                f" (.8 is 4 of numbers from 0 to 5), got {positive_from}"
            )
        self.context = context
        self.positive_from, self.temperature = positive_from, temperature
        # Without training rows, the range comes with the weights.
        self.range = (0.0, 1.0)
        if context.rows is not None:
            numbers = training_numbers("sentence_embedding", context.rows)
            self.range = float(numbers.min()), float(numbers.max())

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every row once, in order; its length is that of both texts.

        Raises:
            ContractViolation: A row does not have two texts.
        """
        rows = [corpus.texts(i) for i in range(len(corpus))]
        check_rows("sentence_embedding", corpus, [len(row) == 2 for row in rows], "two texts")
        texts = ((text,) for row in rows for text in row)
        return text_index(texts, self.context.sequence_length, np.full(len(rows), 2))

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The texts of each row, (B, 2, T), and the rows' numbers, NaN for a row without one."""
        texts = [(text,) for row in entries.tolist() for text in corpus.texts(row)]
        framed = framed_texts(texts, self.context)
        batch: Batch = {key: value.reshape(len(entries), 2, -1) for key, value in framed.items()}
        answers = [corpus.answers[row] for row in entries.tolist()]
        return batch | {keys.NUMBER_LABELS: single_precision(answers)}

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _SentenceEmbeddingScorer:
        """The head; it has nothing to train."""
        return _SentenceEmbeddingScorer(*self.range, self.positive_from, self.temperature)

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The similarity of the row's texts, in the units of the training rows' numbers."""
        (entry,) = outputs
        # A number of single precision, in its shortest spelling.
        return Answer(json.dumps(float(str(np.float32(entry[keys.NUMBERS])))), math.nan)


class _SentenceEmbeddingScorer(ScorerLayer):
    """The cosine of each row's two vectors; the loss is a mean over rows.

    Args:
        low: The number of texts whose cosine is 0.
        high: The number of texts whose cosine is 1.
        positive_from: The least similarity of a positive, or None.
        temperature: τ.
    """

    def __init__(self, low: float, high: float, positive_from: float | None, temperature: float):
        super().__init__(name="sentence_embedding", dtype="float32", autocast=False)
        self.positive_from, self.temperature = positive_from, temperature
        self.low, self.high = (
            self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(value),
                trainable=False,
                name=name,
            )
            for name, value in (("low", low), ("high", high))
        )
        self.built = True

    def prepare(self, batch: dict, training: bool) -> dict:
        """Lay out the texts of all rows as rows of their own, (2 · B, T)."""
        length = ops.shape(batch[keys.TOKEN_IDS])[2]
        apart = (keys.TOKEN_IDS, keys.SEGMENT_IDS, keys.PADDING_MASK)
        return batch | {key: ops.reshape(batch[key], (-1, length)) for key in apart}

    def vectors(self, batch: dict, outputs: dict) -> Any:
        """The vector of each text, (texts, D) float32 of length 1."""
        means = row_vectors(MEAN, batch, outputs)
        # Vectors of zeros stay zeros.
        return means * ops.rsqrt(ops.maximum(ops.sum(means**2, axis=-1, keepdims=True), 1e-24))

    def numbers(self, first: Any, second: Any) -> tuple[Any, Any]:
        """The cosines of vectors (B, D), and the same in the training rows' units, (B,) each."""
        cosines = ops.sum(first * second, axis=-1)
        # JAX takes no variables in some operations.
        low, high = map(ops.convert_to_tensor, (self.low, self.high))
        return cosines, low + cosines * (high - low)

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss, and the numbers (B,); without correct numbers, only the numbers."""
        vectors = self.vectors(batch, outputs)
        pairs = ops.reshape(vectors, (-1, 2, vectors.shape[-1]))
        cosines, predicted = self.numbers(pairs[:, 0], pairs[:, 1])
        predictions = {keys.NUMBERS: predicted}
        if keys.NUMBER_LABELS not in batch:
            return {}, predictions
        labels = batch[keys.NUMBER_LABELS]
        known = ops.isfinite(labels)
        weights = ops.cast(known, "float32")
        weights = self.weighted(batch, weights)
        low, high = map(ops.convert_to_tensor, (self.low, self.high))
        wanted = (ops.where(known, labels, low) - low) / (high - low)
        if self.positive_from is None:
            losses = ops.square(cosines - wanted)
        else:
            losses = self._contrasts(batch, pairs)
            weights = weights * ops.cast(wanted >= self.positive_from - ROUNDING, "float32")
        return {"loss": (ops.sum(weights * losses), ops.sum(weights))}, predictions

    def _contrasts(self, batch: dict, pairs: Any) -> Any:
        """The contrastive loss of each row, (B,), from vectors (B, 2, D)."""
        logits = ops.matmul(pairs[:, 0], ops.transpose(pairs[:, 1])) / self.temperature  # (B, B)
        ids = batch[keys.TOKEN_IDS]
        ids = ops.reshape(ids, (-1, 2, ops.shape(ids)[-1]))
        first, second, own = ids[:, None, 0], ids[None, :, 1], ids[:, None, 1]
        left_out = ops.all(first == second, axis=-1) | ops.all(own == second, axis=-1)
        if keys.ROW_WEIGHTS in batch:
            left_out = left_out | (batch[keys.ROW_WEIGHTS] == 0)[None]
        itself = ops.eye(ops.shape(logits)[0], dtype="bool")
        logits = ops.where(left_out & ~itself, -1e9, logits)
        return ops.logsumexp(logits, axis=-1) - ops.diagonal(logits)
