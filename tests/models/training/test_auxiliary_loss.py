"""A head beside an auxiliary objective: L_head + λ · L_lm (Radford et al. 2018, eq. 5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models import catalogue
from models.inputs.batches import batches
from models.training.gradient import train
from models.training.stage import Budget
from models.training.stage_model import StageModel
from tests.conformance.parts import CONTEXT, answered, heads_of, network
from tests.models.training.memory import NETWORK, Recorder, Rows, finetuning
from tests.models.training.test_gradient import STILL, weights

WEIGHT = 0.5


def made(head: str, **changes: Any) -> tuple[dict[str, Any], dict[str, np.ndarray], StageModel]:
    """Scorers, one batch, and the model of a head with masked_lm beside it."""
    network_of_both = network("bert", num_layers=1, **changes)
    data = answered(head)
    names = catalogue.answers_of(head).names(data.answers)
    context = replace(CONTEXT, label_names=names, rows=data)
    parts = {
        "masked_lm": catalogue.find("objectives", "masked_lm")(context, unit="word"),
        head: catalogue.find("heads", head)(context),
    }
    scorers = {name: part.attach(network_of_both) for name, part in parts.items()}
    feed = batches(
        {"rows": (data, 1.0)}, [parts[head]], context, 6, 5, on_copy=[parts["masked_lm"]]
    )
    model = StageModel(network_of_both, scorers, {"masked_lm": WEIGHT}, on_copy=["masked_lm"])
    return scorers, feed.batch(0), model


def gradient(model: StageModel, batch: dict[str, np.ndarray], variables: list) -> list[np.ndarray]:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = model.compute_loss(y_pred=model(batch))
    found = tape.gradient(
        loss, [v.value for v in variables], unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return [tf.convert_to_tensor(each).numpy() for each in found]


@pytest.mark.parametrize("head", heads_of("bert"))
def test_its_gradient_is_the_sum_of_both(head):
    scorers, batch, both = made(head, dropout=0.0)
    variables = both.trainable_variables
    copy = {key.removeprefix("copy/"): v for key, v in batch.items() if key.startswith("copy/")}
    if copy["token_ids"].ndim == 3:
        copy = {key: value.reshape(-1, *value.shape[2:]) for key, value in copy.items()}
    rows = {key: value for key, value in batch.items() if not key.startswith("copy/")}
    of_head = gradient(StageModel(both.network, {head: scorers[head]}), rows, variables)
    alone = StageModel(both.network, {"masked_lm": scorers["masked_lm"]})
    of_copy = gradient(alone, copy, variables)
    for found, one, other in zip(gradient(both, batch, variables), of_head, of_copy, strict=True):
        np.testing.assert_allclose(found, one + WEIGHT * other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("head", ["sequence_classification", "multiple_choice"])
def test_the_head_reads_whole_rows_and_the_copy_hides_words_of_the_same(head):
    _, batch, _ = made(head)
    assert not (batch["token_ids"] == CONTEXT.tokenizer.mask_id).any()
    copy = {key.removeprefix("copy/"): value for key, value in batch.items()}
    restored = copy["token_ids"].copy()
    weights, positions = copy["mask_weights"], copy["mask_positions"]
    for place in zip(*np.nonzero(weights), strict=True):
        restored[*place[:-1], positions[place]] = copy["mask_labels"][place]
    assert (copy["token_ids"] == CONTEXT.tokenizer.mask_id).any()
    np.testing.assert_array_equal(restored, batch["token_ids"])
    np.testing.assert_array_equal(copy["padding_mask"], batch["padding_mask"])


@pytest.mark.parametrize("head", heads_of("bert"))
def test_in_bfloat16_the_loss_is_about_the_same(head):
    losses = []
    for dtype in ("float32", "mixed_bfloat16"):
        _, batch, model = made(head, dropout=0.0, dtype=dtype)
        losses.append(float(model.compute_loss(y_pred=model(batch))))
    assert losses[1] == pytest.approx(losses[0], rel=0.03)


class Unread:
    """Rows that may be counted, and not be read."""

    answers = ("high",)
    ids = ("r0",)

    def __len__(self) -> int:
        return 1

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        raise AssertionError("rows that are not for training were read")


@pytest.mark.usefixtures("untraced")
def test_it_logs_both_losses_and_reads_training_rows_alone(tmp_path):
    job = finetuning(
        objectives={"masked_lm": {}},
        weights={"masked_lm": WEIGHT},
        budget=Budget("steps", 3),
        rows={"train": Rows(40, 1), "dev": Unread()},
        select=None,
    )
    report = Recorder()
    train(job, tmp_path, report)
    for row in report.rows:
        head, lm = row["sequence_classification/loss"], row["masked_lm/loss"]
        assert row["loss"] == pytest.approx(head + WEIGHT * lm)
    assert "heads/masked_lm.safetensors" in weights(tmp_path)


@pytest.mark.usefixtures("untraced")
def test_micro_batches_change_no_loss(tmp_path):
    losses = []
    for parts in (1, 4):
        report = Recorder()
        job = finetuning(
            objectives={"masked_lm": {}},
            network=NETWORK | STILL,
            head_settings={"dropout": 0.0},
            micro_batches=parts,
            budget=Budget("steps", 3),
            select=None,
        )
        train(job, tmp_path / str(parts), report)
        losses.append([row["loss"] for row in report.rows])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


SHARING = '''
"""Guesses the first word of a row from its own vector: what the network reads stays as it is."""

import keras

from models.layers.loss import cross_entropy
from models.layers.scorer import ScorerLayer

NEEDS = ()
PROVIDES = ()
CHOOSES = 0
PREPARES = False
KEEPS_INPUT = True


class FirstWord:
    chooses = CHOOSES

    def __init__(self, context):
        self.context = context

    def examples(self, batch, rng):
        assert "labels" in batch, "these are not the head's own rows"
        return batch | {"first_labels": batch["token_ids"][:, 1]}

    def attach(self, network):
        return _Scorer(network, self.context.tokenizer.vocabulary_size)


class _Scorer(ScorerLayer):
    def __init__(self, network, size):
        super().__init__(name="first_word")
        self.output_projection = keras.layers.Dense(size, name="output")
        self.output_projection.build((None, network.hidden_dim))
        self.built = True

    def call(self, batch, outputs, training=None):
        if "first_labels" not in batch:
            return {}, {}
        logits = self.output_projection(outputs["sequence_output"][:, 1])
        return cross_entropy(logits, batch["first_labels"], batch["row_weights"]), {}
'''


@pytest.mark.usefixtures("untraced")
def test_an_objective_that_leaves_the_rows_alone_scores_the_same_pass(tmp_path: Path):
    (tmp_path / "objectives").mkdir()
    (tmp_path / "objectives" / "first_word.py").write_text(SHARING)
    report = Recorder()
    job = finetuning(
        objectives={"first_word": {}},
        folders=(tmp_path,),
        budget=Budget("steps", 2),
        select=None,
    )
    train(job, tmp_path / "stage", report)
    assert report.rows[0]["first_word/loss"] > 1.0
