"""Remedies against forgetting, against closed forms and NumPy; pulled stages resume alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import RecipeError
from fourstage.recipe.defaults import OPTIMIZERS
from models.training.gradient import train
from models.training.optimizer import make_optimizer
from models.training.remedies import EWC, L2SP, RecAdam
from models.training.stage import Phase
from tests.models.training.memory import (
    RULE,
    Corpus,
    cut_off_after,
    pretraining,
)
from tests.models.training.test_gradient import weights
from tests.untraced import untraced

START = np.array([1.0, -2.0, 0.5], np.float32)
# The task's loss is ½ Σ a (θ - b)².
A, B = np.array([1.0, 0.5, 2.0], np.float32), np.array([3.0, 4.0, -1.0], np.float32)


def descend(remedy: Any, variables: list[Any], steps: int = 300) -> None:
    """Plain gradient descent on the task's loss, from where the remedy starts."""
    settings = {"peak_learning_rate": 0.2, "decay": "constant", "clip_norm": 0.0}
    optimizer = make_optimizer({**OPTIMIZERS["sgd"], **settings}, total_steps=steps, name="sgd")
    optimizer.build(variables)
    optimizer.remedy = remedy
    remedy.start()
    for _ in range(steps):
        optimizer.apply([A * (v.value - B) for v in variables], variables)


def test_l2_sp_ends_between_the_start_and_the_task_and_leaves_heads_alone():
    network, head = keras.Variable(START), keras.Variable(START)
    descend(L2SP([network], strength=0.7), [network, head])
    np.testing.assert_allclose(network.numpy(), (A * B + 0.7 * START) / (A + 0.7), rtol=1e-5)
    np.testing.assert_allclose(head.numpy(), B, rtol=1e-5)


class Linear:
    """½ (w x - y)² of one row."""

    def __init__(self, w: Any):
        self.w = w

    def __call__(self, batch: Any, training: bool) -> Any:
        assert not training  # no dropout
        return keras.ops.sum(self.w * batch["x"])

    def compute_loss(self, x: Any, y_pred: Any) -> Any:
        return 0.5 * keras.ops.square(y_pred - x["y"][0])


def test_ewc_weighs_what_mattered_before_and_ends_at_the_minimum_of_two_quadratics():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3)).astype(np.float32) * [3.0, 1.0, 0.1]
    answers = rng.normal(size=50).astype(np.float32)
    network = keras.Variable(START)
    remedy = EWC([network], strength=0.7, samples=50)
    remedy.measure(
        Linear(network),
        ({"x": x.astype(np.float32), "y": y[None]} for x, y in zip(rows, answers, strict=True)),
    )
    importance = np.mean(((rows @ START - answers)[:, None] * rows) ** 2, axis=0)
    importance /= importance.mean()
    np.testing.assert_allclose(remedy.importance(network).numpy(), importance, rtol=1e-4)
    descend(remedy, [network])
    expected = (A * B + 0.7 * importance * START) / (A + 0.7 * importance)
    np.testing.assert_allclose(network.numpy(), expected, rtol=1e-4)


def test_rec_adam_follows_its_algorithm():
    """Chen et al. 2020, algorithm 2, with Adam's step of the paper."""
    network, head = keras.Variable(START), keras.Variable(START)
    remedy = RecAdam([network], pull=4.0, speed=0.5, midpoint=6)
    settings = {"peak_learning_rate": 0.1, "warmup": 0.0, "decay": "constant"}
    settings |= {"weight_decay": 0.0, "clip_norm": 0.0, "beta_2": 0.98}
    optimizer = make_optimizer({**RULE, **settings}, total_steps=12)
    optimizer.build([network, head])
    optimizer.remedy = remedy
    remedy.start()
    for variable, pulled in ((network, True), (head, False)):
        weights, m, v = START.astype(np.float64), np.zeros(3), np.zeros(3)
        for t in range(12):
            gradient = A * (weights - B)
            m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
            step = -0.1 * (m / (1 - 0.9 ** (t + 1))) / (np.sqrt(v / (1 - 0.98 ** (t + 1))) + 1e-6)
            share = 1 / (1 + np.exp(-0.5 * (t - 6))) if pulled else 1.0
            weights = weights + share * step - 0.1 * (1 - share) * 4.0 * (weights - START)
            if pulled:
                both = [A * (each.value - B) for each in (network, head)]
                optimizer.apply(both, [network, head])
        np.testing.assert_allclose(variable.numpy(), weights, rtol=1e-4)


