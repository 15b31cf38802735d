"""Causal language modelling: predict each token from those before it.

    token_ids   [CLS]  in     the   beginning  [SEP]  a
    target       in    the  beginning  [SEP]    a     (next window's first)

The loss is the mean cross-entropy over all tokens after the first. The output matrix is the
network's token embedding, without a bias.

Reference:
    Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", eq. 1;
    beside a head, eq. 5 (L1, weighted by λ).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.decoding.prompting import Prompting, going_on
from models.decoding.reader import Reading
from models.inputs.segments import empty_rows
from models.inputs.stream import Streams
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.scorer import Scored, ScorerLayer
from models.layers.slices import part
from models.layers.token_prediction import TokenOutput
from models.protocols import Batch, Context, Index, TokenisedCorpus

NEEDS = ("causal",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
MEASURED = {}
PREDICTS_ENDS = "all"
CONTINUES = True
ANSWERS_PROMPTS = True
KEEPS_INPUT = True
WRITES = True


class CausalLM(Windows):
    """Both halves of causal language modelling.

    If no other objective chooses the segments, rows are full windows over the corpus: [CLS], then
    the text, with [SEP] after each document and nowhere else. So every token of the text and every
    end of a document is predicted once a pass; the last window may repeat some, to be full.

    Where the network remembers the rows before, rows are the stream of [CLS] document [SEP] itself,
    cut every T tokens, and the last token of a row predicts the first of the next one. No [CLS] is
    predicted.

    Beside a head, the row's own tokens are predicted. GPT means over each row, then over rows; here
    the mean is over the tokens of a batch.

    Args:
        context: The stage's constants.
        across_documents: Whether a row continues with the next document where one ends.

    Raises:
        RecipeError: Rows of single documents, for a network that remembers the rows before.
    """

    chooses = CHOOSES
    closed = False

    def __init__(self, context: Context, *, across_documents: bool = True):
        if context.remembers and not across_documents:
            raise RecipeError(
                "objectives.causal_lm.across_documents: expected true for a network that remembers"
                " the rows before, whatever document they are of, got false; leave it out, or set"
                " size.memory_length: 0"
            )
        self.context = context
        self.across_documents = across_documents
        self._streams = Streams(context)

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Full windows, or the stream cut into rows."""
        if not self.context.remembers:
            return super().index(corpus, rng)
        return self._streams.of(corpus).rows(self.context.sequence_length)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The rows; of a stream with the token after each, (B, T)."""
        if not self.context.remembers:
            return super().segments(corpus, entries, rng)
        batch = empty_rows(len(entries), self.context)
        labels = np.zeros_like(batch[keys.TOKEN_IDS])
        weights = np.zeros(labels.shape, np.float32)
        stream, length = self._streams.of(corpus), self.context.sequence_length
        for row, start in enumerate(entries.tolist()):
            ids, starts = stream.read(start, length + 1)
            end = len(ids) - 1
            batch[keys.TOKEN_IDS][row, :end], labels[row, :end] = ids[:-1], ids[1:]
            batch[keys.UNIT_STARTS][row, :end] = starts[:-1]
            batch[keys.PADDING_MASK][row, :end] = 1
            weights[row, :end] = ~stream.begins(start + 1, end)
        return batch | {keys.NEXT_LABELS: labels, keys.NEXT_WEIGHTS: weights}

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add the next token of each position and its loss weight, (B, T - 1)."""
        if keys.NEXT_LABELS in batch:
            return batch
        real = batch[keys.PADDING_MASK]
        return batch | {
            keys.NEXT_LABELS: batch[keys.TOKEN_IDS][..., 1:],
            # Nothing is predicted from padding, which may stand on the left.
            keys.NEXT_WEIGHTS: (real[..., 1:] * real[..., :-1]).astype(np.float32),
        }

    def attach(self, network: Any) -> _CausalLMScorer:
        """A scorer without variables: the token embedding makes the predictions."""
        return _CausalLMScorer(network)

    def prompting(self, network: Any, scorer: Any) -> Prompting:
        """A text goes on, up to the end of its document."""
        return going_on(Reading(network, scorer), self.context.tokenizer, ends=True)


class _CausalLMScorer(ScorerLayer):
    """Scores every position but the last."""

    def __init__(self, network: Any):
        super().__init__(name="causal_lm", dtype=network.dtype_policy.name, autocast=False)
        self._output = TokenOutput(network)
        self.built = True

    def logits(self, hidden: Any, kernel: Any = None) -> Any:
        """(…, D) hidden states → (…, V) float32 logits, with `kernel` where it is at hand."""
        return self._output.logits(hidden, kernel)

    def kernel(self) -> Any:
        """The output matrix, (D, V)."""
        return self._output.kernel()

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy of the next token, and its logits (B, T - 1, V)."""
        hidden = outputs[keys.SEQUENCE_OUTPUT]
        if keys.NEXT_LABELS not in batch:
            return {}, {keys.TOKEN_LOGITS: self.logits(hidden[:, :-1])}
        labels, weights = batch[keys.NEXT_LABELS], batch[keys.NEXT_WEIGHTS]
        # After a row's text a head that writes reads its target, which it scores itself.
        hidden = part(hidden, 0, ops.shape(labels)[-1])
        weights = self.weighted(batch, weights)
        if len(labels.shape) == 3:  # a head reads each of a row's texts by itself, (B, C, T)
            labels = ops.reshape(labels, (-1, ops.shape(labels)[-1]))
            weights = ops.reshape(weights, (-1, ops.shape(weights)[-1]))
        scores = self._output.scores(hidden, labels, weights, training)
        return scores, {keys.TOKEN_LOGITS: self.logits(hidden)}
