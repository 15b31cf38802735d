"""Extractive question answering: the answer is a part of the passage, or there is none.

A start and an end are predicted for each word; "no answer" is scored at the first position. A
passage that is too long is read in several windows. The best answer starts in the window in which
its first word has the most context; it is given up for "no answer" if the latter scores higher by
more than the threshold in every window. A window that does not contain the answer is trained on "no
answer".

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 4.2 and 4.3, by the published code for SQuAD; "no answer":
    Rajpurkar et al. 2018, arXiv 1806.03822.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.inputs.passages import Passages, slots, word_places, words_of_span
from models.keras_ops import ops
from models.layers.divergence import symmetric_kl
from models.layers.gather import gather_positions
from models.layers.loss import cross_entropy
from models.layers.projection import projection
from models.layers.scorer import Scored, ScorerLayer
from models.layers.shared_tokens import SharedTokens, shared_tokens
from models.protocols import Answer, Batch, Context, Index, TokenisedRows
from models.served.parts import Window, best_part
from models.served.windows import most_context

NEEDS = ("bidirectional",)
PROVIDES = ()
CHOOSES = 2
PREPARES = False
ANSWERS = "extract"
READS_WORDS = True
THRESHOLD = "no_answer_threshold"
ANSWER_SETTINGS = ("no_answer_threshold", "longest_answer")
NO_ANSWER_THRESHOLDS = ("dev",)  # what it may be instead of a number

NOT_A_WORD = -1e4  # logit of a slot without a word


class SpanExtraction:
    """Both halves of extractive question answering.

    Args:
        context: The stage's constants.
        longest_answer: Words of the longest answer.
        no_answer_threshold: Nats by which "no answer" must score higher than the best answer;
            ``dev`` for the number that is best on the dev rows (0 until training ends). If every
            training question has an answer, every question gets one.
        dropout: Dropout rate of the word vectors, 0-1.
        shared_tokens: Whether the network is told which tokens question and passage share
            (`models.layers.shared_tokens`).
        stride: Tokens from the start of a window to that of the next; None for half a window.

    Raises:
        RecipeError: `longest_answer` is below 1.
    """

    chooses = CHOOSES
    targets = (keys.START_LABELS, keys.END_LABELS)

    def __init__(
        self,
        context: Context,
        *,
        longest_answer: int = 30,
        no_answer_threshold: float | str = 0.0,
        dropout: float = 0.0,
        shared_tokens: bool = False,
        stride: int | None = None,
    ):
        if longest_answer < 1:
            raise RecipeError(
                "head.span_extraction.longest_answer: expected 1 or more words, got"
                f" {longest_answer}"
            )
        self.context = context
        self.longest_answer = longest_answer
        self.no_answer_threshold = (
            0.0 if no_answer_threshold in NO_ANSWER_THRESHOLDS else float(no_answer_threshold)
        )
        self.dropout = dropout
        self.shared_tokens = shared_tokens
        self.passages = Passages(context, stride)

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every window of every row, in order."""
        return self.passages.index(corpus)

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Windows, where their words lie, and the slots in which the first answer lies."""
        batch, places = self.passages.segments(corpus, entries)
        starts, ends, mask = slots(places, batch[keys.TOKEN_IDS].shape[1])
        found = np.array([self._slots(corpus, *entry) for entry in entries.tolist()], np.int32)
        return batch | {
            keys.WORD_STARTS: starts,
            keys.WORD_ENDS: ends,
            keys.WORD_MASK: mask,
            keys.START_LABELS: found[:, 0],
            keys.END_LABELS: found[:, 1],
        }

    def _slots(self, rows: TokenisedRows, row: int, start: int, end: int) -> tuple[int, int]:
        """Slots of the answer's first and last word, from 1; 0 if it is not in the window."""
        answers = json.loads(rows.answers[row] or "[]")
        if not answers:
            return 0, 0
        first, text = answers[0]
        touched = words_of_span(word_places(rows.passage(row)), first, first + len(text))
        words = self.passages.words(rows, row, start, end)
        begin, behind = np.searchsorted(words, touched).tolist()
        if touched[0] < start or touched[1] > end or behind <= begin:
            return 0, 0
        return begin + 1, behind

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _SpanExtractionScorer:
        """The head: one dense layer with two outputs."""
        shared = shared_tokens(self.shared_tokens, network, self.context)
        return _SpanExtractionScorer(network, self.dropout, shared)

    def served(self) -> dict[str, Any]:
        """What a served model has to know of the head."""
        return {
            "length": self.context.sequence_length,
            "stride": self.passages.stride,
            "longest_answer": self.longest_answer,
            "no_answer_threshold": self.no_answer_threshold,
            "may_be_nothing": bool(self.context.label_names),
        }

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The best part of the passage, or none; the details have the score of "no answer"."""
        best, probability, ahead = self._best(rows, row, outputs, self.no_answer_threshold)
        return Answer(_said(best), probability, {"no_answer": ahead})

    def thresholds(
        self, rows: TokenisedRows, outputs: Sequence[Sequence[Mapping[str, np.ndarray]]]
    ) -> Iterator[tuple[float, list[str]]]:
        """Thresholds between "never an answer" and "always", with the answers to all rows.

        They lie halfway between rows, a hundred at most (SQuAD 2.0's script tries every row).
        """
        found = [self._best(rows, row, own, np.inf) for row, own in enumerate(outputs)]
        said = [_said(best) for best, _, _ in found]
        if not self.context.label_names:  # every question gets an answer
            yield 0.0, said
            return
        ahead = np.array([nats for _, _, nats in found])
        steps = np.unique(np.quantile(ahead, np.linspace(0, 1, 100), method="nearest"))
        middles = (steps[1:] + steps[:-1]) / 2
        for threshold in [float(steps[0]) - 1.0, *middles.tolist(), float(steps[-1])]:
            none = (ahead > threshold).tolist()
            yield threshold, ["[]" if no else part for no, part in zip(none, said, strict=True)]

    def _best(
        self,
        rows: TokenisedRows,
        row: int,
        outputs: Sequence[Mapping[str, np.ndarray]],
        threshold: float,
    ) -> tuple[list[list[Any]], float, float]:
        """What `best_part` finds in a row."""
        windows = self.passages.windows(rows, row)
        text = rows.passage(row)
        places = word_places(text)
        found: list[Window] = []
        for window, entry in zip(windows, outputs, strict=True):
            words = self.passages.words(rows, row, *window)
            starts, ends = (
                np.asarray(entry[name])[: len(words) + 1]
                for name in (keys.START_LOGITS, keys.END_LOGITS)
            )
            found.append((words, starts, ends))
        settings = self.served()
        return best_part(
            found,
            most_context(windows, len(places)),
            places,
            text,
            longest=settings["longest_answer"],
            threshold=threshold,
            may_be_nothing=settings["may_be_nothing"],
        )


def _said(best: list[list[Any]]) -> str:
    return json.dumps(best, ensure_ascii=False)


class _SpanExtractionScorer(ScorerLayer):
    """Logits of start and end for each word; the loss is the mean of both."""

    def __init__(self, network: Any, dropout: float, shared: SharedTokens | None):
        dtype = network.dtype_policy.name
        super().__init__(name="span_extraction", dtype=dtype, autocast=False)
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")
        self.output_projection = projection(2, name="output", dtype=dtype)
        self.output_projection.build((None, None, network.hidden_dim))
        self.shared_tokens = shared
        if shared is not None:
            shared.build()
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss, share of correct borders, and the logits (B, T + 1); slot 0 is no answer."""
        sequence = outputs[keys.SEQUENCE_OUTPUT]
        unused = (1.0 - ops.cast(batch[keys.WORD_MASK], "float32")) * NOT_A_WORD
        logits = []
        for side, name in enumerate((keys.WORD_STARTS, keys.WORD_ENDS)):
            first = ops.zeros_like(batch[name][:, :1])
            positions = ops.concatenate([first, batch[name]], axis=1)
            words = ops.cast(gather_positions(sequence, positions), "float32")
            scores = self.output_projection(self.dropout(words, training=training))
            scores = ops.cast(scores[:, :, side], "float32")
            logits.append(ops.concatenate([scores[:, :1], scores[:, 1:] + unused], axis=1))
        predictions = {keys.START_LOGITS: logits[0], keys.END_LOGITS: logits[1]}
        if keys.START_LABELS not in batch:
            return {}, predictions
        weights = self.weighted(batch, ops.ones_like(unused[:, 0]))
        sides = [
            cross_entropy(scores, batch[name], weights)
            for scores, name in zip(logits, self.targets, strict=True)
        ]
        return {
            name: (sides[0][name][0] + sides[1][name][0], 2.0 * sides[0][name][1])
            for name in ("loss", "accuracy")
        }, predictions

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Symmetric divergence of the distributions of start and end, the mean of both."""
        weights = batch[keys.ROW_WEIGHTS]
        sides = [
            symmetric_kl(first[name], second[name], weights)
            for name in (keys.START_LOGITS, keys.END_LOGITS)
        ]
        return sides[0][0] + sides[1][0], 2.0 * sides[0][1]

    targets = SpanExtraction.targets
