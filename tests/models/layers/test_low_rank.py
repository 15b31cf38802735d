"""LoRA against its formula, and merged against unmerged."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import RecipeError
from models import catalogue
from models.layers.low_rank import LowRankUpdate, add_low_rank
from models.layers.projection import ActivatedProjection, projection
from models.training.gradient import train
from models.training.stage import Budget
from tests.conformance.parts import family_of, network, stage
from tests.models.training.memory import cut_off_after, finetuning, pretraining
from tests.models.training.test_gradient import weights
from tests.untraced import untraced

LORA: dict[str, Any] = {"rank": 2, "alpha": 8.0, "targets": ["query", "value"], "dropout": 0.0}


def drawn(variable: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    variable.assign(rng.normal(size=variable.shape).astype(np.float32))


def test_it_adds_a_scaled_product_of_two_matrices_and_starts_from_nothing():
    dense = projection(5, name="query", dtype="float32")
    dense.build((None, 4))
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    plain = np.asarray(dense(x))
    update = LowRankUpdate(dense, rank=2, alpha=6.0, dropout=0.0)
    np.testing.assert_array_equal(np.asarray(dense(x)), plain)
    drawn(update.b, 1)
    a, b = np.asarray(update.a), np.asarray(update.b)
    expected = x @ (np.asarray(dense.kernel) + 6.0 / 2 * a @ b) + np.asarray(dense.bias)
    np.testing.assert_allclose(np.asarray(dense(x)), expected, rtol=1e-5, atol=1e-6)
    update.merge()
    assert dense.beside is None
    np.testing.assert_allclose(np.asarray(dense(x)), expected, rtol=1e-5, atol=1e-6)


def test_before_an_activation_too():
    dense = ActivatedProjection(5, activation="gelu", name="intermediate", dtype="float32")
    dense.build((None, 4))
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    update = LowRankUpdate(dense, rank=2, alpha=6.0, dropout=0.0)
    drawn(update.b, 1)
    unmerged = np.asarray(dense(x))
    update.merge()
    np.testing.assert_allclose(np.asarray(dense(x)), unmerged, rtol=1e-4, atol=1e-6)


def test_dropout_is_for_training():
    dense = projection(5, name="query", dtype="float32")
    dense.build((None, 4))
    update = LowRankUpdate(dense, rank=2, alpha=6.0, dropout=0.5)
    drawn(update.b, 1)
    x = np.ones((50, 4), np.float32)
    trained, served = (np.asarray(dense(x, training=training)) for training in (True, False))
    assert len(np.unique(trained, axis=0)) > 1
    assert len(np.unique(served, axis=0)) == 1


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("head", catalogue.names("heads"))
def test_merged_predicts_as_unmerged_under_every_head(head, dtype):
    made = stage(family_of(head), (), head, num_layers=1, dropout=0.0, dtype=dtype)
    updates = add_low_rank("finetune", made.network, **LORA)
    assert {v.path.split("/")[-1] for u in updates for v in u.trainable_variables} == {"a", "b"}
    assert not made.network.trainable_variables
    for number, update in enumerate(updates):
        update.b.assign(0.1 * np.random.default_rng(number).normal(size=update.b.shape))
    _, unmerged = made.scores()
    for update in updates:
        update.merge()
    _, merged = made.scores()
    scale = {"float32": 1e-4, "mixed_bfloat16": 0.1}[dtype]
    for name, value in unmerged.items():
        found, expected = (keras.ops.convert_to_numpy(each) for each in (merged[name], value))
        np.testing.assert_allclose(found, expected, rtol=scale, atol=scale, err_msg=name)


def test_a_stage_trains_updates_and_head_resumes_to_the_same_bits_and_leaves_plain_weights(
    tmp_path,
):
    general = tmp_path / "general"
    with untraced():
        train(pretraining(budget=Budget("steps", 1)), general)
    job = finetuning(
        general,
        lora={**LORA, "dropout": 0.1},
        budget=Budget("steps", 10),
        checkpoint_every=4,
        select={"metric": "macro_f1", "split": "dev"},
    )
    outcome = train(job, tmp_path / "whole")
    cut_off_after(8, tmp_path / "whole", tmp_path / "parts")
    train(job, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    old, new = (
        load_file(folder / "network.safetensors") for folder in (general, tmp_path / "whole")
    )
    assert old.keys() == new.keys()
    for name, array in old.items():
        adapted = name.endswith(("query/kernel", "value/kernel"))
        assert np.array_equal(array, new[name]) is not adapted, name
    # A block of 32: A and B of two projections; the head has two labels.
    assert outcome.trained_weights == 2 * (32 * 2 + 2 * 32) + 32 * 2 + 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"targets": ["querry"]}, "no projection 'querry'; there are inter.*, key, output"),
        ({"rank": 128}, "lora.rank: expected less than the width of query, "),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting, message):
    with pytest.raises(RecipeError, match=message):
        add_low_rank("finetune", network("bert"), **LORA | setting)
