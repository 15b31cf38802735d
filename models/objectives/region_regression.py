"""Masked region regression: hide some regions' features, predict them.

By default 80 % of the chosen regions' features become 0, 10 % those of another region of the batch,
and 10 % stay. The loss is the mean over a region's features.

Reference:
    Tan and Bansal 2019, arXiv 1908.07490, 3.1.2: smooth absolute errors. Chen et al. 2020,
    arXiv 1909.11740, 3.2: squares, all of the chosen hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError, UnknownNameError
from models import features as keys
from models.inputs.hidden_regions import hide
from models.inputs.noise import check_shares
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.region_prediction import RegionPrediction
from models.layers.regions import RegionEmbedding
from models.layers.scorer import Scored
from models.protocols import Batch, Context

NEEDS = ("regions",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
ERRORS = ("smooth_absolute", "squared")


class RegionRegression(Windows):
    """Both halves of masked region regression.

    Args:
        context: The stage's constants.
        rate: Share of a picture's regions to predict, 0-1; at least one is.
        mask_share: Share of these whose features become 0, 0-1.
        random_share: Share of these that get another region's features, 0-1.
        error: ``smooth_absolute``, half the square below 1 and |e| - ½ above (LXMERT), or
            ``squared`` (UNITER).
        tied: Whether the last matrix is that by which the network reads features, transposed
            (UNITER); only of families that read features by one matrix and add the box.

    Raises:
        RecipeError: A share is out of range.
        UnknownNameError: `error` is unknown.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        rate: float = 0.15,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        error: str = "smooth_absolute",
        tied: bool = False,
    ):
        check_shares("region_regression", rate, mask_share, random_share)
        if error not in ERRORS:
            raise UnknownNameError("objectives.region_regression.error", error, "an error", ERRORS)
        self.context = context
        self.shares = rate, mask_share, random_share
        self.error = error
        self.tied = tied

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Hide regions; add what they were and which were chosen."""
        return hide("region_regression", batch, rng, *self.shares)

    def attach(self, network: Any) -> _RegionRegressionScorer:
        """The head: dense → activation → LayerNorm → dense.

        Raises:
            RecipeError: It is tied, but the network has no such matrix.
        """
        embedding = getattr(network, "region_embedding", None)
        if self.tied and not isinstance(embedding, RegionEmbedding):
            raise RecipeError(
                f"objectives.region_regression.tied: {network.name} has no matrix by which it reads"
                " a region's features alone; leave it out"
            )
        return _RegionRegressionScorer(network, self.error, self.tied)


class _RegionRegressionScorer(RegionPrediction):
    """Scores the features of the chosen regions."""

    def __init__(self, network: Any, error: str, tied: bool):
        super().__init__(network, "region_regression", network.region_dim, tied)
        self.error = error

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Mean error of the features of the chosen regions, and the predictions (B, O, E)."""
        predicted = self.predicted(outputs, training)
        if keys.REGION_LABELS not in batch:
            return {}, {"region_predictions": predicted}
        gap = ops.abs(predicted - batch[keys.REGION_LABELS])
        errors = gap * gap
        if self.error == "smooth_absolute":
            errors = ops.where(gap < 1.0, errors / 2.0, gap - 0.5)
        weights = self.loss_weights(batch)
        total = ops.sum(weights * ops.mean(errors, axis=-1))
        return {"loss": (total, ops.sum(weights))}, {"region_predictions": predicted}
