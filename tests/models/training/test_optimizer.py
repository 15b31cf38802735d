"""Optimizers against NumPy, the learning rate against formulas, and who is decayed."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from fourstage.errors import RecipeError
from fourstage.recipe.defaults import OPTIMIZERS
from models.families.bert import Bert
from models.families.context2vec import SIZES, Context2Vec
from models.families.t5 import T5
from models.families.transformer_xl import TransformerXL
from models.families.vilbert import Vilbert
from models.layers.crf import LinearChainCRF
from models.training.optimizer import (
    WarmupThenDecay,
    is_decayed,
    layer_depths,
    make_optimizer,
    schedule,
)
from tests.models.training.memory import NETWORK, RULE

CORRECTIONS = ("moments", "rate", "none")


def reference_rate(step: int, peak: float, total: int, warmup: int, decay: str) -> float:
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min((step - warmup) / max(total - warmup, 1), 1.0)
    return {
        "linear": peak * (1 - progress),
        "cosine": peak * 0.5 * (1 + math.cos(math.pi * progress)),
        "constant": peak,
        "inverse_square_root": peak * math.sqrt(max(warmup, 1) / max(step + 1, warmup, 1)),
    }[decay]


@pytest.mark.parametrize("decay", ["linear", "cosine", "constant", "inverse_square_root"])
@pytest.mark.parametrize(("total", "warmup"), [(100, 6), (10, 0), (7, 7), (1, 0)])
def test_the_learning_rate_follows_its_formula(decay, total, warmup):
    schedule = WarmupThenDecay(5e-4, total, warmup, decay)
    found = [float(schedule(step)) for step in range(total)]
    expected = [reference_rate(step, 5e-4, total, warmup, decay) for step in range(total)]
    # 1 + cos cancels near the end: float32 resolves the rate to peak * 2^-24 there.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-4 * 2**-24)
    assert min(found) > 0


def test_inverse_square_roots_follow_equation_3_of_the_transformer():
    width, warmup = 512, 40
    settings = {"peak_learning_rate": (width * warmup) ** -0.5, "warmup": warmup}
    found = schedule({**RULE, **settings, "decay": "inverse_square_root"}, 400)
    for step in range(1, 401):  # the paper counts from 1
        expected = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert float(found(step - 1)) == pytest.approx(expected, rel=1e-5), step


def test_slanted_triangular_rates_follow_equation_3_of_ulmfit():
    total, cut_frac, ratio, peak = 200, 0.1, 32, 0.01
    cut = int(total * cut_frac)
    settings = {"peak_learning_rate": peak, "warmup": cut_frac, "decay": "slanted_triangular"}
    found = schedule({**RULE, **settings, "ratio": ratio}, total)
    for t in range(total):
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / cut_frac - 1))
        expected = peak * (1 + p * (ratio - 1)) / ratio
        assert float(found(t)) == pytest.approx(expected, rel=1e-5), t
    assert float(found(0)) == pytest.approx(peak / ratio)


def test_warmup_is_a_share_below_one_and_steps_from_one_on():
    share = make_optimizer({**RULE, "warmup": 0.1}, total_steps=50)
    steps = make_optimizer({**RULE, "warmup": 5}, total_steps=50)
    assert share._learning_rate.warmup_steps == steps._learning_rate.warmup_steps == 5


class NumPyAdamW:
    """Loshchilov and Hutter 2019, algorithm 2, with the bias corrected in one of three ways."""

    def __init__(
        self, weights, rates, decayed, decay=0.01, beta_1=0.9, beta_2=0.98, clip=1.0, how="moments"
    ):
        self.how = how
        self.w = [w.astype(np.float64) for w in weights]
        self.m = [np.zeros_like(w) for w in self.w]
        self.v = [np.zeros_like(w) for w in self.w]
        self.rates, self.decayed, self.decay = rates, decayed, decay
        self.beta_1, self.beta_2, self.clip, self.t = beta_1, beta_2, clip, 0

    def step(self, grads, rate):
        self.t += 1
        norm = math.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in grads))
        grads = [g * self.clip / max(norm, self.clip) for g in grads]
        corrections = 1 - self.beta_1**self.t, 1 - self.beta_2**self.t
        for i, g in enumerate(grads):
            own = rate * self.rates[i]
            if self.decayed[i]:
                self.w[i] = self.w[i] * (1 - own * self.decay)
            self.m[i] += (g - self.m[i]) * (1 - self.beta_1)
            self.v[i] += (g**2 - self.v[i]) * (1 - self.beta_2)
            m, v, epsilon = self.m[i], self.v[i], 1e-6
            if self.how == "moments":
                m, v = m / corrections[0], v / corrections[1]
            elif self.how == "rate":
                own *= math.sqrt(corrections[1]) / corrections[0]
            self.w[i] = self.w[i] - own * m / (np.sqrt(v) + epsilon)
        return norm


@pytest.mark.parametrize("scale", [1.0, 1e-5], ids=["usual", "near epsilon"])
@pytest.mark.parametrize("how", CORRECTIONS)
@pytest.mark.parametrize("layer_decay", [1.0, 0.5])
def test_ten_updates_equal_numpy(layer_decay, how, scale):
    rng = np.random.default_rng(0)
    shapes = {
        "net/embeddings/token/table": (7, 4),
        "net/block_0/norm/gamma": (4,),
        "net/block_0/dense/kernel": (4, 4),
        "net/block_1/dense/bias": (4,),
        "net/pooler/kernel": (4, 2),
    }
    values = [rng.normal(size=shape).astype(np.float32) for shape in shapes.values()]
    variables = [keras.Variable(v) for v in values]
    for variable, path in zip(variables, shapes, strict=True):
        variable._path = path
    settings = {"peak_learning_rate": 0.05, "warmup": 2, "beta_2": 0.98, "bias_correction": how}
    settings["layer_decay"] = layer_decay
    optimizer = make_optimizer({**RULE, **settings}, total_steps=10)
    optimizer.build(variables)
    # embeddings 0, block_0 1, block_1 2, pooler 3
    rates = [layer_decay**3, layer_decay**2, layer_decay**2, layer_decay, 1.0]
    reference = NumPyAdamW(values, rates, [True, False, True, False, True], how=how)
    for step in range(10):
        grads = [rng.normal(scale=scale, size=v.shape).astype(np.float32) for v in values]
        norm = reference.step(grads, reference_rate(step, 0.05, 10, 2, "linear"))
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in grads], variables)
        assert float(optimizer.gradient_norm.numpy()) == pytest.approx(norm, rel=1e-5)
    for variable, expected in zip(variables, reference.w, strict=True):
        np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-5, atol=2e-6)


def test_moments_are_corrected_as_in_torch_where_gradients_are_near_epsilon():
    # torch.optim.AdamW([1.0], lr=.1, eps=1e-6, weight_decay=0) after ten gradients of 1e-5.
    moved = {}
    for how in CORRECTIONS:
        variable = keras.Variable(np.ones(1, np.float32))
        settings = {"peak_learning_rate": 0.1, "warmup": 0.0, "decay": "constant"}
        settings |= {"weight_decay": 0.0, "clip_norm": 0.0, "bias_correction": how}
        optimizer = make_optimizer({**RULE, **settings}, total_steps=10)
        optimizer.build([variable])
        for _ in range(10):
            optimizer.apply([keras.ops.full((1,), 1e-5)], [variable])
        moved[how] = 1.0 - float(variable.numpy()[0])
    assert moved["moments"] == pytest.approx(10 * 0.1 * 1e-5 / (1e-5 + 1e-6), rel=1e-4)
    # Without: epsilon counts thirty times as much in the first update, ten times in the tenth.
    assert moved["rate"] == pytest.approx(0.405, abs=0.005)


def test_layer_norms_and_biases_are_not_decayed_and_all_else_is():
    network = Bert(vocabulary_size=50, **NETWORK)
    decayed = {v.path for v in network.trainable_variables if is_decayed(v)}
    spared = {v.path for v in network.trainable_variables} - decayed
    assert spared
    assert all(path.endswith(("/gamma", "/beta", "/bias")) for path in spared), spared
    assert not [p for p in decayed if p.endswith(("/gamma", "/beta", "/bias"))]
    assert any(path.endswith("/kernel") for path in decayed)


def test_what_a_crf_adds_to_the_first_and_the_last_tag_is_not_decayed():
    """Of a weight per tag, as of a bias, the name does not tell."""
    crf = LinearChainCRF(np.ones((3, 3), bool), np.ones(3, bool), np.ones(3, bool))
    assert [(v.name, is_decayed(v)) for v in crf.trainable_variables] == [
        ("pairs", True),
        ("first", False),
        ("last", False),
    ]


def test_depth_follows_from_the_path():
    paths = [
        "bert/embeddings/x",
        "bert/block_0/y",
        "bert/block_11/z",
        "bert/pooler/k",
        "masked_lm/b",
    ]
    assert layer_depths(paths) == [0, 1, 12, 13, 13]


def test_what_stands_between_blocks_or_before_them_is_not_above_all():
    size = {"num_layers": 3, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 16}
    regions = {
        "num_region_layers": 2,
        "region_hidden_dim": 16,
        "num_region_heads": 2,
        "region_intermediate_dim": 16,
        "region_dim": 8,
    }

    def depths(network: Any) -> dict[str, int]:
        paths = [variable.path for variable in network.trainable_variables]
        return dict(zip(paths, layer_depths(paths), strict=True))

    found = depths(Vilbert(vocabulary_size=50, **size, **regions))
    assert found["vilbert/block_1/attention/query/kernel"] == 2
    assert found["vilbert/cross_0/attention/query/kernel"] == 2
    assert found["vilbert/cross_1/regions/output/kernel"] == 3
    assert found["vilbert/pooler/kernel"] == 4
    assert (
        depths(T5(vocabulary_size=50, **size, num_decoder_layers=1))["t5/relative_bias/table"] == 0
    )
    found = depths(TransformerXL(vocabulary_size=50, **size))
    assert found["transformerxl/biases/content_bias"] == 0
    found = depths(Context2Vec(vocabulary_size=50, **SIZES["tiny"] | {"num_layers": 2}))
    assert {path.split("/")[1]: depth for path, depth in found.items()} == {
        "embeddings": 0,
        "backward_embeddings": 0,
        "block_0_forward": 1,
        "block_0_backward": 1,
        "block_1_forward": 2,
        "block_1_backward": 2,
    }


def test_no_clipping_leaves_the_gradient_alone_and_still_reports_its_norm():
    variable = keras.Variable(np.zeros((2, 2), np.float32))
    optimizer = make_optimizer({**RULE, "clip_norm": 0}, total_steps=10)
    optimizer.build([variable])
    optimizer.apply([keras.ops.ones((2, 2)) * 100.0], [variable])
    assert float(optimizer.gradient_norm.numpy()) == pytest.approx(200.0)
    np.testing.assert_allclose(optimizer._momentums[0].numpy(), 10.0, rtol=1e-5)


@pytest.mark.parametrize("accumulation", [1, 2])
def test_gradient_descent_equals_numpy_and_moves_only_the_rows_that_were_read(accumulation: int):
    rng = np.random.default_rng(3)
    table = keras.Variable(rng.normal(size=(6, 3)).astype(np.float32))
    table._path = "net/embedding/table"
    kernel = keras.Variable(rng.normal(size=(3, 2)).astype(np.float32))
    kernel._path = "head/kernel"
    weights = [np.array(v.numpy(), np.float64) for v in (table, kernel)]
    settings = {**OPTIMIZERS["sgd"], "peak_learning_rate": 0.2, "layer_decay": 0.5}
    optimizer = make_optimizer(settings, total_steps=4, accumulation=accumulation, name="sgd")
    optimizer.build([table, kernel])
    for update in range(4):
        mean = [np.zeros_like(w) for w in weights]
        for _ in range(accumulation):
            rows = rng.choice([0, 2, 3, 5], 5)  # some of them twice
            parts = rng.normal(size=(5, 3)).astype(np.float32)
            dense = rng.normal(size=(3, 2)).astype(np.float32)
            np.add.at(mean[0], rows, parts / accumulation)
            mean[1] += dense / accumulation
            sparse = tf.IndexedSlices(tf.constant(parts), tf.constant(rows), tf.constant([6, 3]))
            optimizer.apply([sparse, tf.constant(dense)], [table, kernel])
        norm = np.sqrt(sum((g**2).sum() for g in mean))
        assert float(optimizer.gradient_norm.numpy()) == pytest.approx(norm, rel=1e-5)
        for weight, gradient, share in zip(weights, mean, (0.5, 1.0), strict=True):
            weight -= 0.2 * (1 - update / 4) * share * gradient
    for variable, expected in zip((table, kernel), weights, strict=True):
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_gradient_descent_clips_the_norm_of_all_rows():
    table = keras.Variable(np.zeros((4, 2), np.float32))
    settings = {**OPTIMIZERS["sgd"], "peak_learning_rate": 1.0, "clip_norm": 0.5}
    optimizer = make_optimizer(settings, total_steps=10, name="sgd")
    optimizer.build([table])
    twice = tf.IndexedSlices(tf.ones((2, 2)), tf.constant([1, 1]), tf.constant([4, 2]))
    optimizer.apply([twice], [table])
    assert float(optimizer.gradient_norm.numpy()) == pytest.approx(8**0.5)
    expected = np.zeros((4, 2))
    expected[1] = -2.0 * 0.5 / 8**0.5
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-6)


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


def adafactor(w: np.ndarray, g: np.ndarray, t: int, rate: float, held: dict) -> np.ndarray:
    """Shazeer and Stern 2018, algorithm 4 for matrices, 5 for vectors; no first moments."""
    kept, square = 1 - t**-0.8, g**2 + 1e-30
    if w.ndim == 2:
        held["r"] = kept * held.get("r", 0) + (1 - kept) * square.mean(axis=1)
        held["c"] = kept * held.get("c", 0) + (1 - kept) * square.mean(axis=0)
        v = np.outer(held["r"], held["c"]) / held["r"].mean()
    else:
        v = held["v"] = kept * held.get("v", 0) + (1 - kept) * square
    u = g / np.sqrt(v)
    return max(1e-3, rms(w)) * min(rate, 1 / np.sqrt(t)) * u / max(1, rms(u))


def adagrad(w: np.ndarray, g: np.ndarray, t: int, rate: float, held: dict) -> np.ndarray:
    held["sum"] = held.get("sum", 0.1) + g**2
    return rate * g / np.sqrt(held["sum"] + 1e-7)


def lamb(w: np.ndarray, g: np.ndarray, t: int, rate: float, held: dict) -> np.ndarray:
    """You et al. 2020, algorithm 2; as in apex's FusedLAMB, what is not decayed has Adam's step."""
    held["m"] = 0.9 * held.get("m", 0) + 0.1 * g
    held["v"] = 0.999 * held.get("v", 0) + 0.001 * g**2
    u = held["m"] / (1 - 0.9**t) / (np.sqrt(held["v"] / (1 - 0.999**t)) + 1e-6)
    ratio = np.linalg.norm(w) / np.linalg.norm(u) if w.ndim == 2 and w.any() else 1.0
    return rate * ratio * u


def muon(w: np.ndarray, g: np.ndarray, t: int, rate: float, held: dict) -> np.ndarray:
    """Jordan et al. 2024 for matrices, made as long as Adam's update; Adam for what is none."""
    if w.shape != (3, 5):
        held["m"] = 0.9 * held.get("m", 0) + 0.1 * g
        held["v"] = 0.98 * held.get("v", 0) + 0.02 * g**2
        corrected = rate * np.sqrt(1 - 0.98**t) / (1 - 0.9**t)
        return corrected * held["m"] / (np.sqrt(held["v"]) + 1e-6)
    held["m"] = 0.95 * held.get("m", 0) + g
    x = g + 0.95 * held["m"]  # Nesterov's
    x = x / np.linalg.norm(x)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return rate * 0.2 * np.sqrt(max(w.shape)) * x


