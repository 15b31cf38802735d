"""Word-region alignment: the least that it costs to carry a caption's tokens to its regions.

The cost between a token and a region is 1 - the cosine of their last vectors. Each token has the
same mass, and so has each region. The plan that carries one to the other is found by a proximal
point method (IPOT), without gradient; the loss is the cost under this plan, of the rows that show
their own picture. (The authors' code also subtracts that of the others, which the paper does not
say.)

Reference:
    Chen et al. 2020, arXiv 1909.11740, 3.2, and the authors' code: 50 steps at β = ½. Xie et al.
    2018, arXiv 1802.04307, algorithm 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.projection import projection
from models.layers.scorer import Scored, ScorerLayer
from models.protocols import Batch, Context

NEEDS = ("regions", "matched_pairs")
PROVIDES = ()
CHOOSES = 0
PREPARES = False
PLAN = "word_region_plan"  # (B, T, O), what is carried of each token to each region; sums to 1


class WordRegionAlignment:
    """Both halves of word-region alignment.

    Args:
        context: The stage's constants.
        beta: Share of the proximal term, above 0: the higher, the slower the plan sharpens.
        steps: Steps of the method, from 1.

    Raises:
        RecipeError: A setting is out of range.
    """

    chooses = CHOOSES

    def __init__(self, context: Context, *, beta: float = 0.5, steps: int = 50):
        if beta <= 0.0 or steps < 1:
            raise RecipeError(
                "objectives.word_region_alignment: expected beta above 0 and steps from 1, got"
                f" {beta} and {steps}"
            )
        self.context = context
        self.beta, self.steps = beta, steps

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add."""
        return batch

    def attach(self, network: Any) -> _AlignmentScorer:
        """A scorer, with variables only where regions are wider or narrower than tokens."""
        return _AlignmentScorer(network, self.beta, self.steps)


class _AlignmentScorer(ScorerLayer):
    """Scores how well tokens and regions lie on each other."""

    def __init__(self, network: Any, beta: float, steps: int):
        dtype = network.dtype_policy.name
        super().__init__(name="word_region_alignment", dtype=dtype, autocast=False)
        self.beta, self.steps = beta, steps
        self.same_width = None
        if network.region_output_dim != network.hidden_dim:
            self.same_width = projection(network.hidden_dim, name="same_width", dtype=dtype)
            self.same_width.build((None, None, network.region_output_dim))
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Mean cost of the rows with their own picture, and the plan (B, T, O)."""
        seen = outputs[keys.REGION_OUTPUT]
        if self.same_width is not None:
            seen = self.same_width(seen)
        text, regions = _of_length_1(outputs[keys.SEQUENCE_OUTPUT]), _of_length_1(seen)
        first, second = (
            ops.cast(batch[key], "float32") for key in (keys.PADDING_MASK, keys.REGION_MASK)
        )
        cost = 1.0 - ops.matmul(text, ops.transpose(regions, (0, 2, 1)))  # (B, T, O)
        plan = transport(ops.stop_gradient(cost), first, second, self.beta, self.steps)
        if keys.MATCH_LABELS not in batch:
            return {}, {PLAN: plan}
        weights = ops.cast(batch[keys.MATCH_LABELS], "float32") * ops.max(second, axis=1)
        weights = self.weighted(batch, weights)
        total = ops.sum(weights * ops.sum(cost * plan, axis=(1, 2)))
        return {"loss": (total, ops.sum(weights))}, {PLAN: plan}


def transport(cost: Any, first: Any, second: Any, beta: float, steps: int) -> Any:
    """The plan by which equal masses of one side are carried to equal masses of the other.

    Args:
        cost: (B, T, O).
        first: (B, T), 1 for what has mass, 0 for padding.
        second: (B, O), the same of the other side.
        beta: Share of the proximal term.
        steps: Steps of the method.

    Returns:
        (B, T, O), 0 at padding; where neither side is empty it sums to 1, in rows nearly to
        1 / tokens and in columns to 1 / regions.
    """
    both = first[:, :, None] * second[:, None, :]
    kernel = ops.exp(-cost / beta) * both
    rows, columns = (ops.maximum(ops.sum(m, axis=1, keepdims=True), 1.0) for m in (first, second))
    plan, scale = both, first / rows
    for _ in range(steps):
        moved = kernel * plan
        to = second / ops.maximum(columns * ops.sum(moved * scale[:, :, None], axis=1), 1e-30)
        scale = first / ops.maximum(rows * ops.sum(moved * to[:, None, :], axis=2), 1e-30)
        plan = scale[:, :, None] * moved * to[:, None, :]
    return plan


def _of_length_1(x: Any) -> Any:
    x = ops.cast(x, "float32")
    return x / ops.maximum(ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True)), 1e-12)
