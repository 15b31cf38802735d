"""One stage as a Keras model: the network once, then every scorer on what it gave.

    batch → each scorer's prepare → network → scorer 1 → scorer 2 (sees 1's predictions) → …
          → {objective: {score: (sum, weight)}}
    loss = Σ over objectives of factor · sum / weight

Sums and weights leave the model as they are, so that a mean over uneven batches is exact. Nothing
is compiled in as ``loss=…`` and no step is custom: Keras's own runs on every backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from models.reading import where_read
from models.training.traced_model import TracedModel

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

LOSS = "loss"
WHOLE = "whole_weight/"  # + objective: a part's share of its batch's weight; sorts behind features


class StageModel(TracedModel):
    """A network and the scorers of a stage's objectives.

    Args:
        network: A built network; its variables keep their paths.
        scorers: {objective: scorer}, in the recipe's order.
        factors: {objective: factor in the loss}; 1 where left out.
        turn: The objectives that score, where not all do; the variables are those of all.

    Shape:
        {feature: (B, …)} → {objective: {score: (sum (), weight ())}}
    """

    def __init__(
        self,
        network: Any,
        scorers: Mapping[str, Any],
        factors: Mapping[str, float] | None = None,
        turn: Sequence[str] | None = None,
    ):
        # autocast would round loss weights and masks to the compute type on entry.
        super().__init__(name="stage", dtype="float32", autocast=False)
        self.network = network
        self.objectives = tuple(scorers if turn is None else turn)
        self.scorers = list(scorers.values())
        self.scoring = [scorers[name] for name in self.objectives]
        self.factors = {name: float((factors or {}).get(name, 1.0)) for name in self.objectives}

    def build(self, input_shape: Any = None) -> None:
        """Network and scorers come built."""
        self.built = True

    def outputs(self, batch: Mapping[str, Any], training: bool = False) -> tuple[dict, dict]:
        """Scores by objective, and all that network and scorers predicted."""
        batch = dict(batch)
        for scorer in self.scoring:
            batch = scorer.prepare(batch, training)
        batch = where_read(self.network, self.scoring, batch)
        predicted = dict(self.network(batch, training=training))
        scores: dict[str, dict[str, tuple[Any, Any]]] = {}
        for name, scorer in zip(self.objectives, self.scoring, strict=True):
            scores[name], own = scorer(batch, predicted, training=training)
            predicted = predicted | own
        return scores, predicted

    def call(self, batch: Mapping[str, Any], training: bool = False) -> dict:
        """The scores alone: predictions would be copied to the host each step."""
        return self.outputs(batch, training)[0]

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Σ factor · sum / weight; an objective with nothing to score in this batch adds 0.

        For a part of a batch, the weight is the batch's divided by the number of its parts: so the
        mean over the parts' gradients is the batch's gradient, however uneven the parts.
        """
        total = 0.0
        for name in self.objectives:
            if LOSS not in y_pred[name]:
                continue
            score, weight = y_pred[name][LOSS]
            weight = (x or {}).get(WHOLE + name, weight)
            total = total + self.factors[name] * ops.divide_no_nan(score, weight)
        return total

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict:
        """This batch's sums and weights by flat name; `Means` adds them up."""
        del x, y, sample_weight
        flat = {}
        for name, scores in y_pred.items():
            for score, (total, weight) in scores.items():
                flat[f"{name}/{score}/sum"] = total
                flat[f"{name}/{score}/weight"] = weight
        return flat


class LossWeights(TracedModel):
    """The weights of a stage's losses alone, {objective: ()}; needs nothing of the network's work.

    Weights come from targets, not from predictions, so that the compiled graph is pruned to them.

    Args:
        stage: Shares its network and scorers.
    """

    def __init__(self, stage: StageModel):
        super().__init__(name="loss_weights", dtype="float32", autocast=False)
        self.stage = stage

    def build(self, input_shape: Any = None) -> None:
        """The stage comes built."""
        self.built = True

    def call(self, batch: Mapping[str, Any], training: bool = False) -> dict:
        """Sums of weights."""
        scores = self.stage(batch, training=False)
        return {name: found[LOSS][1] for name, found in scores.items() if LOSS in found}

    def parts(self, batch: Mapping[str, np.ndarray], count: int) -> Iterator[dict[str, np.ndarray]]:
        """The batch cut along its rows into equal parts that know their shares of its weight."""
        whole = {
            WHOLE + name: np.asarray(weight / count, np.float32)
            for name, weight in self.predict_on_batch(dict(batch)).items()
        }
        rows = len(next(iter(batch.values()))) // count
        for start in range(0, rows * count, rows):
            yield {key: value[start : start + rows] for key, value in batch.items()} | whole


class Means:
    """Sums and weights added up over batches, in float64 on the host."""

    def __init__(self) -> None:
        self._totals: dict[str, list[float]] = {}

    def add(self, logs: Mapping[str, Any]) -> None:
        """One batch's ``name/sum`` and ``name/weight``."""
        for key, value in logs.items():
            name, _, part = key.rpartition("/")
            if part in ("sum", "weight"):
                pair = self._totals.setdefault(name, [0.0, 0.0])
                pair[part == "weight"] += float(value)

    def result(self) -> dict[str, float]:
        """{``masked_lm/loss``: mean} of what has a weight, by name."""
        return {
            name: total / weight for name, (total, weight) in sorted(self._totals.items()) if weight
        }

    def flat(self) -> dict[str, float]:
        """The sums as `add` takes them."""
        return {
            f"{name}/{part}": value
            for name, pair in self._totals.items()
            for part, value in zip(("sum", "weight"), pair, strict=True)
        }

    def clear(self) -> None:
        """Forget everything."""
        self._totals.clear()

    def state(self) -> dict[str, list[float]]:
        """The sums, exactly, as plain JSON."""
        return {name: list(pair) for name, pair in self._totals.items()}

    def restore(self, state: Mapping[str, Sequence[float]]) -> None:
        """Go on from `state`."""
        self._totals = {name: [float(part) for part in pair] for name, pair in state.items()}


def total_loss(means: Mapping[str, float], factors: Mapping[str, float]) -> float:
    """The stage's loss from the means of its objectives."""
    return sum(
        factor * means[f"{name}/{LOSS}"]
        for name, factor in factors.items()
        if f"{name}/{LOSS}" in means
    )
