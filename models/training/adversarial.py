"""FGM: training on token embeddings that were moved where the loss grows fastest.

    g₁ = ∇L(θ); E ← E + ε · ∇_E L / ‖∇_E L‖; g₂ = ∇L(θ); E ← E; update by g₁ + g₂

The norm is that of the gradient of the whole table, as in common practice; Miyato et al. move the
embeddings of each text on its own.

Reference:
    Miyato, Dai and Goodfellow 2017, arXiv 1605.07725, 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from fourstage.errors import RecipeError
from models.training.stage_model import StageModel


class AdversarialStageModel(StageModel):
    """A `StageModel` whose training step has a second gradient; TensorFlow only.

    Args:
        epsilon: ε, the norm of the perturbation.
        arguments: Those of `StageModel`.

    Raises:
        RecipeError: The backend is not TensorFlow.
    """

    def __init__(self, *arguments: Any, epsilon: float, **more: Any):
        if keras.backend.backend() != "tensorflow":
            raise RecipeError("fgm: needs the TensorFlow backend")
        super().__init__(*arguments, **more)
        self.epsilon = epsilon

    def train_step(self, data: tuple[Mapping[str, Any]]) -> dict:
        """One update by the sum of both gradients; the metrics are those of the first pass."""
        import tensorflow as tf

        (batch,) = data
        variables = self.trainable_variables
        table = self.network.token_embedding.embeddings
        scores, (*own, of_table) = self._gradients(batch, [*variables, table])
        before = tf.identity(table.value)
        norm = tf.norm(of_table)
        table.assign(before + tf.math.divide_no_nan(self.epsilon * of_table, norm))
        _, moved = self._gradients(batch, variables)
        table.assign(before)
        self.optimizer.apply([a + b for a, b in zip(own, moved, strict=True)], variables)
        return self.compute_metrics(batch, None, scores)

    def _gradients(self, batch: Mapping[str, Any], variables: Sequence[Any]) -> tuple[dict, list]:
        """Scores, and the gradient of each variable, dense."""
        import tensorflow as tf

        with tf.GradientTape() as tape:
            scores = self(batch, training=True)
            loss = self.compute_loss(x=batch, y_pred=scores)
        found = tape.gradient(
            loss, [v.value for v in variables], unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return scores, [tf.convert_to_tensor(gradient) for gradient in found]
