"""Word structure prediction: some triples of tokens are shuffled, predict their original order.

A share of the triples of consecutive ordinary tokens that masked_lm did not choose is shuffled.
masked_lm's head predicts the original tokens, at positions appended to its slots.

Reference:
    Wang et al. 2020 (StructBERT), arXiv 1908.04577, 2.2.1 (Eq. 1, K = 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.inputs import noise
from models.layers.gather import gather_positions
from models.layers.loss import cross_entropy
from models.layers.scorer import Scored, ScorerLayer
from models.protocols import Batch, Context

NEEDS = ("bidirectional", "token_logits")
PROVIDES = ()
CHOOSES = 0
PREPARES = False

SHUFFLED_SLOTS = "shuffled_slots"  # (B, S) int32, masked_lm's slots that are theirs
SHUFFLED_LABELS = "shuffled_labels"  # (B, S) int32, original tokens of these slots
SHUFFLED_WEIGHTS = "shuffled_weights"  # (B, S) float32, 0 for an unused slot


class WordStructure:
    """Both halves of word structure prediction; masked_lm runs before it and shares its head.

    Args:
        context: The stage's constants.
        rate: Shuffled triples per position where a triple can start, 0-1: one with three ordinary
            tokens that masked_lm did not choose.

    Raises:
        RecipeError: The rate is out of range.
    """

    chooses = CHOOSES

    def __init__(self, context: Context, *, rate: float = 0.05):
        if not 0.0 < rate < 1.0:
            raise RecipeError(
                f"objectives.word_structure.rate: expected a number in (0, 1), got {rate}"
            )
        self.context = context
        self.rate = rate
        self.num_triples = noise.num_slots(rate, context.sequence_length)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Shuffle triples in ``token_ids``; append their positions to masked_lm's slots."""
        if keys.MASK_POSITIONS not in batch:
            raise RecipeError(
                "objectives: word_structure shuffles what masked_lm left alone; name masked_lm "
                "before it"
            )
        tokens = batch[keys.TOKEN_IDS]
        free = noise.candidates(
            tokens, batch[keys.PADDING_MASK], self.context.tokenizer.special_ids
        )
        rows, slots = np.nonzero(batch[keys.MASK_WEIGHTS])
        free[rows, batch[keys.MASK_POSITIONS][rows, slots]] = False
        first = noise.choose_triples(tokens, free, self.rate, self.num_triples, rng)
        positions, after, weights = noise.shuffle_triples(tokens, first, self.num_triples, rng)
        seen = tokens.copy()
        row, slot = np.nonzero(weights)
        seen[row, positions[row, slot]] = after[row, slot]
        labels = np.where(weights > 0, np.take_along_axis(tokens, positions, axis=1), 0)
        unused = np.zeros_like(weights)
        own = batch[keys.MASK_POSITIONS].shape[1] + np.arange(positions.shape[1])
        return batch | {
            keys.TOKEN_IDS: seen,
            keys.MASK_POSITIONS: np.concatenate([batch[keys.MASK_POSITIONS], positions], axis=1),
            # Weight 0: masked_lm scores its own slots only.
            keys.MASK_LABELS: np.concatenate([batch[keys.MASK_LABELS], 0 * labels], axis=1),
            keys.MASK_WEIGHTS: np.concatenate([batch[keys.MASK_WEIGHTS], unused], axis=1),
            SHUFFLED_SLOTS: np.tile(own, (len(tokens), 1)).astype(np.int32),
            SHUFFLED_LABELS: labels.astype(np.int32),
            SHUFFLED_WEIGHTS: weights,
        }

    def attach(self, network: Any) -> _WordStructureScorer:
        """A scorer without variables: masked_lm's head makes the predictions."""
        return _WordStructureScorer(network.dtype_policy.name)


class _WordStructureScorer(ScorerLayer):
    """Scores what masked_lm predicts in the slots of shuffled tokens."""

    reads = ()

    def __init__(self, dtype: str):
        super().__init__(name="word_structure", dtype=dtype, autocast=False)
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy at the shuffled positions."""
        if SHUFFLED_LABELS not in batch:
            return {}, {}
        logits = gather_positions(outputs[keys.TOKEN_LOGITS], batch[SHUFFLED_SLOTS])  # (B, S, V)
        weights = batch[SHUFFLED_WEIGHTS]
        weights = self.weighted(batch, weights)
        return cross_entropy(logits, batch[SHUFFLED_LABELS], weights), {}
