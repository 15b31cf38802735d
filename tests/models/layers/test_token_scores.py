"""Cross-entropy in chunks: the numbers and gradients of all logits at once, and NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from models.layers import token_scores as module
from models.layers.token_scores import token_scores

NEVER = 1


def _case(rows: int, tokens: int = 13, width: int = 5, seed: int = 0) -> list[np.ndarray]:
    """States (2, R / 2, E), table, bias, labels and weights, of which some are 0."""
    rng = np.random.default_rng(seed)
    shape = (2, rows // 2)
    states = rng.normal(size=(*shape, width)).astype(np.float32)
    table, bias = (rng.normal(size=size).astype(np.float32) for size in ((tokens, width), tokens))
    labels = rng.integers(0, tokens, shape).astype(np.int32)
    weights = rng.random(shape) * (rng.random(shape) < 0.8)
    weights[0, 0] = 0.7
    return [states, table, bias, labels, weights.astype(np.float32)]


def _scored(case: list[Any], training: bool, **settings: Any) -> tuple[dict, list[np.ndarray]]:
    """Scores, and gradients of their mean loss by states, table and bias."""
    dtype = settings.pop("compute_dtype", "float32")
    states, table, bias, labels, weights = map(tf.convert_to_tensor, case)
    with tf.GradientTape() as tape:
        tape.watch([states, table, bias])
        scores = token_scores(
            states, table, bias, labels, weights, dtype, training=training, **settings
        )
        mean = scores["loss"][0] / scores["loss"][1]
    gradients = tape.gradient(mean, [states, table, bias])
    return scores, [gradient.numpy() for gradient in gradients]


def _expected(case: list[np.ndarray], spread: float) -> tuple[float, float]:
    """Σ w·nats and Σ w·[hit], from the definition."""
    states, table, bias, labels, weights = (each.astype(np.float64) for each in case)
    labels = labels.astype(int)
    logits = states @ table.T + bias
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    wanted = np.full(logits.shape, spread / (logits.shape[-1] - 1))
    wanted[..., NEVER] = 0.0
    at = np.indices(labels.shape)
    wanted[at[0], at[1], labels] += 1.0 - spread
    nats = -(wanted * log_p).sum(axis=-1)
    hits = logits.argmax(axis=-1) == labels
    return float((weights * nats).sum()), float((weights * hits).sum())


@pytest.mark.parametrize("spread", [0.0, 0.1])
@pytest.mark.parametrize("rows", [2, 8, 22])  # fewer than a chunk, one, and several with a rest
def test_chunks_give_what_all_logits_at_once_give(monkeypatch, rows: int, spread: float) -> None:
    monkeypatch.setattr(module, "FEWEST", 8)
    monkeypatch.setattr(module, "MOST", 8)
    case = _case(rows)
    smoothing = {"spread": spread, "never": NEVER}
    ours, gradients = _scored(case, True, **smoothing)
    whole, wanted = _scored(case, False, **smoothing)
    nats, hits = _expected(case, spread)
    monkeypatch.setattr(module, "LARGEST", 8 * case[1].shape[0])
    parts, by_parts = _scored(case, False, **smoothing)
    for scores in (ours, whole, parts):
        assert float(scores["loss"][0]) == pytest.approx(nats, rel=1e-5)
        assert float(scores["accuracy"][0]) == pytest.approx(hits, rel=1e-6)
        assert float(scores["loss"][1]) == pytest.approx(case[-1].sum(), rel=1e-6)
    for gradient, measured, other in zip(gradients, by_parts, wanted, strict=True):
        assert np.abs(other).max() > 0.01
        np.testing.assert_allclose(gradient, other, atol=1e-6)
        np.testing.assert_allclose(measured, other, atol=1e-6)


def test_a_factor_on_the_states_and_rounding_are_those_of_all_logits_at_once() -> None:
    case = _case(24)
    for settings, most in (({"scale": 0.5}, 1e-6), ({"compute_dtype": "bfloat16"}, 0.02)):
        (ours, gradients), (whole, wanted) = (_scored(case, t, **settings) for t in (True, False))
        assert float(ours["loss"][0]) == pytest.approx(float(whole["loss"][0]), rel=1e-5)
        for gradient, other in zip(gradients, wanted, strict=True):
            np.testing.assert_allclose(gradient, other, atol=most)


def test_without_a_bias_and_inside_a_graph_of_unknown_length() -> None:
    states, table, bias, labels, weights = _case(20)
    size = table.shape[1]

    @tf.function(
        input_signature=[
            tf.TensorSpec((2, None, size)),
            tf.TensorSpec((2, None), tf.int32),
            tf.TensorSpec((2, None)),
        ]
    )
    def gradient(states: Any, labels: Any, weights: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(states)
            found = token_scores(states, table, None, labels, weights, "float32", training=True)
        return tape.gradient(found["loss"][0], states)

    for length in (3, 10):
        part = [each[:, :length] for each in (states, labels, weights)]
        case = [part[0], table, np.zeros_like(bias), *part[1:]]
        _, (wanted, *_) = _scored(case, False)
        np.testing.assert_allclose(gradient(*part) / part[2].sum(), wanted, atol=1e-6)


def _largest_array(rows: int, training: bool) -> int:
    """Values of the largest float array in the graph that scores so many positions."""
    case = [tf.constant(each) for each in _case(rows)]
    graph = tf.function(
        lambda *given: token_scores(*given, "float32", training=training)
    ).get_concrete_function(*case)
    functions = [graph.graph, *(f.graph for f in graph.graph._functions.values())]
    sizes = [
        output.shape.num_elements() or 0
        for each in functions
        for operation in each.get_operations()
        for output in operation.outputs
        if output.dtype.is_floating and output.shape.is_fully_defined()
    ]
    return max(sizes)


def test_what_is_only_measured_never_has_the_logits_of_all_positions(monkeypatch) -> None:
    assert _largest_array(40, training=False) == 40 * 13
    monkeypatch.setattr(module, "FEWEST", 8)
    monkeypatch.setattr(module, "LARGEST", 8 * 13)
    assert _largest_array(40, training=False) < 40 * 13
    assert _largest_array(8, training=False) == 8 * 13  # no more than a chunk