@pytest.mark.parametrize("rule", [adafactor, adagrad, lamb, muon])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_optimizers_of_keras_equal_numpy(rule, accumulation: int):
    rng = np.random.default_rng(5)
    paths = {
        "net/embedding/table": ((4, 3), 1.0),
        "net/block_0/kernel": ((3, 5), 1.0),
        "head/norm/gamma": ((5,), 1.0),
        "head/dense/bias": ((5,), 0.0),
        "head/pairs": ((2, 2), 0.0),
    }
    variables = []
    for path, (shape, scale) in paths.items():
        variables.append(keras.Variable(rng.normal(scale=scale, size=shape).astype(np.float32)))
        variables[-1]._path = path
    weights = [np.array(v.numpy(), np.float64) for v in variables]
    settings = {**OPTIMIZERS[rule.__name__], "peak_learning_rate": 0.3, "layer_decay": 0.5}
    settings |= {"decay": "linear", "warmup": 0.0, "clip_norm": 0.0}
    optimizer = make_optimizer(
        settings, total_steps=4, accumulation=accumulation, name=rule.__name__
    )
    optimizer.build(variables)
    held: list[dict] = [{} for _ in weights]
    for update in range(4):
        mean = [np.zeros_like(w) for w in weights]
        for _ in range(accumulation):
            found = [rng.normal(size=w.shape).astype(np.float32) for w in weights]
            for total, part in zip(mean, found, strict=True):
                total += part / accumulation
            optimizer.apply([tf.constant(g) for g in found], variables)
        for i, (weight, share) in enumerate(zip(weights, (0.25, 0.5, 1.0, 1.0, 1.0), strict=True)):
            rate = 0.3 * (1 - update / 4) * share
            if weight.ndim == 2:
                weight *= 1 - rate * settings.get("weight_decay", 0.0)
            weight -= rule(weight, mean[i], update + 1, rate, held[i])
    for variable, expected in zip(variables, weights, strict=True):
        np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-5, atol=2e-6)


