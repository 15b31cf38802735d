"""Masked region classes: hide some regions' features, predict their classes.

A region's features begin with groups of numbers that are the shares of classes and sum to 1: here
those of eight levels of red, of green and of blue; with a detector's features, its probabilities of
objects. What is predicted is each group's distribution, and the loss is the sum of their
cross-entropies.

Or a detector tells one object and one attribute of each region, and how sure it is. These are
predicted then, and the loss is the sum of both cross-entropies, each times the confidence. (The
authors' code asks it of all regions, hidden or not; the paper, and here, of hidden ones.)

Reference:
    Lu et al. 2019, arXiv 1908.02265, 2.2: the distribution. Tan and Bansal 2019, arXiv 1908.07490,
    3.1.2, and the authors' code: objects and attributes by confidence. Li et al. 2020,
    arXiv 1908.06066, 3.2: the likeliest class.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.inputs.hidden_regions import hide
from models.inputs.noise import check_shares
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.region_prediction import RegionPrediction
from models.layers.scorer import Scored
from models.protocols import Batch, Context

NEEDS = ("regions",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
LEARNS_CLASSES = "detected"
_SLACK = 0.01  # detectors' probabilities may be rounded


class RegionClass(Windows):
    """Both halves of masked region classes.

    Args:
        context: The stage's constants.
        groups: Numbers of classes of the groups with which a region's features begin; by default
            levels of red, green and blue (`corpora.regions`).
        detected: Numbers of classes of objects, and of attributes, that a detector tells; they are
            learned in place of `groups`. Empty for none.
        likeliest: Whether what is right is each group's likeliest class, and not its distribution;
            a detector tells the likeliest alone.
        rate: Share of a picture's regions to predict, 0-1; at least one is.
        mask_share: Share of these whose features become 0, 0-1.
        random_share: Share of these that get another region's features, 0-1.

    Raises:
        RecipeError: A share is out of range, or a group has fewer than two classes.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        groups: Sequence[int] = (8, 8, 8),
        detected: Sequence[int] = (),
        likeliest: bool = False,
        rate: float = 0.15,
        mask_share: float = 0.8,
        random_share: float = 0.1,
    ):
        check_shares("region_class", rate, mask_share, random_share)
        if not groups or min(groups) < 2:
            raise RecipeError(
                "objectives.region_class.groups: expected numbers of classes from 2, got"
                f" {list(groups)}"
            )
        if detected and (len(detected) > 2 or min(detected) < 2):
            raise RecipeError(
                "objectives.region_class.detected: expected the number of object classes, and of"
                f" attributes, each from 2, got {list(detected)}"
            )
        self.context = context
        self.detected = bool(detected)
        self.groups = tuple(detected or groups)
        self.likeliest = likeliest
        self.shares = rate, mask_share, random_share

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Hide regions; add what they were and which were chosen.

        Raises:
            ContractViolation: There are no regions, they don't begin with shares of classes, or
                a detector told none, or others.
        """
        batch = hide("region_class", batch, rng, *self.shares)
        if self.detected:
            self._check_detected(batch)
            return batch
        real = batch[keys.REGION_LABELS][batch[keys.REGION_MASK] > 0]
        for first, end in _ends(self.groups):
            shares = real[:, first:end]
            if (shares < -_SLACK).any() or (abs(shares.sum(axis=1) - 1.0) > _SLACK).any():
                raise ContractViolation(
                    f"objectives.region_class.groups: expected that numbers {first} to {end - 1} of"
                    " a region are shares of classes and sum to 1, got others; name the groups"
                    " with which features begin, or leave it out where they have no classes"
                )
        return batch

    def _check_detected(self, batch: Batch) -> None:
        """Check that each class that a detector tells is one of those that are learned."""
        if keys.DETECTED_CLASSES not in batch:
            raise ContractViolation(
                "objectives.region_class.detected: its rows' regions have no classes of a detector;"
                " give their source pictures.object_classes, or leave detected out"
            )
        for column, number in enumerate(self.groups):
            there = batch[keys.DETECTED_CONFIDENCES][..., column] > 0
            told = batch[keys.DETECTED_CLASSES][..., column][there]
            if told.size and not 0 <= told.min() <= told.max() < number:
                raise ContractViolation(
                    f"objectives.region_class.detected: expected classes below {number}, got"
                    f" {told.min()} to {told.max()}; give the numbers of classes of the source"
                )

    def attach(self, network: Any) -> _RegionClassScorer:
        """The head: dense → activation → LayerNorm → dense.

        Raises:
            RecipeError: A region has fewer features than there are classes.
        """
        if not self.detected and sum(self.groups) > network.region_dim:
            raise RecipeError(
                f"objectives.region_class.groups: {sum(self.groups)} classes, but a region has"
                f" {network.region_dim} features; name the groups with which they begin"
            )
        return _RegionClassScorer(network, self.groups, self.detected, self.likeliest)


class _RegionClassScorer(RegionPrediction):
    """Scores the classes of the chosen regions."""

    def __init__(self, network: Any, groups: tuple[int, ...], detected: bool, likeliest: bool):
        super().__init__(network, "region_class", sum(groups))
        self.groups = groups
        self.detected = detected
        self.likeliest = likeliest

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Cross-entropy and accuracy of the chosen regions, and log shares (B, O, classes)."""
        predicted = self.predicted(outputs, training)
        parts = [ops.log_softmax(predicted[..., a:b], axis=-1) for a, b in _ends(self.groups)]
        predictions = {"region_classes": ops.concatenate(parts, axis=-1)}
        if keys.REGION_LABELS not in batch:
            return {}, predictions
        weights = self.loss_weights(batch)
        nats = hits = asked = 0.0
        for column, (logs, (first, end)) in enumerate(zip(parts, _ends(self.groups), strict=True)):
            best, right = self._right(batch, column, first, end)
            sure = weights
            if self.detected:
                sure = weights * batch[keys.DETECTED_CONFIDENCES][..., column]
            nats = nats - ops.sum(sure * ops.sum(right * logs, axis=-1))
            found = ops.cast(ops.argmax(logs, axis=-1), best.dtype)
            hits = hits + ops.sum(sure * ops.cast(found == best, "float32"))
            asked = asked + ops.sum(sure)
        scores = {
            "loss": (nats, ops.sum(weights)),
            "accuracy": (hits / len(parts), asked / len(parts)),
        }
        return scores, predictions

    def _right(self, batch: dict, column: int, first: int, end: int) -> tuple[Any, Any]:
        """A group's right class (B, O), the likeliest, and the classes' shares (B, O, classes)."""
        if self.detected:
            best = batch[keys.DETECTED_CLASSES][..., column]
        else:
            right = batch[keys.REGION_LABELS][..., first:end]
            best = ops.argmax(right, axis=-1)
            if not self.likeliest:
                return best, right
        return best, ops.one_hot(best, end - first, dtype="float32")


def _ends(groups: Sequence[int]) -> list[tuple[int, int]]:
    """Where each group begins and ends."""
    return list(pairwise(accumulate(groups, initial=0)))
