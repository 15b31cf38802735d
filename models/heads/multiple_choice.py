"""Multiple choice: which of a row's choices goes with its text.

Each choice is read as a pair with the text and gets one score; the softmax is over the choices.

    row       text | choice 0 | choice 1 | choice 2
    batch     (B, C, T)    [CLS] text [SEP] choice 0 [SEP]   …   [CLS] text [SEP] choice 2 [SEP]
    network   (B · C, T)
    scores    (B, C)       choices that only fill up a row are left out

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 4.4 (SWAG).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fourstage.errors import check_known
from models import features as keys
from models.answers.choice import choice_of
from models.inputs.rows import check_answers, check_rows, framed_texts, text_index
from models.inputs.wide_choices import LEFT_OUT, Pairs, WideChoices
from models.inputs.wide_rows import WideHead, check_can_tell
from models.keras_ops import ops
from models.layers.divergence import symmetric_kl
from models.layers.loss import cross_entropy
from models.layers.row_scorer import SUMMARIES, RowScorer
from models.layers.scorer import Scored
from models.layers.shared_tokens import shared_tokens
from models.layers.wide import WidePart
from models.protocols import Answer, Batch, Context, Index, TokenisedRows
from models.served.choices import choice_shares

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = True
ANSWERS = "choice"
WIDE = True  # it can answer by counted n-grams alone


class MultipleChoice(WideHead):
    """Both halves of multiple choice. A row's texts are its text and two choices or more.

    A pair that is too long is cut (`framed_texts`), the longer text first. The index's details
    count the rows of which a pair was cut.

    Args:
        context: The stage's constants.
        dropout: Dropout rate of the pooled vector, 0-1.
        summary: What the head reads of a row, as in `sequence_classification`.
        wide: Whether counted n-grams of each choice and its text answer beside the network
            (`models.layers.wide`).
        shared_tokens: Whether the network is told which tokens a text and a choice share, as there.

    Raises:
        ContractViolation: Training rows' answers are not numbers of their choices.
        UnknownNameError: `summary` is unknown.
    """

    chooses = CHOOSES
    targets = (keys.LABELS,)

    def __init__(
        self,
        context: Context,
        *,
        dropout: float = 0.1,
        summary: str = "network",
        wide: bool = False,
        shared_tokens: bool = False,
    ):
        check_known("head.multiple_choice.summary", summary, "a summary", SUMMARIES)
        if context.rows is not None:
            right = (self.known_labels(context.rows) >= 0).tolist()
            check_answers("multiple_choice", context.rows, right, "the number of a choice")
        self.context = context
        self.dropout = dropout
        self.summary = summary
        self.shared_tokens = shared_tokens
        self.wide = WideChoices(context, self.known_labels) if wide else None

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every row once, in order; its length is that of all its pairs.

        Raises:
            ContractViolation: A row has fewer than two choices.
        """
        counts = np.array([len(corpus.texts(i)) - 1 for i in range(len(corpus))], np.int64)
        check_rows("multiple_choice", corpus, (counts >= 2).tolist(), "two choices or more")
        return text_index(Pairs(corpus).pairs, self.context.sequence_length, counts)

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The pairs of each row, (B, C, T), and the numbers of the right choices, -1 for none.

        C is the largest number of choices in the batch; the padding mask of a choice that only
        fills up a row is 0.
        """
        own = Pairs(corpus, entries)
        fills = {keys.TOKEN_IDS: self.context.tokenizer.pad_id}
        framed = framed_texts(own.pairs, self.context)
        batch = {key: own.by_row(value, fills.get(key, 0)) for key, value in framed.items()}
        batch[keys.LABELS] = np.array([_label(corpus, int(row)) for row in entries], np.int32)
        return batch if self.wide is None else batch | self.wide.features(corpus, entries)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _MultipleChoiceScorer:
        """The head: a pooler if the network has none, dropout and one dense layer.

        Raises:
            RecipeError: The family has no network, and there is no wide part, either.
        """
        check_can_tell("multiple_choice", self.wide, network)
        return _MultipleChoiceScorer(
            network,
            self.dropout,
            summary=self.summary,
            wide=WidePart(1) if self.wide else None,
            shared=shared_tokens(self.shared_tokens, network, self.context),
        )

    def known_labels(self, rows: TokenisedRows) -> np.ndarray:
        """(rows,) numbers of the right choices, -1 for none."""
        return np.array([_label(rows, row) for row in range(len(rows))], np.int32)

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The row's most likely choice; the details are the probabilities of all its choices."""
        (entry,) = outputs
        logits = entry[keys.LOGITS][: len(rows.texts(row)) - 1]
        shares = choice_shares(logits)
        return Answer(
            str(int(shares.argmax())),
            float(shares.max()),
            {str(number): share for number, share in enumerate(shares.tolist())},
        )


