"""Heads on a frozen network: the mix against its equation, padding unseen, the network as is."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.settings import REPOSITORY
from models import catalogue
from models.layers.frozen_features import FeatureReader, FrozenFeatures, LayerMix
from models.training.gradient import train
from models.training.stage import Budget
from models.training.stage_model import StageModel
from models.weights import named_weights
from tests.conformance.parts import (
    FAMILIES,
    LENGTH,
    VOCABULARY_SIZE,
    heads_of,
    network,
    shallow,
    stage,
)
from tests.models.training.memory import Recorder, cut_off_after, finetuning, pretraining
from tests.models.training.test_gradient import weights
from tests.untraced import untraced

READER: dict[str, Any] = {"hidden_dim": 12, "num_layers": 2, "dropout": 0.2}
SHALLOW = READER | {"num_layers": 1}
HEADS = heads_of("bert")
RNG = np.random.default_rng(0)
# The others give one layer, so there is nothing to mix: tables of vectors, and recurrent networks.
ONE_LAYER = {name for name in FAMILIES if "static" in catalogue.provided(name)}
ONE_LAYER |= {"context2vec", "nnlm", "recurrent", "seq2seq"}
LAYERED = [family for family in FAMILIES if family not in ONE_LAYER]


def value(tensor: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(tensor)


def drawn(*shape: int) -> Any:
    return keras.ops.convert_to_tensor(RNG.normal(size=shape).astype(np.float32))


def features(rows: int = 3, length: int = LENGTH) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    ids = rng.integers(5, VOCABULARY_SIZE, (rows, length)).astype(np.int32)
    return {"token_ids": ids, "padding_mask": np.ones_like(ids)}


def test_the_mix_is_that_of_the_equation_and_begins_as_the_mean():
    layers = RNG.normal(size=(4, 2, 5, 3)).astype(np.float32)
    mix = LayerMix(4)
    np.testing.assert_allclose(value(mix(list(layers))), layers.mean(axis=0), atol=1e-6)
    w = np.array([0.3, -1.2, 2.0, 0.1], np.float32)
    mix.w.assign(w)
    mix.scale.assign(1.7)
    s = np.exp(w) / np.exp(w).sum()
    expected = 1.7 * np.einsum("j,jbtd->btd", s, layers)
    np.testing.assert_allclose(value(mix(list(layers))), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", LAYERED)
def test_all_layers_are_mixed_the_last_of_which_is_the_networks_output(family):
    made, batch = network(family), features()
    states = made.hidden_states(batch, training=False)
    assert len(states) == made.num_hidden_states
    np.testing.assert_array_equal(value(states[0]), value(made.embed(batch, training=False)))
    np.testing.assert_allclose(
        value(states[-1]), value(made(batch, training=False)["sequence_output"]), atol=1e-6
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_network_is_read_without_dropout(family):
    made, batch = network(family, dropout=0.5, **shallow(family)), features(length=6)
    frozen = FrozenFeatures(made, **SHALLOW)
    served = value(frozen(batch, training=False)["sequence_output"])
    assert served.shape == (3, 6, 24)
    assert (value(frozen(batch, training=True)["sequence_output"]) != served).any()
    frozen.reader.dropout.rate = 0.0
    np.testing.assert_array_equal(value(frozen(batch, training=True)["sequence_output"]), served)


@pytest.mark.parametrize("before", [0, 3], ids=["right", "both sides"])
def test_neither_direction_sees_the_padding(before: int):
    reader = FeatureReader(2, 6, **READER)
    layers = [drawn(1, 5, 6), drawn(1, 5, 6)]
    alone = value(reader(layers))
    padded = [
        keras.ops.concatenate([drawn(1, before, 6), layer, drawn(1, 4, 6)], axis=1)
        for layer in layers
    ]
    mask = np.array([[0] * before + [1] * 5 + [0] * 4], np.int32)
    found = value(reader(padded, padding_mask=mask))
    np.testing.assert_allclose(found[mask == 1], alone[0], atol=1e-6)
    assert not found[mask == 0].any()
    seen = value(reader(padded))[mask == 1]  # as if the padding were text
    assert np.abs(seen[-1] - alone[0, -1]).max() > 1e-3


def test_each_direction_reads_its_own_side():
    reader = FeatureReader(1, 6, **READER | {"num_layers": 1})
    x = drawn(1, 5, 6)
    changed = keras.ops.concatenate([x[:, :2], x[:, 2:3] + 1, x[:, 3:]], axis=1)
    moved = np.abs(value(reader([changed])) - value(reader([x])))[0] > 1e-6  # (5, 24)
    assert moved[:, :12].any(axis=-1).tolist() == [False, False, True, True, True]
    assert moved[:, 12:].any(axis=-1).tolist() == [True, True, True, False, False]


def framed(
    family: str, head: str, reader: dict[str, Any] = READER, **changes: Any
) -> tuple[Any, FrozenFeatures, StageModel]:
    """A stage's parts, and the model in which its head reads frozen features."""
    made = stage(family, (), head, **changes)
    frozen = FrozenFeatures(made.network, **reader)
    scorer = made.objectives[head].attach(frozen)
    return made, frozen, StageModel(frozen, {head: scorer})


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("head", HEADS)
def test_no_gradient_goes_through_the_network_and_every_other_weight_has_one(head, dtype):
    import tensorflow as tf

    made, frozen, model = framed("bert", head, num_layers=1, dtype=dtype)
    ours = {*map(id, made.network.weights)}
    trained = model.trainable_variables
    assert len(ours) > 20
    assert not ours & {*map(id, trained)}
    with tf.GradientTape() as tape:
        tape.watch([variable.value for variable in made.network.weights])
        loss = model.compute_loss(y_pred=model(made.batch, training=True))
    through, rest = tape.gradient(
        loss, ([v.value for v in made.network.weights], [v.value for v in trained])
    )
    assert through == [None] * len(ours)
    assert all(gradient is not None for gradient in rest)
    assert {*map(id, trained)} >= {*map(id, frozen.reader.weights)}


