"""Text infilling: damage a text, write the whole one (BART).

    token_ids    [CLS]  it   is  _     .  the  _   here  .  [SEP]
    target       the    cat  is  here  .  it   is  late  .  [SEP]

Kinds of noise can be combined; the defaults are BART's: spans of 30 % of the tokens become a [MASK]
each, and all sentences change places (`models.inputs.denoising`). The loss is the mean
cross-entropy over all tokens of the whole text. The output matrix is the network's token embedding,
without a bias.

Reference:
    Lewis et al. 2020, arXiv 1910.13461, 2.2 and 4.1. Sentences are those of the corpus; the authors
    cut at full stops. Their spans are of words; these are of tokens.
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
from models.inputs import denoising
from models.inputs.blanks import around_blanks, joined
from models.inputs.mask_token import check_mask
from models.inputs.segments import sentence_ends_of
from models.inputs.windows import Windows
from models.layers.target_scorer import TargetScorer
from models.protocols import Batch, Context, Index, TokenisedCorpus

NEEDS = ("encoder_decoder",)
PROVIDES = ()
CHOOSES = 1
PREPARES = True
ALONE = True
NEEDS_MASK = ("mask_rate", "infill_rate")
WRITES = True
# Held-out loss is that of the hidden tokens. Most others can be copied, which lowers the loss to
# almost nothing without any knowledge of the language; and an order of sentences is not predicted.
MEASURED = {"permute_rate": 0.0, "scored": "hidden"}
CONTINUES = True
SCORED = ("all", "hidden")
LEAST_MEAN = 0.1  # of the length of spans; nearly all of them would have length 0


class TextInfilling(Windows):
    """Both halves of text infilling.

    Rows are windows within documents, as full as these allow. The kinds of noise act in the order
    of the settings, each on what is left; the share of tokens is rounded up.

    Args:
        context: The stage's constants.
        permute_rate: Share of a row's sentences that change places with each other, 0-1.
        delete_rate: Share of tokens that are left out, 0 to below 1.
        mask_rate: Share of tokens that become a [MASK] each, 0-1.
        infill_rate: Share of tokens in spans, each of which becomes one [MASK], 0-1.
        span_mean: λ of the Poisson distribution of a span's length, 0.1 or more. A span of length 0
            puts a [MASK] in between.
        rotate_rate: Share of rows that begin at a random token, 0-1.
        scored: Tokens that count in the loss: ``all`` of the text, or those that are ``hidden``.

    Raises:
        RecipeError: A share is out of range, nothing is hidden that could be scored, or the
            tokenizer has no [MASK] of its own.
        UnknownNameError: `scored` is unknown.
    """

    chooses = CHOOSES
    across_documents = False

    def __init__(
        self,
        context: Context,
        *,
        permute_rate: float = 1.0,
        delete_rate: float = 0.0,
        mask_rate: float = 0.0,
        infill_rate: float = 0.3,
        span_mean: float = 3.0,
        rotate_rate: float = 0.0,
        scored: str = "all",
    ):
        where = "objectives.text_infilling"
        shares = {
            "permute_rate": permute_rate,
            "delete_rate": delete_rate,
            "mask_rate": mask_rate,
            "infill_rate": infill_rate,
            "rotate_rate": rotate_rate,
        }
        for name, share in shares.items():
            if not 0.0 <= share <= 1.0 or (name == "delete_rate" and share == 1.0):
                raise RecipeError(f"{where}.{name}: expected a share of 0 to 1, got {share}")
        if not span_mean >= LEAST_MEAN:
            raise RecipeError(
                f"{where}.span_mean: expected {LEAST_MEAN} tokens or more, got {span_mean}"
            )
        if scored not in SCORED:
            raise UnknownNameError(f"{where}.scored", scored, "a choice of tokens", SCORED)
        if scored == "hidden" and not delete_rate + mask_rate + infill_rate:
            raise RecipeError(
                f"{where}.scored: hidden, but delete_rate, mask_rate and infill_rate are 0, so that"
                " nothing is hidden; raise one of them"
            )
        if mask_rate + infill_rate:
            check_mask(context.tokenizer, where)
        self.context = context
        self.permute_rate, self.delete_rate, self.mask_rate = permute_rate, delete_rate, mask_rate
        self.infill_rate, self.span_mean = infill_rate, span_mean
        self.rotate_rate, self.scored = rotate_rate, scored

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Windows within documents; lengths count each text twice, as read and as written."""
        index = super().index(corpus, rng)
        return replace(index, lengths=2 * index.lengths - 1)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The windows before noise, and where sentences start in them."""
        batch = super().segments(corpus, entries, rng)
        starts = np.zeros(batch[keys.TOKEN_IDS].shape, np.uint8)
        room = batch[keys.PADDING_MASK].sum(axis=1) - 2
        for row, (document, offset) in enumerate(entries.tolist()):
            borders = sentence_ends_of(corpus, document) - offset
            starts[row, 1 + borders[(borders >= 0) & (borders < room[row])]] = 1
        return batch | {keys.SENTENCE_STARTS: starts}

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Damage ``token_ids``; the whole text becomes the target, (B, T - 1)."""
        tokenizer = self.context.tokenizer
        clean, real = batch[keys.TOKEN_IDS], batch[keys.PADDING_MASK]
        starts = batch.get(keys.SENTENCE_STARTS, np.zeros_like(clean))
        ids, mask = np.full_like(clean, tokenizer.pad_id), np.zeros_like(real)
        target = np.full_like(clean[:, 1:], tokenizer.pad_id)
        labels, written = target.copy(), np.zeros_like(target)
        weights = np.zeros(target.shape, np.float32)
        for row, size in enumerate(real.sum(axis=1).tolist()):
            text = clean[row, 1 : size - 1]  # between [CLS] and the last [SEP]
            end = len(text)
            noisy = self._damaged(text, np.flatnonzero(starts[row, 1 : size - 1]).tolist(), rng)
            stop = 1 + len(noisy)
            ids[row, 0], ids[row, 1:stop], ids[row, stop] = (
                clean[row, 0],
                noisy.ids,
                clean[row, size - 1],
            )
            mask[row, : stop + 1] = 1
            target[row, 0], target[row, 1 : end + 1] = tokenizer.sep_id, text
            labels[row, :end], labels[row, end] = text, tokenizer.sep_id
            written[row, : end + 1] = 1
            weights[row, :end] = noisy.hidden(end) if self.scored == "hidden" else 1.0
            weights[row, end] = self.scored == "all"
        return batch | {
            keys.TOKEN_IDS: ids,
            keys.PADDING_MASK: mask,
            keys.TARGET_IDS: target,
            keys.TARGET_MASK: written,
            keys.TARGET_LABELS: labels,
            keys.TARGET_WEIGHTS: weights,
        }

    def _damaged(
        self, ids: np.ndarray, starts: list[int], rng: np.random.Generator
    ) -> denoising.Damaged:
        """A text with all kinds of noise that are asked for."""
        mask_id, text = self.context.tokenizer.mask_id, denoising.whole(ids)
        if self.permute_rate:
            text = denoising.permute_sentences(text, starts, self.permute_rate, rng)
        if self.delete_rate:
            text = denoising.delete_tokens(text, self.delete_rate, rng)
        if self.mask_rate:
            text = denoising.mask_tokens(text, self.mask_rate, mask_id, rng)
        if self.infill_rate:
            text = denoising.infill(text, self.infill_rate, self.span_mean, mask_id, rng)
        if rng.random() < self.rotate_rate:
            text = denoising.rotate(text, rng)
        return text

    def attach(self, network: Any) -> TargetScorer:
        """A scorer without variables: the token embedding makes the predictions."""
        return TargetScorer(network, "text_infilling", self.context.tokenizer)

    def prompting(self, network: Any, scorer: Any) -> Prompting:
        """The whole of a text with blanks, of any length each, is written."""
        tokenizer = self.context.tokenizer

        def prompt(text: str) -> list[int]:
            parts = around_blanks(tokenizer, text)
            blanks = [tokenizer.mask_id] * (len(parts) - 1)
            return [tokenizer.cls_id, *joined(parts, blanks), tokenizer.sep_id]

        return Prompting(
            reading=reading_apart(network, scorer, scorer.begin),
            prompt=prompt,
            never={*tokenizer.special_ids} - {tokenizer.sep_id},
            whole=lambda _, tokens: tokens,
            defaults=Generation(max_new_tokens=self.context.sequence_length - 1),
        )