def test_muon_moves_the_matrices_of_the_blocks_and_adam_all_else():
    network = Bert(vocabulary_size=50, **NETWORK)
    variables = network.trainable_variables
    settings = {**OPTIMIZERS["muon"], "clip_norm": 0.0}
    optimizer = make_optimizer(settings, total_steps=4, name="muon")
    optimizer.build(variables)
    gradients = [np.random.default_rng(9).normal(size=v.shape) for v in variables]
    before = [v.numpy() for v in variables]
    optimizer.apply([tf.constant(g, tf.float32) for g in gradients], variables)
    kernels = 0
    for variable, old in zip(variables, before, strict=True):
        moved = (variable.numpy() - old) / optimizer.learning_rate_of(0)
        if "block_" in variable.path and variable.path.endswith("kernel"):
            kernels += 1
            values = np.linalg.svd(moved, compute_uv=False)
            # Five iterations bring every singular value to between about .7 and 1.2.
            assert 0.5 < values.min() / (0.2 * max(moved.shape) ** 0.5), variable.path
            assert values.max() / (0.2 * max(moved.shape) ** 0.5) < 1.3, variable.path
        else:  # the first update of Adam is the gradient's sign, less where it is near epsilon
            np.testing.assert_allclose(np.abs(moved), 1.0, atol=0.05, err_msg=variable.path)
    assert kernels == 12


