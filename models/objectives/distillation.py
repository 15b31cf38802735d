"""Distillation: a student learns a trained teacher's predictions in addition to the true tokens.

    the same noised text → teacher (inference mode, no gradient) → token logits, last hidden states
                         → student → masked_lm's token logits, last hidden states → compared

Reference:
    Sanh et al. 2019 (DistilBERT), arXiv 1910.01108, 3; ``distiller.py`` of
    huggingface/transformers.
    Hinton et al. 2015, arXiv 1503.02531.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import RecipeError, UnknownNameError
from models import features as keys
from models.keras_ops import ops
from models.layers.gather import gather_positions
from models.layers.scorer import Scored, ScorerLayer
from models.protocols import Batch, Context
from models.stage_format import CONFIG
from models.training.trained_stage import load_stage
from models.weights import named_weights

NEEDS = ("bidirectional", "token_logits")
PROVIDES = ()
CHOOSES = 0
PREPARES = False
LOSS_ON = ("real", "masked")
HEAD = "masked_lm"
TEACHER_HEADS = ("masked_lm",)

DISTILLED_SLOTS = "distilled_slots"  # (B, S) int32, masked_lm's slots that are compared
DISTILLED_WEIGHTS = "distilled_weights"  # (B, S) float32


class Distillation:
    """Both halves of distillation; masked_lm runs before it and provides the student's logits.

    The paper's loss factors are 5 for the soft targets, 1 for the hidden states, and 2 for
    masked_lm, which has its own ``weight`` in the recipe.

    Args:
        context: The stage's constants.
        teacher: Folder of a finished stage with a ``masked_lm`` head and the same tokenizer; in a
            recipe, it can also be the name of an earlier stage.
        temperature: Temperature T of both softmaxes, above 0.
        loss_on: Tokens with soft targets: ``real`` for all, ``masked`` for those that masked_lm
            chose.
        soft_weight: Factor of T² · KL(teacher ‖ student).
        cosine_weight: Factor of 1 - cosine of the last hidden states, over all tokens.

    Raises:
        RecipeError: The temperature is not above 0 or, on attaching, the teacher does not fit.
        UnknownNameError: `loss_on` is unknown.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        teacher: str,
        temperature: float = 2.0,
        loss_on: str = "real",
        soft_weight: float = 5.0,
        cosine_weight: float = 1.0,
    ):
        where = "objectives.distillation"
        if temperature <= 0:
            raise RecipeError(f"{where}.temperature: expected a number above 0, got {temperature}")
        if loss_on not in LOSS_ON:
            raise UnknownNameError(f"{where}.loss_on", loss_on, "a choice of tokens", LOSS_ON)
        self.context = context
        self.temperature = temperature
        self.loss_on = loss_on
        self.soft_weight = soft_weight
        self.cosine_weight = cosine_weight
        self._folder = Path(teacher)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add the slots to compare: masked_lm's own or, for ``real``, a new slot per token."""
        if keys.MASK_POSITIONS not in batch:
            raise RecipeError(
                "objectives: distillation compares what masked_lm predicts; name masked_lm before "
                "it"
            )
        num_rows, slots = batch[keys.MASK_POSITIONS].shape
        if self.loss_on == "masked":
            numbers = np.arange(slots)
            more: Batch = {}
            weights = batch[keys.MASK_WEIGHTS]
        else:
            length = batch[keys.TOKEN_IDS].shape[1]
            numbers = slots + np.arange(length)
            weights = batch[keys.PADDING_MASK]
            places = np.broadcast_to(np.arange(length), (num_rows, length))
            # masked_lm predicts there, with weight 0 in its own loss.
            added = {
                keys.MASK_POSITIONS: places,
                keys.MASK_LABELS: np.zeros_like(places),
                keys.MASK_WEIGHTS: np.zeros_like(places),
            }
            more = {
                key: np.concatenate([batch[key], value.astype(batch[key].dtype)], axis=1)
                for key, value in added.items()
            }
        return (
            batch
            | more
            | {
                DISTILLED_SLOTS: np.tile(numbers, (num_rows, 1)).astype(np.int32),
                DISTILLED_WEIGHTS: weights.astype(np.float32),
            }
        )

    def attach(self, network: Any) -> _DistillationScorer:
        """The scorer; it has no variables and does not track the teacher's."""
        return _DistillationScorer(network, self, *self._teacher())

    def initialise(self, network: Any, scorers: Mapping[str, Any]) -> None:
        """Copy the student's initial weights from the teacher: embeddings, some blocks, head.

        The blocks are evenly spaced, with the first and the last. From 12 blocks, a student with 6
        takes 0, 2, 4, 7, 9, 11, as in the paper's script.

        Raises:
            RecipeError: A weight of the student has no counterpart of its shape.
        """
        teacher, head = self._teacher()
        own, theirs = named_weights(network), named_weights(teacher)
        taken = layers_taken(_num_blocks(own), _num_blocks(theirs))

        def source(name: str) -> str:
            return re.sub(r"^block_(\d+)/", lambda m: f"block_{taken[int(m[1])]}/", name)

        pairs = [(name, variable, theirs.get(source(name))) for name, variable in own.items()]
        if HEAD in scorers:
            of_head = named_weights(head)
            pairs += [(n, v, of_head.get(n)) for n, v in named_weights(scorers[HEAD]).items()]
        for name, variable, found in pairs:
            if found is None or tuple(found.shape) != tuple(variable.shape):
                there = "none" if found is None else f"shape {tuple(found.shape)}"
                raise RecipeError(
                    f"objectives.distillation.teacher: expected a weight like the student's {name} "
                    f"of shape {tuple(variable.shape)}, got {there}; give the student the "
                    "teacher's width"
                )
        for _, variable, found in pairs:
            variable.assign(found)

    def _teacher(self) -> tuple[Any, Any]:
        """The teacher's network and masked_lm scorer, loaded from its folder."""
        if not (self._folder / CONFIG).is_file():
            raise RecipeError(
                f"objectives.distillation.teacher: expected the folder of a finished stage, got "
                f"{str(self._folder)!r}"
            )
        folders = self.context.folders
        stage = load_stage(self._folder, self.context.tokenizer, folders=folders)
        return stage.network, stage.scorer(HEAD, stage.objective(HEAD, folders))


