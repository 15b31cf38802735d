"""Shuffled token detection: some tokens of a row change places; say which.

Reference:
    Panda et al. 2021, ACL Anthology 2021.naacl-srw.12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.inputs import noise
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.loss import cross_entropy
from models.layers.projection import projection
from models.layers.scorer import Scored, ScorerLayer
from models.protocols import Batch, Context

NEEDS = ("bidirectional",)
PROVIDES = ()
CHOOSES = 1  # plain windows, where no other objective chooses
PREPARES = False

MOVED = "moved"  # (B, T) int32, 1 where another token stood
MOVED_LOGITS = "moved_logits"  # (B, T, 2)


class ShuffledTokens(Windows):
    """Both halves of the objective.

    Args:
        context: What is fixed for the stage.
        rate: Share of the tokens of a row that change places among themselves, 0-1.

    Raises:
        RecipeError: If the rate is out of range.
    """

    chooses = CHOOSES

    def __init__(self, context: Context, *, rate: float = 0.15):
        if not 0.0 < rate < 1.0:
            raise RecipeError(f"objectives.shuffled_tokens.rate: expected 0-1, got {rate}")
        self.context = context
        self.rate = rate

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """The chosen tokens of each row in another order, and where they differ."""
        before = batch[keys.TOKEN_IDS]
        special = self.context.tokenizer.special_ids
        may_choose = noise.candidates(before, batch[keys.PADDING_MASK], special)
        slots = noise.num_slots(self.rate, self.context.sequence_length)
        wanted = noise.budget(may_choose, self.rate, slots)
        chosen = noise.choose_tokens(may_choose, wanted, rng)
        after = before.copy()
        for row, places in zip(after, chosen, strict=True):
            row[places] = rng.permutation(row[places])
        return batch | {keys.TOKEN_IDS: after, MOVED: (after != before).astype(np.int32)}

    def attach(self, network: Any) -> _ShuffledTokensScorer:
        """The head: two scores a token."""
        return _ShuffledTokensScorer(network)


class _ShuffledTokensScorer(ScorerLayer):
    def __init__(self, network: Any):
        dtype = network.dtype_policy.name
        super().__init__(name="shuffled_tokens", dtype=dtype, autocast=False)
        self.output_projection = projection(2, name="output", dtype=dtype)
        self.output_projection.build((None, None, network.hidden_dim))
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy over real tokens."""
        logits = ops.cast(self.output_projection(outputs[keys.SEQUENCE_OUTPUT]), "float32")
        if MOVED not in batch:
            return {}, {MOVED_LOGITS: logits}
        weights = ops.cast(batch[keys.PADDING_MASK], "float32")
        weights = self.weighted(batch, weights)
        return cross_entropy(logits, batch[MOVED], weights), {MOVED_LOGITS: logits}
