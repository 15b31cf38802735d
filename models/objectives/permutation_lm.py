"""Permutation language modelling: predict tokens one after another in a random order.

The tokens stay where they are; the order is a mask. Each token has a place in the factorisation. It
sees tokens of no later place, and the query stream, which predicts, those of earlier places:

    tokens      the   cat   sat   on    the   mat
    place       0     2     0     0     1     0
    predicted         cat               the
    seen        the   ?     sat   on    the   mat         cat, second in the order
                the         sat   on    ?     mat         the, first

One token in six is predicted; all others share the first place. So the loss is Σ over the predicted
of -log p(token | its position, tokens of earlier places): the chain rule for this order.

Reference:
    Yang et al. 2019, arXiv 1906.08237, 2.2 to 2.4 and A.4; the authors' code, zihangdai/xlnet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.decoding.prompting import Prompting, going_on
from models.decoding.reader import Reading
from models.inputs import noise
from models.inputs.segments import empty_rows, room_for
from models.inputs.stream import Stream, Streams
from models.layers.scorer import Scored, ScorerLayer
from models.layers.token_scores import kernel_of, tied_logits, token_scores
from models.protocols import Batch, Context, Index, TokenisedCorpus

NEEDS = ("two_streams",)
PROVIDES = ()
CHOOSES = 2
PREPARES = False
HIDES_TOKENS = True
WRITES = True
MEASURED = {}
CONTINUES = True
ROW = np.dtype([("start", np.int64), ("cut", np.int64), ("other", np.int64)])
GOES_ON = -1  # B follows A


class PermutationLM:
    """Both halves of permutation language modelling.

    A row is [CLS] A [SEP] B [SEP]. B follows A in the corpus or, by chance, comes from elsewhere in
    it. Where the network remembers the rows before, the first half of a row is running text that A
    follows, and the next row begins behind that half: its tokens alone are remembered.

        running text (T / 2)      [CLS] A [SEP] B [SEP] (T / 2)
                                  running text of the next row …

    Each half has a factorisation of its own, and the first half does not see the second. What is
    too short for one more row at the corpus's end is not read.

    Args:
        context: The stage's constants.
        longest_span: Tokens of the longest span that is predicted, from 1 (`noise`).
        spacing: Tokens of context for each that is predicted: one token in `spacing` is.
        random_share: Share of rows whose B comes from elsewhere, 0-1.

    Raises:
        RecipeError: A setting is out of range, or a row has no room for A and B.

    Differs from the paper:
        Rows begin with [CLS], as everywhere here; the paper's end with it. A and B are cut at any
        token, there at the end of a sentence. Special tokens are seen by all and see what context
        sees, as in the second version of the authors' code; in the first they have places among the
        predicted tokens. No text is read backwards (their ``bi_data``).
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        longest_span: int = 5,
        spacing: int = 6,
        random_share: float = 0.5,
    ):
        where = "objectives.permutation_lm"
        for name, value in (("longest_span", longest_span), ("spacing", spacing)):
            if value < 1:
                raise RecipeError(f"{where}.{name}: expected a whole number from 1, got {value}")
        if not 0.0 <= random_share <= 1.0:
            raise RecipeError(
                f"{where}.random_share: expected a share from 0 to 1, got {random_share}"
            )
        self.context = context
        self.longest_span = longest_span
        self.spacing = spacing
        self.random_share = random_share
        self.running = context.sequence_length // 2 if context.remembers else 0
        self.room = room_for(context.sequence_length - self.running, 3, least=2)
        self._streams = Streams(context)

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Rows in the corpus's order, with A's length and B's start drawn anew in each pass."""
        total = len(self._streams.of(corpus))
        room = min(self.room, total - self.running)
        if room < 2:
            raise ContractViolation(
                f"objectives.permutation_lm: expected {self.running + 2} tokens of text or more for"
                f" rows of {self.context.sequence_length}, got {total}; add text or shorten the"
                " rows"
            )
        starts = np.arange(0, total - self.running - room + 1, self.running or room)
        entries = np.zeros(len(starts), ROW)
        entries["start"] = starts
        entries["cut"] = rng.integers(1, room, len(starts))
        elsewhere = rng.integers(0, total - (room - entries["cut"]) + 1)
        elsewhere[rng.random(len(starts)) >= self.random_share] = GOES_ON
        entries["other"] = elsewhere
        lengths = np.full(len(starts), self.running + room + 3, np.int64)
        return Index(entries, lengths, details={"random": float((elsewhere >= 0).mean())})

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The rows before any is predicted; B and its [SEP] are segment 1."""
        batch = empty_rows(len(entries), self.context)
        stream = self._streams.of(corpus)
        for row, entry in enumerate(entries):
            self._write(batch, row, stream, *(int(entry[name]) for name in ROW.names or ()))
        if self.context.remembers:
            batch[keys.REMEMBERED] = np.full(len(entries), self.running, np.int32)
        return batch

    def _write(
        self, batch: Batch, row: int, stream: Stream, start: int, cut: int, other: int
    ) -> None:
        """Write one row."""
        room = min(self.room, len(stream) - self.running)
        ids, kinds = stream.read(start, self.running + room)
        second = (ids[self.running + cut :], kinds[self.running + cut :])
        if other != GOES_ON:
            second = stream.read(other, room - cut)
        tokenizer, first = self.context.tokenizer, slice(self.running, self.running + cut)
        parts = [
            (ids[: self.running], kinds[: self.running]),
            _special(tokenizer.cls_id),
            (ids[first], kinds[first]),
            _special(tokenizer.sep_id),
            second,
            _special(tokenizer.sep_id),
        ]
        end = sum(len(part) for part, _ in parts)
        batch[keys.TOKEN_IDS][row, :end] = np.concatenate([part for part, _ in parts])
        batch[keys.UNIT_STARTS][row, :end] = np.concatenate([kind for _, kind in parts])
        batch[keys.SEGMENT_IDS][row, self.running + cut + 2 : end] = 1
        batch[keys.PADDING_MASK][row, :end] = 1

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add the places of a factorisation and the tokens to predict, (B, M)."""
        tokens = batch[keys.TOKEN_IDS]
        may_choose = noise.candidates(
            tokens, batch[keys.PADDING_MASK], self.context.tokenizer.special_ids
        )
        length = tokens.shape[1]
        chosen, places, slots = np.zeros_like(may_choose), np.zeros(tokens.shape, np.int32), 0
        for first, last in ((0, self.running), (self.running, length)):
            if first == last:
                continue
            part = slice(first, last)
            most = noise.num_slots(1 / self.spacing, last - first)
            wanted = noise.budget(may_choose[:, part], 1 / self.spacing, most)
            chosen[:, part] = noise.choose_spaced_spans(
                may_choose[:, part],
                wanted,
                rng,
                longest=self.longest_span,
                spacing=self.spacing,
            )
            # All places of the second half are later than those of the first.
            later = length + 1 if first else 0
            places[:, part] = later + factorisation(chosen[:, part], rng)
            slots += most
        positions, labels, weights = noise.slots(tokens, chosen, slots)
        return batch | {
            keys.FACTORISATION: places,
            keys.QUERY_POSITIONS: positions,
            keys.QUERY_LABELS: labels,
            keys.QUERY_WEIGHTS: weights,
        }

    def attach(self, network: Any) -> _PermutationLMScorer:
        """The scorer: the token embedding makes the predictions, with a bias."""
        return _PermutationLMScorer(network)

    def prompting(self, network: Any, scorer: Any) -> Prompting:
        """A text goes on, in the order of reading; no special token was ever predicted."""
        return going_on(Reading(network, scorer), self.context.tokenizer)