@pytest.mark.parametrize("head", HEADS)
def test_every_head_learns_and_the_network_stays(head):
    made, _, model = framed("bert", head, SHALLOW, num_layers=1)
    before = [value(variable).copy() for variable in made.network.weights]
    made.model = model
    losses = made.train(12, rate=1e-2)
    assert losses[-1] < losses[0]
    for variable, old in zip(made.network.weights, before, strict=True):
        np.testing.assert_array_equal(value(variable), old)


def test_a_family_that_gives_no_layers_is_read_at_its_last():
    folders = (REPOSITORY / "docs" / "examples",)
    family = catalogue.find("families", "word_average", folders)
    made = family(vocabulary_size=VOCABULARY_SIZE, hidden_dim=32)
    frozen, batch = FrozenFeatures(made, **READER), features()
    assert frozen.reader.mix.w.shape == (1,)
    assert frozen.hidden_dim == 24
    expected = frozen.reader([made(batch)["sequence_output"]], padding_mask=batch["padding_mask"])
    np.testing.assert_array_equal(value(frozen(batch)["sequence_output"]), value(expected))


def test_a_stage_trains_what_is_above_the_network_and_resumes_to_the_same_bits(tmp_path):
    general = tmp_path / "general"
    with untraced():
        train(pretraining(budget=Budget("steps", 1)), general)
    job = finetuning(
        general,
        feature_based=READER,
        r_drop={"alpha": 1.0},
        micro_batches=2,
        budget=Budget("steps", 10),
        checkpoint_every=4,
        select={"metric": "macro_f1", "split": "dev"},
    )
    report = Recorder()
    outcome = train(job, tmp_path / "whole", report)
    cut_off_after(8, tmp_path / "whole", tmp_path / "parts")
    train(job, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    name = "network.safetensors"
    assert (general / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    reader = load_file(tmp_path / "whole" / "heads" / "feature_based.safetensors")
    assert reader.keys() == named_weights(FeatureReader(2, 32, **READER)).keys()
    assert reader["mix/w"].shape == (2,)
    assert reader["mix/w"].any()
    head = load_file(tmp_path / "whole" / "heads" / "sequence_classification.safetensors")
    assert head["output/kernel"].shape == (24, 2)
    sizes = sum(array.size for array in (*reader.values(), *head.values()))
    assert outcome.trained_weights == sizes == report.rows[0]["trained_weights"]
    assert outcome.weights == sizes + sum(a.size for a in load_file(general / name).values())