def test_muon_is_refused_where_no_weight_is_a_matrix_of_a_block():
    variable = keras.Variable(np.eye(3, dtype=np.float32))
    variable._path = "net/embedding/embeddings"
    optimizer = make_optimizer(OPTIMIZERS["muon"], total_steps=4, name="muon")
    with pytest.raises(RecipeError, match=r"optimizer\.muon: .*use adamw"):
        optimizer.build([variable])


def of_keras(name: str, accumulation: int = 1) -> tuple[list[keras.Variable], Any]:
    """Two variables and an optimizer for them."""
    variables = [keras.Variable(np.eye(3, dtype=np.float32)) for _ in range(2)]
    for number, variable in enumerate(variables):
        variable._path = f"net/block_{number}/kernel"
    settings = {**OPTIMIZERS.get(name, RULE), "decay": "constant", "warmup": 0.0}
    optimizer = make_optimizer(settings, total_steps=50, accumulation=accumulation, name=name)
    optimizer.build(variables)
    return variables, optimizer


@pytest.mark.parametrize("name", ["adamw", *sorted(OPTIMIZERS)])
def test_a_variable_that_rests_at_first_then_moves_as_from_the_start(name: str):
    gradients = np.random.default_rng(7).normal(size=(3, 3, 3)).astype(np.float32)
    moved = []
    for first in (0, 20):
        (early, late), optimizer = of_keras(name)
        optimizer.begin_at([(early, 0), (late, first)])
        for update in range(first + 3):
            optimizer.rest([late] if update < first else [])
            own = tf.constant(gradients[max(update - first, 0)])
            optimizer.apply([tf.ones((3, 3)), own], [early, late])
        moved.append(late.numpy())
    np.testing.assert_array_equal(*moved)