def layers_taken(num_layers: int, of: int) -> list[int]:
    """Numbers of `num_layers` evenly spaced blocks out of `of`, with the first and the last."""
    return [round(i * (of - 1) / max(1, num_layers - 1)) for i in range(num_layers)]


def _num_blocks(names: Mapping[str, Any]) -> int:
    numbers = [int(found[1]) for name in names if (found := re.match(r"block_(\d+)/", name))]
    return max(numbers, default=-1) + 1


class _DistillationScorer(ScorerLayer):
    """Runs the teacher on the student's input and compares their outputs."""

    def __init__(self, network: Any, objective: Distillation, teacher: Any, head: Any):
        super().__init__(name="distillation", dtype=network.dtype_policy.name, autocast=False)
        if objective.cosine_weight and teacher.hidden_dim != network.hidden_dim:
            raise RecipeError(
                f"objectives.distillation.cosine_weight: the states of teacher and student have "
                f"widths {teacher.hidden_dim} and {network.hidden_dim}; set it to 0, or give the "
                "student the teacher's hidden_dim"
            )
        self.temperature = objective.temperature
        self.soft_weight = objective.soft_weight
        self.cosine_weight = objective.cosine_weight
        # Wrapped in functions, so that Keras does not track the teacher's weights.
        self._teacher = lambda: teacher
        self._head = lambda: head
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Soft loss, cosine loss, and ``loss``: their weighted sum, per token of the soft loss."""
        if DISTILLED_SLOTS not in batch or keys.MASK_LABELS not in batch:
            return {}, {}
        slots = batch[DISTILLED_SLOTS]
        taught = self._teacher()(batch, training=False)[keys.SEQUENCE_OUTPUT]  # (B, T, D)
        places = ops.take_along_axis(batch[keys.MASK_POSITIONS], slots, axis=1)  # (B, S)
        soft = self._head().logits(gather_positions(taught, places), training=False)
        soft, taught = ops.stop_gradient(soft), ops.stop_gradient(taught)
        own = gather_positions(outputs[keys.TOKEN_LOGITS], slots)  # (B, S, V)

        weights = self.weighted(batch, batch[DISTILLED_WEIGHTS])
        wanted = ops.log_softmax(soft / self.temperature)
        given = ops.log_softmax(own / self.temperature)
        nats = ops.sum(ops.exp(wanted) * (wanted - given), axis=-1)  # (B, S)
        divergence, count = ops.sum(nats * weights) * self.temperature**2, ops.sum(weights)

        real = self.weighted(batch, ops.cast(batch[keys.PADDING_MASK], "float32"))
        scores = {"soft_loss": (divergence, count)}
        total = self.soft_weight * divergence
        if self.cosine_weight:
            states = ops.normalize(outputs[keys.SEQUENCE_OUTPUT], axis=-1)
            apart = 1.0 - ops.sum(states * ops.normalize(taught, axis=-1), axis=-1)  # (B, T)
            scores["cosine_loss"] = (ops.sum(apart * real), ops.sum(real))
            more = self.mean_beside(batch, "cosine_loss", scores["cosine_loss"], count)
            total = total + self.cosine_weight * more
        return {"loss": (total, count), **scores}, {}