def _label(rows: TokenisedRows, row: int) -> int:
    """The number of a row's right choice; -1 if the answer is none of its choices."""
    label = choice_of(rows.answers[row])
    return -1 if label is None or label >= len(rows.texts(row)) - 1 else label


class _MultipleChoiceScorer(RowScorer):
    """One logit per choice; the loss is a mean over rows."""

    def __init__(self, network: Any, dropout: float, **reading: Any):
        super().__init__(network, "multiple_choice", 1, dropout, **reading)
        self.build()

    def prepare(self, batch: dict, training: bool) -> dict:
        """Lay out the pairs of all rows as rows of their own, (B · C, T)."""
        mask = batch[keys.PADDING_MASK]  # (B, C, T)
        batch = batch | {keys.CHOICE_MASK: mask[:, :, 0]}
        for key in (keys.TOKEN_IDS, keys.SEGMENT_IDS, keys.PADDING_MASK):
            batch[key] = ops.reshape(batch[key], (-1, ops.shape(mask)[2]))
        # A pair that only fills up a row has one token, because attention to none is not defined.
        first = ops.arange(ops.shape(mask)[2]) == 0
        batch[keys.PADDING_MASK] = ops.where(first, 1, batch[keys.PADDING_MASK])
        return super().prepare(batch, training)

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss, accuracy, and the logits (B, C); without labels, only the logits."""
        logits = self.row_scores(batch, outputs, training)
        predictions = self.said(logits)
        if keys.LABELS not in batch:
            return {}, predictions
        labels = batch[keys.LABELS]
        # Rows without a right choice (-1) have weight 0.
        weights = ops.cast(labels >= 0, "float32")
        weights = self.weighted(batch, weights)
        return cross_entropy(logits, ops.maximum(labels, 0), weights), predictions

    def own_scores(self, batch: dict, outputs: dict, training: bool | None) -> Any:
        """The network's scores of each row's choices, (B, C) float32."""
        return _of_choices(super().own_scores(batch, outputs, training), batch)

    def counted(self, batch: dict) -> Any:
        """The wide part's scores of each row's choices, (B, C) float32."""
        return _of_choices(super().counted(batch), batch)

    @staticmethod
    def said(scores: Any) -> dict:
        """The predictions of scores (B, C)."""
        return {keys.LOGITS: scores}

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Symmetric divergence of the choices' distributions, over rows with a right choice."""
        weights = ops.cast(batch[keys.LABELS] >= 0, "float32") * batch[keys.ROW_WEIGHTS]
        return symmetric_kl(first[keys.LOGITS], second[keys.LOGITS], weights)


def _of_choices(scores: Any, batch: dict) -> Any:
    """Scores of pairs, one each, as (B, C); `LEFT_OUT` for choices that are not there."""
    there = batch[keys.CHOICE_MASK]
    return ops.where(there > 0, ops.reshape(scores, ops.shape(there)), LEFT_OUT)