@pytest.mark.parametrize("accumulation", [1, 2])
@pytest.mark.parametrize("name", ["adamw", *sorted(OPTIMIZERS)])
def test_a_variable_that_rests_in_turns_moves_as_one_that_never_rests(name: str, accumulation: int):
    gradients = np.random.default_rng(7).normal(size=(3, 3, 3)).astype(np.float32)
    moved = []
    for turns in (1, 4):
        (always, some), optimizer = of_keras(name, accumulation)
        if turns > 1:
            optimizer.count([some])
        for update in range(3 * turns):
            optimizer.rest([some] if update % turns else [])
            for _ in range(accumulation):
                own = tf.constant(gradients[update // turns])
                optimizer.apply([tf.ones((3, 3)), own], [always, some])
        moved.append(some.numpy())
    np.testing.assert_array_equal(*moved)


@pytest.mark.parametrize("name", ["adamw", *sorted(OPTIMIZERS)])
def test_a_checkpoint_of_weights_and_optimizer_goes_on_to_the_same_bits(name: str):
    gradients = np.random.default_rng(8).normal(size=(4, 2, 3, 3)).astype(np.float32)
    kept: list[np.ndarray] = []
    ends = []
    for begin in (0, 2):
        variables, optimizer = of_keras(name)
        for variable, array in zip([*variables, *optimizer.variables], kept, strict=False):
            variable.assign(array)
        for update in range(begin, 4):
            optimizer.apply([tf.constant(g) for g in gradients[update]], variables)
            if update == 1:
                kept = [v.numpy().copy() for v in (*variables, *optimizer.variables)]
        ends.append(np.stack([v.numpy() for v in variables]))
    np.testing.assert_array_equal(*ends)
