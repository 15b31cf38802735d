"""Span denoising: hide spans of a text behind a sentinel each, write them down in order (T5).

    text         [CLS]  thank  you  for  inviting  me   to  your  party  [SEP]
    token_ids    [CLS]  thank  you  <0>  me        to   <1>  party  [SEP]
    target       <0>    for    inviting  <1>       your  [SEP]

How many tokens and spans are hidden is fixed by the length of the text, and so is the text's length
by that of the rows: with 15 % and spans of 3 tokens on average, rows of 512 tokens are read of 567
tokens of text, and 114 tokens are written. The loss is the mean cross-entropy over the tokens of
the target. Predictions are made as the network says (`models.layers.token_prediction`).

Reference:
    Raffel et al. 2020, arXiv 1910.10683, 3.1.4 and 3.3.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fourstage.errors import RecipeError, UnknownNameError
from models import features as keys
from models.decoding.prompting import Prompting
from models.decoding.recurrent import reading_apart
from models.decoding.settings import Generation
from models.inputs.blanks import around_blanks, joined
from models.inputs.spans import filled, hidden_spans, longest_text, span_numbers, with_sentinels
from models.inputs.windows import document_index, windows
from models.layers.target_scorer import TargetScorer
from models.protocols import Batch, Context, Index, TokenisedCorpus

NEEDS = ("encoder_decoder",)
PROVIDES = ()
CHOOSES = 1
PREPARES = True
ALONE = True
WRITES = True
# Held-out loss is that of the hidden tokens: which sentinel comes next is known without the text.
MEASURED = {"rate": 0.15, "mean_length": 3.0, "scored": "hidden"}
CONTINUES = True
SCORED = ("all", "hidden")
HIDES_SPANS = ("rate", "mean_length")


class SpanDenoising:
    """Both halves of span denoising.

    Texts are windows within documents that are longer than the rows, since a span becomes a single
    token. A text of one token is left as it is and not scored.

    Args:
        context: The stage's constants.
        rate: Share of a text's tokens to hide, 0-1.
        mean_length: Mean tokens of a span, 1 or more.
        scored: Tokens that count in the loss: ``all`` of the target, or those that were ``hidden``.

    Raises:
        RecipeError: A setting is out of range, or there are fewer sentinels than spans in a row.
        UnknownNameError: `scored` is unknown.

    Differs from the paper:
        Rows begin with [CLS], as all rows here. The authors join documents; a text here is of one.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        rate: float = 0.15,
        mean_length: float = 3.0,
        scored: str = "all",
    ):
        where = "objectives.span_denoising"
        if not 0.0 < rate < 1.0:
            raise RecipeError(f"{where}.rate: expected a number in (0, 1), got {rate}")
        if not 1.0 <= mean_length < context.sequence_length:
            raise RecipeError(
                f"{where}.mean_length: expected 1 to {context.sequence_length} tokens, got"
                f" {mean_length}"
            )
        if scored not in SCORED:
            raise UnknownNameError(f"{where}.scored", scored, "a choice of tokens", SCORED)
        self.context = context
        self.rate, self.mean_length, self.scored = rate, mean_length, scored
        self.numbers = longest_text(context.sequence_length - 2, rate, mean_length)
        sentinels = len(context.tokenizer.sentinel_ids)
        if sentinels < self.numbers.spans:
            raise RecipeError(
                f"{where}: a row of {context.sequence_length} tokens has {self.numbers.spans}"
                f" hidden spans, but the tokenizer has {sentinels} sentinels; learn one with more"
                " (`tokenizer: {sentinels: …}`) or shorten the rows"
            )
        self._whole = replace(context, sequence_length=self.numbers.text + 2)

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Windows within documents; lengths count what is read and what is written."""
        index = document_index(corpus, self._whole.sequence_length)
        texts, which = np.unique(index.lengths - 2, return_inverse=True)
        return replace(index, lengths=np.array([self._tokens(n) for n in texts.tolist()])[which])

    def _tokens(self, text: int) -> int:
        """Tokens read and written of a text, with special tokens."""
        numbers = span_numbers(text, self.rate, self.mean_length) if text > 1 else None
        return 5 if numbers is None else numbers.seen + 2 + numbers.written + 1

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The windows before noise, longer than a row."""
        return windows(corpus, entries, self._whole, joined=False)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Hide spans of ``token_ids``; what was hidden becomes the target."""
        tokenizer, length = self.context.tokenizer, self.context.sequence_length
        clean, real = batch[keys.TOKEN_IDS], batch[keys.PADDING_MASK]
        ids = np.full((len(clean), length), tokenizer.pad_id, np.int32)
        mask, segments = np.zeros_like(ids), np.zeros_like(ids)
        labels = np.full((len(clean), self.numbers.written + 1), tokenizer.pad_id, np.int32)
        target, written = labels.copy(), np.zeros_like(labels)
        weights = np.zeros(labels.shape, np.float32)
        for row, size in enumerate(real.sum(axis=1).tolist()):
            text = clean[row, 1 : size - 1]  # between [CLS] and [SEP]
            hidden = np.zeros(len(text), bool)
            if len(text) > 1:
                hidden = hidden_spans(span_numbers(len(text), self.rate, self.mean_length), rng)
            seen = with_sentinels(text, hidden, tokenizer.sentinel_ids)
            said = with_sentinels(text, ~hidden, tokenizer.sentinel_ids)
            stop, end = 1 + len(seen), len(said)
            ids[row, 0], ids[row, 1:stop], ids[row, stop] = clean[row, 0], seen, tokenizer.sep_id
            mask[row, : stop + 1] = 1
            target[row, 0], target[row, 1 : end + 1] = tokenizer.sep_id, said
            labels[row, :end], labels[row, end] = said, tokenizer.sep_id
            written[row, : end + 1] = 1
            if self.scored == "hidden":
                weights[row, :end] = ~np.isin(said, tokenizer.sentinel_ids)
            else:
                weights[row, : end + 1] = hidden.any()
        return batch | {
            keys.TOKEN_IDS: ids,
            keys.SEGMENT_IDS: segments,
            keys.PADDING_MASK: mask,
            keys.TARGET_IDS: target,
            keys.TARGET_MASK: written,
            keys.TARGET_LABELS: labels,
            keys.TARGET_WEIGHTS: weights,
        }

    def attach(self, network: Any) -> TargetScorer:
        """A scorer without variables: the network's output matrix makes the predictions."""
        return TargetScorer(network, "span_denoising", self.context.tokenizer)

    def prompting(self, network: Any, scorer: Any) -> Prompting:
        """The blanks of a text, a sentinel each, are written down in order."""
        tokenizer = self.context.tokenizer
        sentinels = tokenizer.sentinel_ids

        def prompt(text: str) -> list[int]:
            parts = around_blanks(tokenizer, text)
            blanks = len(parts) - 1
            if blanks > len(sentinels):
                raise ValueError(
                    f"{blanks} blanks, but the tokenizer has {len(sentinels)} sentinels, one for"
                    " each; leave fewer"
                )
            return [tokenizer.cls_id, *joined(parts, sentinels[:blanks]), tokenizer.sep_id]

        return Prompting(
            reading=reading_apart(network, scorer, scorer.begin),
            prompt=prompt,
            never={*tokenizer.special_ids} - {tokenizer.sep_id, *sentinels},
            whole=lambda prompt, tokens: filled(prompt[1:-1], tokens, sentinels),
            defaults=Generation(max_new_tokens=self.numbers.written + 1),
        )
