"""Scoring of masked tokens: their original ones are predicted at the masked positions."""

from __future__ import annotations

from models import features as keys
from models.layers.gather import gather_positions
from models.layers.scorer import Scored, ScorerLayer
from models.layers.token_prediction import TokenPrediction


class MaskedTokens(TokenPrediction, ScorerLayer):
    """Scores the chosen positions only: at 15 %, the largest matrix product is 7 times smaller.

    Args:
        network: The network (`TokenPrediction`).
        name: Name of the objective.
    """

    reads = (keys.MASK_POSITIONS,)

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy at the chosen positions, and their logits (B, M, V)."""
        if keys.MASK_POSITIONS not in batch:
            return {}, {}
        hidden = gather_positions(outputs[keys.SEQUENCE_OUTPUT], batch[keys.MASK_POSITIONS])
        predicted = {keys.TOKEN_LOGITS: self.logits(hidden, training=training)}  # (B, M, V)
        if keys.MASK_LABELS not in batch:
            return {}, predicted
        weights = batch[keys.MASK_WEIGHTS]
        weights = self.weighted(batch, weights)
        return self.token_scores(hidden, batch[keys.MASK_LABELS], weights, training), predicted
