"""One stage as a Keras model: the network, then every scorer on its outputs.

    batch → each scorer's prepare → network → scorer 1 → scorer 2 (sees 1's predictions) → …
          → {objective: {score: (sum, weight)}}
    loss = Σ over objectives of factor · sum / weight

Beside a head, an auxiliary objective either scores the same outputs, or, if it corrupts its rows,
those of a second pass over a copy of the rows (``copy/…``). The losses are summed all the same.

With R-Drop, a training step reads each row twice, with other dropout masks, and adds how far the
head's two predictions are apart: L = ½ (L₁ + L₂) + α · ½ (KL(P₁‖P₂) + KL(P₂‖P₁)) (Wu et al. 2021,
arXiv 2106.14448, with the mean of both losses, as in the authors' code).

The model returns sums and weights separately, so that means over uneven batches are exact. The loss
comes from `compute_loss`, not from ``compile(loss=…)``, and there is no custom training step:
Keras's own works on every backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from models import features as keys
from models.keras_ops import ops
from models.scored_positions import where_read
from models.training.traced_model import TracedModel

LOSS = "loss"
R_DROP = "r_drop"  # in the place of an objective: how far two predictions of the head are apart


def memory_of(network: Any, *, evaluating: bool = False) -> Mapping[str, tuple[int, ...]]:
    """{feature: its shape without the batch's} of a network with memory; empty without."""
    memory = getattr(network, "memory", {})
    return getattr(network, "evaluation_memory", memory) if evaluating else memory


class StageModel(TracedModel):
    """A network and the scorers of a stage's objectives.

    Args:
        network: A built network; its variables keep their paths.
        scorers: {objective: scorer}, in the recipe's order.
        factors: {objective: factor in the loss}; 1 by default.
        turn: The objectives that score; all by default. The model has the variables of all scorers
            in either case.
        on_copy: The objectives that score a copy of the rows.
        low_rank: Low-rank updates of the network's projections, which are trained with the rest.
        r_drop: {head: α} with R-Drop.

    Shape:
        {feature: (B, …)} → {objective: {score: (sum (), weight ())}}
    """

    def __init__(
        self,
        network: Any,
        scorers: Mapping[str, Any],
        factors: Mapping[str, float] | None = None,
        turn: Sequence[str] | None = None,
        on_copy: Sequence[str] = (),
        low_rank: Sequence[Any] = (),
        r_drop: Mapping[str, float] | None = None,
    ):
        # autocast would round loss weights and masks to the compute type on entry.
        super().__init__(name="stage", dtype="float32", autocast=False)
        self.network = network
        self.objectives = tuple(scorers if turn is None else turn)
        self.scorers = list(scorers.values())
        self.on_rows = {name: scorers[name] for name in self.objectives if name not in on_copy}
        self.on_copy = {name: scorers[name] for name in self.objectives if name in on_copy}
        self.low_rank = list(low_rank)
        self.memory: dict[str, Any] = {}
        self.factors = {name: float((factors or {}).get(name, 1.0)) for name in self.objectives}
        self.head_twice = next(iter(r_drop or ()), None)
        if r_drop:
            self.factors[R_DROP] = r_drop[str(self.head_twice)]

    def carry_memory(self, batch_size: int, *, evaluating: bool = False) -> None:
        """Feed what the network remembers of each batch to the next one, row by row.

        The memory is zero at first, and of a row that begins a text (``begins``). It is a variable:
        checkpoints hold it, gradients stop at it.

        Args:
            batch_size: B, the same for every batch.
            evaluating: Whether the text is held out; a network may then remember more.
        """
        self.memory = {
            key: self.add_weight(
                shape=(batch_size, *shape), initializer="zeros", trainable=False, name=key
            )
            for key, shape in memory_of(self.network, evaluating=evaluating).items()
        }

    def forget(self) -> None:
        """Clear the memory, because the next batch begins a new text."""
        for variable in self.memory.values():
            variable.assign(ops.zeros_like(variable))

    def outputs(
        self, batch: Mapping[str, Any], training: bool = False, twice: bool = False
    ) -> tuple[dict, dict]:
        """Scores by objective, and all outputs of the network and the scorers on the rows.

        Args:
            batch: {feature: (B, …)}.
            training: Whether there is dropout.
            twice: Whether each row is read twice and the head's predictions are compared; the
                outputs are then those of 2B rows.
        """
        if twice and self.head_twice:
            scores, predicted = self._scored(self.on_rows, _twice(batch), training)
            scores = {
                name: {
                    score: (0.5 * total, 0.5 * weight) for score, (total, weight) in each.items()
                }
                for name, each in scores.items()
            }
            first, second = _halves(predicted)
            head = self.on_rows[self.head_twice]
            scores[R_DROP] = {LOSS: head.divergence(batch, first, second)}
        else:
            scores, predicted = self._scored(self.on_rows, batch, training)
        if self.on_copy:
            scores |= self._scored(self.on_copy, _copy_of(batch), training)[0]
        return scores, predicted

    def _scored(
        self, scorers: Mapping[str, Any], batch: Mapping[str, Any], training: bool
    ) -> tuple[dict, dict]:
        """Scores and outputs of one pass through the network."""
        batch = dict(batch)
        for scorer in scorers.values():
            batch = scorer.prepare(batch, training)
        batch = where_read(self.network, scorers.values(), batch)
        batch |= {key: _kept(variable, batch) for key, variable in self.memory.items()}
        predicted = dict(self.network(batch, training=training))
        scores: dict[str, dict[str, tuple[Any, Any]]] = {}
        for name, scorer in scorers.items():
            scores[name], own = scorer(batch, predicted, training=training)
            predicted = predicted | own
        return scores, predicted

    def call(self, batch: Mapping[str, Any], training: bool = False) -> dict:
        """The scores only: predictions would be copied to the host in every step."""
        scores, predicted = self.outputs(batch, training, twice=training)
        for key, variable in self.memory.items():
            variable.assign(ops.stop_gradient(predicted[key]))
        return scores

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Σ factor · sum / weight; an objective with nothing to score in this batch adds 0.

        A micro-batch uses the whole batch's weight / number of micro-batches. The mean of the
        micro-batches' gradients then equals the gradient of the whole batch, however unevenly
        the weight is distributed.
        """
        total = 0.0
        for name in self.factors:
            if LOSS not in y_pred.get(name, ()):
                continue
            score, weight = y_pred[name][LOSS]
            weight = (x or {}).get(f"{keys.WHOLE}{name}/{LOSS}", weight)
            total = total + self.factors[name] * ops.divide_no_nan(score, weight)
        return total

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict:
        """This batch's sums and weights under flat names, as `Means` takes them."""
        del x, y, sample_weight
        flat = {}
        for name, scores in y_pred.items():
            for score, (total, weight) in scores.items():
                flat[f"{name}/{score}/sum"] = total
                flat[f"{name}/{score}/weight"] = weight
        return flat


def _kept(variable: Any, batch: Mapping[str, Any]) -> Any:
    """What is remembered, (B, …); zero for rows that begin a text."""
    value = ops.convert_to_tensor(variable)
    if keys.BEGINS not in batch:
        return value
    goes_on = 1 - ops.reshape(batch[keys.BEGINS], (-1, *[1] * (len(value.shape) - 1)))
    return value * ops.cast(goes_on, value.dtype)


def _twice(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Every row of a batch twice: (B, …) → (2B, …), without the copy for other objectives."""
    return _whole_of(batch) | {
        key: ops.concatenate([value, value])
        for key, value in batch.items()
        if not key.startswith((keys.COPY, keys.WHOLE))
    }


def _whole_of(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of losses in the whole batch, of which this is a micro-batch; else nothing."""
    return {key: value for key, value in batch.items() if key.startswith(keys.WHOLE)}


def _halves(outputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """{name: (2B, …)} → {name: (B, …)} of the first and of the second reading."""
    middle = {name: ops.shape(value)[0] // 2 for name, value in outputs.items()}
    return (
        {name: value[: middle[name]] for name, value in outputs.items()},
        {name: value[middle[name] :] for name, value in outputs.items()},
    )


def _copy_of(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The copy of the rows, under the usual names; each of a row's choices is a row of its own."""
    copied = {
        key.removeprefix(keys.COPY): value
        for key, value in batch.items()
        if key.startswith(keys.COPY)
    }
    if len(copied[keys.TOKEN_IDS].shape) > 2:
        copied = {
            key: ops.reshape(value, (-1, *ops.shape(value)[2:])) for key, value in copied.items()
        }
    return _whole_of(batch) | copied


class LossWeights(TracedModel):
    """The loss weights of a batch, {objective/score: ()}, without running the network.

    Loss weights depend on targets only, not on predictions, so the compiler prunes the network from
    the graph.

    Args:
        model: The stage's model, whose network and scorers are shared.
    """

    def __init__(self, model: StageModel):
        super().__init__(name="loss_weights", dtype="float32", autocast=False)
        self.model = model

    def call(self, batch: Mapping[str, Any], training: bool = False) -> dict:
        """Sums of loss weights, of the parts of a loss that is a sum of means, too."""
        scores, _ = self.model.outputs(batch, twice=True)
        return {
            f"{name}/{score}": weight
            for name, found in scores.items()
            for score, (_, weight) in found.items()
            if score.endswith(LOSS)
        }

    def parts(self, batch: Mapping[str, np.ndarray], count: int) -> Iterator[dict[str, np.ndarray]]:
        """Split a batch by rows into `count` equal parts, each with its loss weights (`WHOLE`)."""
        whole = {
            keys.WHOLE + name: np.asarray(weight / count, np.float32)
            for name, weight in self.predict_on_batch(dict(batch)).items()
        }
        rows = len(next(iter(batch.values()))) // count
        for start in range(0, rows * count, rows):
            yield {key: value[start : start + rows] for key, value in batch.items()} | whole


class Means:
    """Sums and weights accumulated over batches, in float64 on the host."""

    def __init__(self) -> None:
        self._totals: dict[str, list[float]] = {}

    def add(self, logs: Mapping[str, Any]) -> None:
        """Add one batch's ``name/sum`` and ``name/weight``."""
        for key, value in logs.items():
            name, _, part = key.rpartition("/")
            if part in ("sum", "weight"):
                pair = self._totals.setdefault(name, [0.0, 0.0])
                pair[part == "weight"] += float(value)

    def result(self) -> dict[str, float]:
        """{score, such as ``masked_lm/loss``: mean}, sorted; scores of weight 0 are left out."""
        return {
            name: total / weight for name, (total, weight) in sorted(self._totals.items()) if weight
        }

    def flat(self) -> dict[str, float]:
        """The sums and weights in the form that `add` takes."""
        return {
            f"{name}/{part}": value
            for name, pair in self._totals.items()
            for part, value in zip(("sum", "weight"), pair, strict=True)
        }

    def clear(self) -> None:
        """Reset all sums and weights."""
        self._totals.clear()

    def state(self) -> dict[str, list[float]]:
        """The exact sums and weights, as plain JSON."""
        return {name: list(pair) for name, pair in self._totals.items()}

    def restore(self, state: Mapping[str, Sequence[float]]) -> None:
        """Replace all sums and weights by those of `state`."""
        self._totals = {name: [float(part) for part in pair] for name, pair in state.items()}


def total_loss(means: Mapping[str, float], factors: Mapping[str, float]) -> float:
    """The stage's loss from the means of its objectives."""
    return sum(
        factor * means[f"{name}/{LOSS}"]
        for name, factor in factors.items()
        if f"{name}/{LOSS}" in means
    )
