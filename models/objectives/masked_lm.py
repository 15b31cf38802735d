"""Masked language modelling: hide some tokens, predict what stood there.

Of the tokens of a row that are not special, a share is chosen; of those 80 % become [MASK], 10 % a
random ordinary token, 10 % stay. The loss is the mean cross-entropy at the chosen positions only.
The output matrix is the network's own token table.

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 3.1 task 1. Whole words: Cui et al. 2019,
    arXiv 1906.08101. N-grams: Lan et al. 2020, arXiv 1909.11942. Spans: Joshi et al. 2020,
    arXiv 1907.10529. Phrases and entities: Sun et al. 2019, arXiv 1904.09223.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, RecipeError, UnknownNameError
from models import features as keys
from models.inputs import noise
from models.inputs.windows import Windows
from models.layers.gather import gather_positions
from models.layers.loss import cross_entropy
from models.layers.scorer import ScorerLayer
from models.layers.token_prediction import TokenPrediction
from models.protocols import Batch, Capability, Context

NEEDS = ("bidirectional",)
PROVIDES = ("token_logits",)
CHOOSES = 1
PREPARES = False
# Held-out text is measured with masks alone. Tokens that stay are guessed by copying what is seen,
# which is half a nat under guessing by frequency and says nothing of the text around them.
MEASURED = {"mask_share": 1.0, "random_share": 0.0}
UNITS = ("token", "word", "ngram", "span", "phrase", "entity")
RANDOM_FROM = ("vocabulary", "text")
# What a unit is put together from, as the tokenised corpus says it.
_MADE_OF = {"phrase": keys.PHRASE, "entity": keys.ENTITY}


class MaskedLM(Windows):
    """Both halves of masked language modelling.

    Where no other objective chooses the segments, rows are full windows over the corpus, documents
    joined by [SEP], so that there is no padding.

    Args:
        context: What is fixed for the stage.
        rate: Share of the tokens of a row to predict, 0-1.
        unit: What is chosen as a whole: ``token``; ``word`` with all its pieces; ``ngram``, one to
            three words (ALBERT); ``span``, a geometric number of words up to ten (SpanBERT);
            ``phrase`` and ``entity``, what the recipe's gazetteer calls so, and single words
            elsewhere (ERNIE 1.0). A unit longer than a row's budget is passed over; a span is cut.
        mask_share: Share of the chosen tokens that become [MASK], 0-1.
        random_share: Share of the chosen tokens that become another one, 0-1.
        random_from: What the other one is drawn from: the ``vocabulary``, each entry as likely
            (BERT), or the ``text`` of the batch, as often as it stands there (SpanBERT draws by
            frequency in the corpus, of which the batch is a sample).
        across_documents: Whether a row goes on with the next document where one ends.
        noise_by_span: Whether the tokens of a span become [MASK], others or stay all together, as
            in SpanBERT; for ``span`` only.

    Raises:
        RecipeError: If a share is out of range.
        UnknownNameError: If the unit is unknown.
    """

    needs = frozenset(Capability(name) for name in NEEDS)
    provides = frozenset(Capability(name) for name in PROVIDES)
    chooses = CHOOSES
    prepares = PREPARES

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
        if not 0.0 < rate < 1.0:
            raise RecipeError(f"objectives.masked_lm.rate: expected a number in (0, 1), got {rate}")
        if min(mask_share, random_share) < 0.0 or mask_share + random_share > 1.0:
            raise RecipeError(
                "objectives.masked_lm: mask_share and random_share must not be negative nor exceed "
                f"1 together, got {mask_share} and {random_share}"
            )
        if unit not in UNITS:
            raise UnknownNameError("objectives.masked_lm.unit", unit, "a unit", UNITS)
        if random_from not in RANDOM_FROM:
            where = "objectives.masked_lm.random_from"
            raise UnknownNameError(where, random_from, "a source of tokens", RANDOM_FROM)
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
        """Noise in ``token_ids``; ``mask_positions``, ``mask_labels``, ``mask_weights`` (B, M)."""
        tokens = batch[keys.TOKEN_IDS]
        tokenizer = self.context.tokenizer
        may_choose = noise.candidates(tokens, batch[keys.PADDING_MASK], tokenizer.special_ids)
        # SpanBERT's code rounds up, Google's rounds.
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
        """What a random token is drawn from; the vocabulary where a batch has no text."""
        return (
            tokens[may_choose]
            if self.random_from == "text" and may_choose.any()
            else self._ordinary
        )

    def _starts(self, batch: Batch) -> np.ndarray:
        """Where units of the chosen kind start, (B, T) bool."""
        marked = batch[keys.UNIT_STARTS]
        starts = (marked & _MADE_OF.get(self.unit, keys.WORD)) > 0
        if marked.any() and not starts.any():
            raise ContractViolation(
                f"objectives.masked_lm.unit: {self.unit!r}, but the corpus was tokenised without a "
                "gazetteer; name one in the recipe: `units: {gazetteer: FILE}`"
            )
        return starts

    def attach(self, network: Any) -> _MaskedLMScorer:
        """The head: dense → activation → LayerNorm → the token table and a bias."""
        return _MaskedLMScorer(network)

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[list[int]]:
        """The likeliest token at each predicted position."""
        return np.asarray(outputs[keys.TOKEN_LOGITS]).argmax(axis=-1).tolist()


class _MaskedLMScorer(TokenPrediction, ScorerLayer):
    """Scores the chosen positions only: at 15 % the largest matrix product is a seventh."""

    reads = (keys.MASK_POSITIONS,)

    def __init__(self, network: Any):
        super().__init__(network, name="masked_lm")

    def call(
        self, batch: dict, outputs: dict, training: bool | None = None
    ) -> tuple[dict[str, tuple[Any, Any]], dict]:
        """Loss and accuracy at the chosen positions; nothing where none are given."""
        if keys.MASK_POSITIONS not in batch:
            return {}, {}
        hidden = gather_positions(outputs[keys.SEQUENCE_OUTPUT], batch[keys.MASK_POSITIONS])
        logits = self.logits(hidden, training=training)  # (B, M, V)
        if keys.MASK_LABELS not in batch:
            return {}, {keys.TOKEN_LOGITS: logits}
        weights = batch[keys.MASK_WEIGHTS]
        if keys.ROW_WEIGHTS in batch:
            weights = weights * batch[keys.ROW_WEIGHTS][:, None]
        return (
            cross_entropy(logits, batch[keys.MASK_LABELS], weights),
            {keys.TOKEN_LOGITS: logits},
        )
