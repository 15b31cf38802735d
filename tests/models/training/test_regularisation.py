"""R-Drop against NumPy, FGM against gradients by hand."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from models import catalogue
from models.layers.divergence import symmetric_binary_kl, symmetric_kl
from models.training.adversarial import AdversarialStageModel
from models.training.gradient import train
from models.training.stage import Budget
from models.training.stage_model import StageModel
from tests.conformance.parts import family_of, stage
from tests.models.training.memory import Recorder, cut_off_after, finetuning
from tests.models.training.test_gradient import weights


def test_the_divergence_is_the_mean_of_both_directions():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 4, 3)).astype(np.float32)
    p, q = (np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (first, second))
    both = (p * np.log(p / q)).sum(-1) / 2 + (q * np.log(q / p)).sum(-1) / 2
    counted = np.array([1, 0, 2, 1], np.float32)
    total, weight = symmetric_kl(first, second, counted)
    assert float(total) == pytest.approx((counted * both).sum(), rel=1e-5)
    assert float(weight) == 4
    yes, other = p[:, 0], q[:, 0]
    pairs = [np.stack([x, 1 - x], -1) for x in (yes, other)]
    total, _ = symmetric_binary_kl(yes, other, counted)
    expected, _ = symmetric_kl(np.log(pairs[0]), np.log(pairs[1]), counted)
    assert float(total) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("head", catalogue.names("heads"))
def test_r_drop_is_the_plain_loss_without_dropout_and_more_with_it(head, dtype):
    losses = {}
    for dropout in (0.0, 0.3):
        made = stage(family_of(head), (), head, num_layers=1, dropout=dropout, dtype=dtype)
        if not hasattr(made.scorers[head], "divergence"):
            pytest.skip("refused with this head")
        if not dropout and hasattr(made.scorers[head], "dropout"):
            made.scorers[head].dropout.rate = 0.0
        model = StageModel(made.network, made.scorers, r_drop={head: 5.0})
        scores, _ = model.outputs(made.batch, training=True, twice=True)
        losses[dropout] = float(scores["r_drop"]["loss"][0])
        plain = model(made.batch, training=False)
        assert set(plain) == {head}
        assert float(scores[head]["loss"][1]) == pytest.approx(float(plain[head]["loss"][1]))
        total = sum(
            factor * float(scores[name]["loss"][0]) / float(scores[name]["loss"][1])
            for name, factor in ((head, 1.0), ("r_drop", 5.0))
        )
        assert float(model.compute_loss(y_pred=scores)) == pytest.approx(total, rel=1e-5)
    assert losses[0.0] == pytest.approx(0.0, abs=1e-5)
    assert losses[0.3] > 1e-7


def value(variable: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(variable).copy()


def gradients(model: StageModel, batch: Any) -> list[np.ndarray]:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = model.compute_loss(y_pred=model(batch, training=True))
    found = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return [0.0 if g is None else tf.convert_to_tensor(g).numpy() for g in found]


@pytest.mark.parametrize("head", ["sequence_classification", "multiple_choice"])
def test_fgm_adds_the_gradient_at_embeddings_moved_by_epsilon_and_puts_them_back(head):
    made = stage(family_of(head), (), head, num_layers=1, dropout=0.0)
    made.scorers[head].dropout.rate = 0.0
    plain, table = StageModel(made.network, made.scorers), made.network.token_embedding.embeddings
    variables = plain.trainable_variables
    before = [value(v) for v in variables]
    place = next(i for i, v in enumerate(variables) if v is table)
    first = gradients(plain, made.batch)
    step = 0.5 * first[place] / np.linalg.norm(first[place])
    assert np.linalg.norm(step) == pytest.approx(0.5, rel=1e-5)
    table.assign(before[place] + step)
    second = gradients(plain, made.batch)
    table.assign(before[place])

    model = AdversarialStageModel(made.network, made.scorers, epsilon=0.5)
    model.compile(optimizer=keras.optimizers.SGD(1.0), jit_compile=False)
    model.trace_for(made.batch, lengths_vary=False)
    model.train_on_batch(made.batch)
    for variable, old, one, two in zip(variables, before, first, second, strict=True):
        np.testing.assert_allclose(value(variable), old - (one + two), rtol=1e-3, atol=2e-5)

    table.trainable = False
    kept = value(table)
    frozen = AdversarialStageModel(made.network, made.scorers, epsilon=0.5)
    frozen.compile(optimizer=keras.optimizers.SGD(1.0), jit_compile=False)
    frozen.trace_for(made.batch, lengths_vary=False)
    frozen.train_on_batch(made.batch)
    np.testing.assert_array_equal(value(table), kept)


def test_both_together_beside_a_language_model_resume_to_the_same_bits(tmp_path):
    job = finetuning(
        r_drop={"alpha": 2.0},
        fgm={"epsilon": 0.5},
        objectives={"masked_lm": {}},
        weights={"masked_lm": 0.5},
        micro_batches=2,
        budget=Budget("steps", 5),
        select=None,
        checkpoint_every=3,
    )
    report = Recorder()
    train(job, tmp_path / "whole", report)
    cut_off_after(3, tmp_path / "whole", tmp_path / "parts")
    train(job, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    for row in report.rows:
        parts = row["sequence_classification/loss"] + 0.5 * row["masked_lm/loss"]
        assert row["r_drop/loss"] > 0
        assert row["loss"] == pytest.approx(parts + 2.0 * row["r_drop/loss"], rel=1e-5)


def test_r_drop_without_dropout_is_refused_before_any_work():
    wanted = ["stages.finetune.r_drop={}", "stages.finetune.head.sequence_classification.dropout=0"]
    with pytest.raises(RecipeError, match="r_drop: dropout is 0 in network and head"):
        resolve(load_recipe("quickstart", wanted))
    # On a frozen network that of the features counts.
    resolve(load_recipe("quickstart", [*wanted, "stages.finetune.feature_based={}"]))
    with pytest.raises(RecipeError, match="give `feature_based` or the head a dropout"):
        resolve(load_recipe("quickstart", [*wanted, "stages.finetune.feature_based.dropout=0"]))
