"""Masked language modelling: corrupt some tokens, predict the original ones.

A share of a row's ordinary tokens is chosen. By default, 80 % of these become [MASK], 10 % a random
ordinary token, and 10 % stay. The loss is the mean cross-entropy at the chosen positions. The
output matrix is tied to the network's token embedding.

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 3.1 task 1. Whole words: Cui et al. 2019,
    arXiv 1906.08101. N-grams: Lan et al. 2020, arXiv 1909.11942. Spans: Joshi et al. 2020,
    arXiv 1907.10529. Phrases and entities: Sun et al. 2019, arXiv 1904.09223.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, UnknownNameError
from models import features as keys
from models.inputs import noise
from models.inputs.mask_token import check_mask
from models.inputs.windows import Windows
from models.layers.masked_tokens import MaskedTokens
from models.protocols import Batch, Context

NEEDS = ("bidirectional",)
PROVIDES = ("token_logits",)
CHOOSES = 1
PREPARES = False
HIDES_TOKENS = True
NEEDS_MASK = ("mask_share",)
# Held-out loss is measured with [MASK] only. Tokens that stay can be predicted by copying, which
# lowers the loss to half a nat below the unigram loss without any use of context.
MEASURED = {"mask_share": 1.0, "random_share": 0.0}
CONTINUES = True
UNITS = ("token", "word", "ngram", "span", "phrase", "entity")
RANDOM_FROM = ("vocabulary", "text")
# Flags in `unit_starts` for units other than words.
_MADE_OF = {"phrase": keys.PHRASE, "entity": keys.ENTITY}


class MaskedLM(Windows):
    """Both halves of masked language modelling.

    If no other objective chooses the segments, rows are full windows over the corpus, with
    documents joined by [SEP], so that there is no padding.

    Args:
        context: The stage's constants.
        rate: Share of a row's ordinary tokens to predict, 0-1.
        unit: Unit that is chosen as a whole: ``token``; ``word``; ``ngram``, one to three words
            (ALBERT); ``span``, a geometric number of up to ten words (SpanBERT); ``phrase`` or
            ``entity``, as listed in the recipe's gazetteer, and single words elsewhere (ERNIE
            1.0). A unit longer than the row's budget is skipped; a span is cut.
        mask_share: Share of the chosen tokens that become [MASK], 0-1.
        random_share: Share of the chosen tokens that become a random token, 0-1.
        random_from: Distribution of random tokens: the ``vocabulary``, uniformly (BERT), or the
            ``text`` of the batch, by frequency (SpanBERT uses the frequencies in the corpus, of
            which the batch is a sample).
        across_documents: Whether a row continues with the next document where one ends.
        noise_by_span: Whether all tokens of a span are corrupted in the same way, as in SpanBERT;
            for ``span`` only.

    Raises:
        RecipeError: A share is out of range, or the tokenizer has no [MASK] of its own.
        UnknownNameError: `unit` or `random_from` is unknown.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        rate: float = 0.15,
        unit: str = "token",
        mask_share: float = 0.8,
        random_share: float = 0.1,
        random_from: str = "vocabulary",
        across_documents: bool = True,
        noise_by_span: bool = True,
    ):
        noise.check_shares("masked_lm", rate, mask_share, random_share)
        if unit not in UNITS:
            raise UnknownNameError("objectives.masked_lm.unit", unit, "a unit", UNITS)
        if random_from not in RANDOM_FROM:
            where = "objectives.masked_lm.random_from"
            raise UnknownNameError(where, random_from, "a source of tokens", RANDOM_FROM)
        if mask_share:
            check_mask(context.tokenizer, "objectives.masked_lm")
        self.context = context
        self.rate = rate
        self.unit = unit
        self.mask_share = mask_share
        self.random_share = random_share
        self.random_from = random_from
        self.across_documents = across_documents
        self.noise_by_span = noise_by_span
        self.num_slots = noise.num_slots(rate, context.sequence_length)
        tokenizer = context.tokenizer
        self._ordinary = noise.ordinary_ids(tokenizer.vocabulary_size, tokenizer.special_ids)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Corrupt ``token_ids``; add mask positions, labels and loss weights, (B, M)."""
        tokens = batch[keys.TOKEN_IDS]
        tokenizer = self.context.tokenizer
        may_choose = noise.candidates(tokens, batch[keys.PADDING_MASK], tokenizer.special_ids)
        # SpanBERT's code rounds up, Google's to the nearest number.
        wanted = noise.budget(may_choose, self.rate, self.num_slots, up=self.unit == "span")
        if self.unit == "token":
            chosen = noise.choose_tokens(may_choose, wanted, rng)
        else:
            choose = {"ngram": noise.choose_ngrams, "span": noise.choose_spans}
            starts = self._starts(batch)
            chosen = choose.get(self.unit, noise.choose_units)(may_choose, starts, wanted, rng)
        positions, labels, weights = noise.slots(tokens, chosen, self.num_slots)
        seen = noise.replace(
            tokens,
            chosen,
            tokenizer.mask_id,
            self._drawn_from(tokens, may_choose),
            rng,
            self.mask_share,
            self.random_share,
            by_run=self.unit == "span" and self.noise_by_span,
        )
        return batch | {
            keys.TOKEN_IDS: seen,
            keys.MASK_POSITIONS: positions,
            keys.MASK_LABELS: labels,
            keys.MASK_WEIGHTS: weights,
        }

    def _drawn_from(self, tokens: np.ndarray, may_choose: np.ndarray) -> np.ndarray:
        """Ids to draw random tokens from; the vocabulary also if the batch has no text."""
        return (
            tokens[may_choose]
            if self.random_from == "text" and may_choose.any()
            else self._ordinary
        )

    def _starts(self, batch: Batch) -> np.ndarray:
        """Starts of the units of the chosen kind, (B, T) bool.

        Raises:
            ContractViolation: The corpus was tokenised without such units.
        """
        marked = batch[keys.UNIT_STARTS]
        starts = (marked & _MADE_OF.get(self.unit, keys.WORD)) > 0
        if marked.any() and not starts.any():
            raise ContractViolation(
                f"objectives.masked_lm.unit: {self.unit!r}, but the corpus was tokenised without a "
                "gazetteer; name one in the recipe: `units: {gazetteer: FILE}`"
            )
        return starts

    def attach(self, network: Any) -> MaskedTokens:
        """The head: dense → activation → LayerNorm → tied token embedding and a bias."""
        return MaskedTokens(network, name="masked_lm")