@pytest.mark.parametrize("name", ["adamw", *sorted(OPTIMIZERS)])
def test_weight_decay_is_a_part_of_the_step_that_rec_adam_anneals(name: str):
    """Long before the midpoint nothing moves."""
    variable = keras.Variable(np.diag(START))
    variable._path = "net/block_0/kernel"
    settings = OPTIMIZERS.get(name, RULE) | {"peak_learning_rate": 0.1, "warmup": 0.0}
    settings |= {"weight_decay": 0.1} if "weight_decay" in settings else {}
    optimizer = make_optimizer(settings, total_steps=200, name=name)
    optimizer.build([variable])
    optimizer.remedy = RecAdam([variable], pull=0.0, speed=0.5, midpoint=1000)
    optimizer.remedy.start()
    for _ in range(2):
        optimizer.apply([keras.ops.ones((3, 3))], [variable])
    np.testing.assert_array_equal(variable.numpy(), np.diag(START))


def test_parts_of_a_batch_are_pulled_once():
    settings = {"peak_learning_rate": 0.2, "warmup": 0.0, "decay": "constant", "clip_norm": 0.0}
    remedies = [(L2SP, {"strength": 0.7}), (RecAdam, {"pull": 1.0, "speed": 0.5, "midpoint": 2})]
    for made, said in remedies:
        ends = []
        for parts in (1, 2):
            variable = keras.Variable(START)
            optimizer = make_optimizer({**RULE, **settings}, total_steps=4, accumulation=parts)
            optimizer.build([variable])
            optimizer.remedy = made([variable], **said)
            optimizer.remedy.start()
            for _ in range(4):
                # Of two parts the gradients are one and a half times, and half of the whole's.
                whole = A * (variable.numpy() - B)
                for share in (1.0,) if parts == 1 else (1.5, 0.5):
                    optimizer.apply([keras.ops.convert_to_tensor(share * whole)], [variable])
            ends.append(variable.numpy())
        np.testing.assert_allclose(*ends, rtol=1e-5)


@pytest.fixture(scope="module")
def general(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that has read one text."""
    folder = tmp_path_factory.mktemp("general")
    with untraced():
        train(pretraining(objectives={"masked_lm": {}}), folder)
    return folder


def domain(initial: Path, **changes: Any) -> Any:
    """It goes on with another."""
    settings = {"kind": "domain", "initial": initial, "objectives": {"masked_lm": {}}}
    settings |= {"corpora": {"b": (Corpus(60, 7), 1.0)}, "heldout": {}, "phases": [Phase(32)]}
    return pretraining(**settings, **changes)


def distance(folder: Path, start: Path) -> float:
    """How far a network's weights are from another's."""
    one, two = (load_file(each / "network.safetensors") for each in (folder, start))
    return float(np.sqrt(sum(np.sum((one[name] - two[name]) ** 2) for name in one)))


@pytest.fixture(scope="module")
def free(general: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It went on, and nothing pulled."""
    folder = tmp_path_factory.mktemp("free")
    with untraced():
        train(domain(general), folder)
    return folder


@pytest.mark.parametrize(
    "remedy",
    [
        {"ewc": {"strength": 1.0, "samples": 20}},
        {"rec_adam": {"pull": 100.0, "speed": 0.5, "midpoint": 10}},
    ],
    ids=lambda remedy: next(iter(remedy)),
)
def test_a_pulled_stage_stays_nearer_to_its_start_and_resumes_to_the_same_bits(
    remedy, general, free, tmp_path
):
    job = domain(general, remedies=remedy, earlier={"a": (Corpus(60, 1), 1.0)})
    train(job, tmp_path / "whole")
    near, far = (distance(folder, general) for folder in (tmp_path / "whole", free))
    assert 0 < near < 0.9 * far
    cut_off_after(8, tmp_path / "whole", tmp_path / "parts")
    train(job, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


def test_ewc_is_refused_where_there_is_no_row_by_itself(general, tmp_path):
    job = domain(
        general,
        remedies={"ewc": {"strength": 1.0, "samples": 20}},
        earlier={"a": (Corpus(60, 1), 1.0)},
        alternate=True,
    )
    with pytest.raises(RecipeError, match="ewc: not where objectives take turns; use l2_sp"):
        train(job, tmp_path)
