"""Remedies against forgetting, which pull weights towards those that the stage began with.

With θ* the weights before the first update, g the gradient, Δ the optimizer's step, η its rate:

    l2_sp     g ← g + α (θ - θ*)
    ewc       g ← g + λ F (θ - θ*)
    rec_adam  θ ← θ + σ(t) Δ - η (1 - σ(t)) γ (θ - θ*),   σ(t) = 1 / (1 + exp(-k (t - t₀)))

F says how much each weight matters for the text of the stage before: the mean, over rows of that
text, of the squared gradient of the row's loss (the empirical Fisher information), divided by its
mean over all weights. So one strength means the same for every network, and where all weights
matter alike, EWC is L2-SP.

Only weights of the network are pulled, not those of heads. Checkpoints hold θ* and F.

Reference:
    L2-SP: Li et al. 2018, arXiv 1802.01483, equation 3; its decay of the head is the optimizer's.
    EWC: Kirkpatrick et al. 2017, arXiv 1612.00796, equation 3; F there is not divided.
    RecAdam: Chen et al. 2020, arXiv 2004.12651, algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras

from fourstage.errors import RecipeError
from models.keras_ops import ops
from models.training.traced_model import forgetting_gradients


class Remedy:
    """What pulls some variables, by what is added to their gradients, or after their updates.

    Args:
        variables: The trainable variables of the network.
    """

    anneals = False  # whether `step` is called

    def __init__(self, variables: Sequence[Any]):
        self.pulled = list(variables)
        self._start = {id(variable): _like(variable) for variable in variables}

    @property
    def variables(self) -> list[Any]:
        """What a checkpoint holds."""
        return list(self._start.values())

    def start(self) -> None:
        """Keep the weights as they are, before the first update."""
        for variable in self.pulled:
            self._start[id(variable)].assign(ops.copy(variable))

    def moved(self, variable: Any, value: Any = None) -> Any:
        """How far a variable, or a value of it, is from its start; None for one of a head."""
        start = self._start.get(id(variable))
        return None if start is None else (variable if value is None else value) - start

    def gradient(self, gradient: Any, variable: Any) -> Any:
        """The gradient with the pull in it."""
        return gradient

    def step(self, before: Any, variable: Any, rate: Any, update: Any) -> None:
        """Change what the optimizer's update number `update`, from 0, made of `before`."""


class L2SP(Remedy):
    """A penalty of α/2 ‖θ - θ*‖².

    Args:
        variables: Those of the network.
        strength: α.
    """

    def __init__(self, variables: Sequence[Any], strength: float):
        super().__init__(variables)
        self.strength = strength

    def importance(self, variable: Any) -> Any:
        """How much a variable's weights matter, on average 1."""
        return 1.0

    def gradient(self, gradient: Any, variable: Any) -> Any:
        """The gradient with that of the penalty."""
        moved = self.moved(variable)
        if moved is None:
            return gradient
        pull = self.strength * self.importance(variable) * moved
        return ops.convert_to_tensor(gradient) + ops.cast(pull, gradient.dtype)


class EWC(L2SP):
    """Elastic weight consolidation: a penalty of λ/2 Σ F (θ - θ*)²; TensorFlow only.

    Args:
        variables: Those of the network.
        strength: λ.
        samples: Rows that F is estimated from.

    Raises:
        RecipeError: The backend is not TensorFlow.
    """

    def __init__(self, variables: Sequence[Any], strength: float, samples: int):
        if keras.backend.backend() != "tensorflow":
            raise RecipeError("remedies.ewc: needs the TensorFlow backend")
        super().__init__(variables, strength)
        self.samples = samples
        self._importance = {id(variable): _like(variable) for variable in variables}

    @property
    def variables(self) -> list[Any]:
        """What a checkpoint holds."""
        return [*super().variables, *self._importance.values()]

    def importance(self, variable: Any) -> Any:
        """Of each weight."""
        return self._importance[id(variable)]

    def measure(self, model: Any, rows: Iterable[Mapping[str, Any]]) -> None:
        """Estimate F from batches of one row, without dropout.

        Args:
            model: The `StageModel` whose loss it is.
            rows: `samples` batches, {feature: (1, …)}.
        """
        import tensorflow as tf

        @tf.function(reduce_retracing=True, autograph=False)
        def squares(batch: Mapping[str, Any]) -> list[Any]:
            with forgetting_gradients():
                with tf.GradientTape() as tape:
                    scores = model(batch, training=False)
                    loss = model.compute_loss(x=batch, y_pred=scores)
                found = tape.gradient(
                    loss,
                    [variable.value for variable in self.pulled],
                    unconnected_gradients=tf.UnconnectedGradients.ZERO,
                )
                return [tf.square(tf.convert_to_tensor(gradient)) for gradient in found]

        sums: list[Any] = [0.0] * len(self.pulled)
        for row in rows:
            batch = {key: tf.convert_to_tensor(value) for key, value in row.items()}
            sums = [a + b for a, b in zip(sums, squares(batch), strict=True)]
        total = sum(float(tf.reduce_sum(each)) for each in sums)
        mean = total / sum(int(tf.size(each)) for each in sums)
        for variable, each in zip(self.pulled, sums, strict=True):
            self._importance[id(variable)].assign(each / mean if mean else tf.ones_like(each))


class RecAdam(Remedy):
    """The optimizer's step grows from 0 to its length while the pull to the old weights fades.

    Args:
        variables: Those of the network; others have the optimizer's whole step from the beginning.
        pull: γ.
        speed: k, per update.
        midpoint: t₀, the update at which both have half of their strength.
    """

    anneals = True

    def __init__(self, variables: Sequence[Any], pull: float, speed: float, midpoint: int):
        super().__init__(variables)
        self.pull, self.speed, self.midpoint = pull, speed, midpoint

    def step(self, before: Any, variable: Any, rate: Any, update: Any) -> None:
        """Shorten the step, and pull from where the variable was before it."""
        moved = self.moved(variable, before)
        if moved is None:
            return
        share = ops.sigmoid(self.speed * (ops.cast(update, "float32") - self.midpoint))
        share = ops.cast(share, before.dtype)
        pull = ops.cast(rate, before.dtype) * (1.0 - share) * self.pull * moved
        variable.assign(before + share * (variable - before) - pull)


REMEDIES: Mapping[str, type[Remedy]] = {"ewc": EWC, "l2_sp": L2SP, "rec_adam": RecAdam}


def _like(variable: Any) -> Any:
    return keras.Variable(ops.zeros(variable.shape, variable.dtype), trainable=False)