def _special(token: int) -> tuple[np.ndarray, np.ndarray]:
    """One special token, and that no unit starts at it."""
    return np.array([token]), np.zeros(1, np.uint8)


def factorisation(chosen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random order of the chosen tokens, as places.

    Args:
        chosen: (B, T) bool, the tokens that are predicted.
        rng: Random generator.

    Returns:
        (B, T) int32: 1, 2, … for the chosen tokens of a row, in random order; 0 for all others.
    """
    order = np.argsort(np.where(chosen, rng.random(chosen.shape), 2.0), axis=1)
    places = np.empty(chosen.shape, np.int32)
    np.put_along_axis(places, order, np.arange(1, chosen.shape[1] + 1, dtype=np.int32)[None], 1)
    return np.where(chosen, places, 0).astype(np.int32)


class _PermutationLMScorer(ScorerLayer):
    """Scores the query stream."""

    def __init__(self, network: Any):
        super().__init__(name="permutation_lm", dtype=network.dtype_policy.name, autocast=False)
        # Wrapped in a function, so that Keras does not track the network's embedding here.
        self._table = lambda: network.token_embedding.embeddings
        self.vocabulary_size = int(self.tied_embedding.shape[0])
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        # The variable's autocast would round it to bfloat16 at every use.
        self.output_bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", name="output_bias", autocast=False
        )
        self.built = True

    @property
    def tied_embedding(self) -> Any:
        """The network's token embedding, used as the output matrix, (V, D)."""
        return self._table()

    def logits(self, hidden: Any, kernel: Any = None) -> Any:
        """(…, D) states of the second stream → (…, V) float32, with `kernel` where at hand."""
        table, bias, dtype = self.tied_embedding, self.output_bias, self.compute_dtype
        return tied_logits(hidden, table, bias, dtype, kernel=kernel)

    def kernel(self) -> Any:
        """The output matrix, (D, V)."""
        return kernel_of(self.tied_embedding, self.compute_dtype)

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy of the predicted tokens, and their logits (B, M, V)."""
        if keys.QUERY_OUTPUT not in outputs:
            return {}, {}
        hidden = outputs[keys.QUERY_OUTPUT]
        predicted = {keys.TOKEN_LOGITS: self.logits(hidden)}
        if keys.QUERY_LABELS not in batch:
            return {}, predicted
        weights = batch[keys.QUERY_WEIGHTS]
        weights = self.weighted(batch, weights)
        table, bias, dtype = self.tied_embedding, self.output_bias, self.compute_dtype
        labels = batch[keys.QUERY_LABELS]
        scores = token_scores(hidden, table, bias, labels, weights, dtype, training=training)
        return scores, predicted
