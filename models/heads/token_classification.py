"""Tagging of words, for entities and other spans of a text; with a CRF if asked.

A tag is predicted from the first token of each word. A text that is too long is read in several
windows, each word in the window where it has the most context. The tags follow a scheme (IOB2 or
BIOES), and an answer is the spans they stand for.

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 5.3 (without a CRF); with a CRF: Lample et al. 2016,
    arXiv 1603.01360, 2.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError, check_known
from models import features as keys
from models.inputs.passages import Passages, slots, word_places, words_of_span
from models.keras_ops import ops
from models.layers.class_weights import CLASS_WEIGHTS, balanced, weights_of
from models.layers.crf import LinearChainCRF
from models.layers.divergence import symmetric_kl
from models.layers.gather import gather_positions
from models.layers.loss import cross_entropy
from models.layers.projection import projection
from models.layers.scorer import Scored, ScorerLayer
from models.protocols import Answer, Batch, Context, Index, TokenisedRows
from models.served.tags import SCHEMES, allowed, likeliest_tags, tag_names, tagged, tags_of
from models.served.windows import most_context

NEEDS = ()
PROVIDES = ()
CHOOSES = 2
PREPARES = False
ANSWERS = "spans"
READS_WORDS = True
EXCLUSIVE = {("class_weights", "crf"): "a CRF's likelihood is of all tags of a text together"}


class TokenClassification:
    """Both halves of tagging.

    Args:
        context: The stage's constants, with the types of spans.
        crf: Score neighbouring tags together and allow legal sequences only.
        class_weights: ``none``, or ``balanced`` to weight every tag by the inverse of its frequency
            in the training rows' windows, `O` among them. Not with `crf`.
        scheme: ``iob2`` or ``bioes``.
        dropout: Dropout rate of the word vectors, 0-1.
        stride: Tokens from the start of a window to that of the next; None for half a window.

    Raises:
        RecipeError: The training rows have no spans, or `class_weights` is asked with `crf`.
        UnknownNameError: `scheme` or `class_weights` is unknown.
    """

    chooses = CHOOSES
    targets = (keys.TAG_LABELS,)

    def __init__(
        self,
        context: Context,
        *,
        crf: bool = False,
        class_weights: str = "none",
        scheme: str = "iob2",
        dropout: float = 0.1,
        stride: int | None = None,
    ):
        check_known("head.token_classification.scheme", scheme, "a tag scheme", SCHEMES)
        place = "head.token_classification.class_weights"
        check_known(place, class_weights, "a kind of class weights", CLASS_WEIGHTS)
        if crf and class_weights != "none":
            raise RecipeError(
                f"head.token_classification.class_weights: expected none with crf, got"
                f" {class_weights}: {EXCLUSIVE['class_weights', 'crf']}; leave one of them out"
            )
        if not context.label_names:
            raise RecipeError("head.token_classification: the training rows have no spans at all")
        self.context = context
        self.scheme = scheme
        self.crf = crf
        self.class_weights = class_weights
        self.dropout = dropout
        self.tags = tag_names(context.label_names, scheme)
        self.passages = Passages(context, stride)

    def index(self, corpus: TokenisedRows, rng: np.random.Generator) -> Index:
        """Every window of every row, in order."""
        return self.passages.index(corpus)

    def segments(
        self, corpus: TokenisedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Windows, where their words start, and the tag of each word."""
        batch, places = self.passages.segments(corpus, entries)
        positions, _, _ = slots(places, batch[keys.TOKEN_IDS].shape[1])
        labels = np.full_like(positions, -1)
        for place, window in enumerate(entries.tolist()):
            own = self._labels(corpus, *window)
            labels[place, : len(own)] = own
        return batch | {
            keys.WORD_STARTS: positions,
            keys.TAG_LABELS: labels,
        }

    def _labels(self, rows: TokenisedRows, row: int, start: int, end: int) -> list[int]:
        """The number of each word's tag, -1 for one of no known type; none without an answer."""
        if not rows.answers[row]:
            return []
        number = {tag: i for i, tag in enumerate(self.tags)}
        return [number.get(tag, -1) for tag in self._tags(rows, row, start, end)]

    def _tags(self, rows: TokenisedRows, row: int, start: int, end: int) -> list[str]:
        """The correct tag of each word of a window that has tokens.

        A span that ends inside a word takes all of it. A span that reaches beyond the window begins
        or ends at its border, so that the tags are legal.
        """
        places = word_places(rows.passage(row))
        words = self.passages.words(rows, row, start, end)
        spans = []
        for first, last, kind in json.loads(rows.answers[row]):
            touched = words_of_span(places, first, last)
            spans.append((*np.searchsorted(words, touched).tolist(), kind))
        return tags_of(spans, len(words), self.scheme)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _TokenClassificationScorer:
        """The head: dropout and one dense layer, and a CRF if asked."""
        crf = LinearChainCRF(*allowed(self.tags, self.scheme), name="crf") if self.crf else None
        tag_weights = self._balanced() if self.class_weights == "balanced" else None
        return _TokenClassificationScorer(network, len(self.tags), self.dropout, crf, tag_weights)

    def _balanced(self) -> np.ndarray:
        """(G,) weights of the tags; none without training rows."""
        rows = self.context.rows
        if rows is None:
            return np.zeros(0, np.float32)
        counts = np.zeros(len(self.tags), np.int64)
        for window in self.passages.index(rows).entries.tolist():
            own = np.array(self._labels(rows, *window), np.int64)
            counts += np.bincount(own[own >= 0], minlength=len(counts))
        return balanced(counts)

    def served(self) -> dict[str, Any]:
        """What a served model has to know of the head."""
        return {
            "tags": list(self.tags),
            "room": self.context.sequence_length - 2,
            "stride": self.passages.stride,
        }

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The spans of a row; the probability is that of all tags together."""
        windows = self.passages.windows(rows, row)
        places = word_places(rows.passage(row))
        found: list[tuple[np.ndarray, list[str]]] = []
        total = 0.0
        for window, entry in zip(windows, outputs, strict=True):
            words = self.passages.words(rows, row, *window)
            logits = np.asarray(entry[keys.TAG_LOGITS])[: len(words)]
            tags, log_probability = likeliest_tags(logits, entry.get(keys.TAG_TRANSITIONS))
            found.append((words, [self.tags[tag] for tag in tags.tolist()]))
            total += log_probability
        spans = tagged(found, most_context(windows, len(places)), places)
        return Answer(json.dumps(spans, ensure_ascii=False), float(np.exp(total)))


class _TokenClassificationScorer(ScorerLayer):
    """One logit per tag from the first token of each word; losses are nats per word."""

    def __init__(
        self,
        network: Any,
        num_tags: int,
        dropout: float,
        crf: LinearChainCRF | None,
        tag_weights: np.ndarray | None,
    ):
        dtype = network.dtype_policy.name
        super().__init__(name="token_classification", dtype=dtype, autocast=False)
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")
        self.output_projection = projection(num_tags, name="output", dtype=dtype)
        self.crf = crf
        self.tag_weights = tag_weights
        self.output_projection.build((None, None, network.hidden_dim))
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss, accuracy, and the logits (B, T, G); without labels, only the logits."""
        words = gather_positions(outputs[keys.SEQUENCE_OUTPUT], batch[keys.WORD_STARTS])
        words = self.dropout(ops.cast(words, "float32"), training=training)
        logits = ops.cast(self.output_projection(words), "float32")  # (B, T, G)
        predictions = {keys.TAG_LOGITS: logits}
        if self.crf is not None:
            pairs, first, last = self.crf.scores()
            table = ops.concatenate([pairs, first[None], last[None]], axis=0)[None]  # (1, G + 2, G)
            predictions[keys.TAG_TRANSITIONS] = table + ops.zeros_like(logits[:, :1, :1])
        if keys.TAG_LABELS not in batch:
            return {}, predictions
        labels = batch[keys.TAG_LABELS]
        weights = ops.cast(labels >= 0, "float32")
        weights = self.weighted(batch, weights)
        known = ops.maximum(labels, 0)
        scores = cross_entropy(logits, known, weights)
        if self.crf is not None:
            likelihood = self.crf.log_likelihood(logits, known, weights)
            scores["loss"] = (-ops.sum(likelihood), ops.sum(weights))
        if self.tag_weights is not None:
            own = weights_of(known, self.tag_weights, "head.token_classification.class_weights")
            scores["loss"] = cross_entropy(logits, known, weights * own)["loss"]
        return scores, predictions

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Symmetric divergence of each word's tags, before a CRF."""
        known = ops.cast(batch[keys.TAG_LABELS] >= 0, "float32")
        weights = known * batch[keys.ROW_WEIGHTS][:, None]
        return symmetric_kl(first[keys.TAG_LOGITS], second[keys.TAG_LOGITS], weights)
