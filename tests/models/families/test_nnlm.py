"""NNLM: equations in NumPy, the window of a token, the paper's count of parameters, the loss."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from fourstage.errors import RecipeError
from models.families.nnlm import Nnlm
from models.layers.token_prediction import TokenOutput
from models.objectives.causal_lm import CausalLM
from models.protocols import Context
from models.training.stage_model import StageModel
from models.weights import named_weights
from tests.models.memory_corpus import PlainTokenizer
from tests.models.slopes import check_slopes
from tests.models.weightless import weightless

V, M, H = 20, 3, 4


def network(order: int = 4, **changes: Any) -> Any:
    """A network whose weights are all random."""
    made = Nnlm(vocabulary_size=V, embedding_dim=M, intermediate_dim=H, order=order, **changes)
    rng = np.random.default_rng(0)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(0, 0.7, variable.shape))
    return made


def logits(made: Any, batch: dict[str, np.ndarray]) -> np.ndarray:
    found = TokenOutput(made).logits(made(batch)["sequence_output"])
    return keras.ops.convert_to_numpy(found)


def weights_of(made: Any) -> dict[str, np.ndarray]:
    return {name: np.array(v, np.float64) for name, v in named_weights(made).items()}


def in_numpy(made: Any, ids: list[int], weights: dict[str, np.ndarray] | None = None) -> np.ndarray:
    """(V,) logits of the token after `ids`: equation 1 of the paper."""
    weights = weights or weights_of(made)
    vectors = weights["embeddings/token/embeddings"]
    before = [vectors[token] for token in reversed(ids[-made.context_length :])]
    before += [np.zeros(M)] * (made.context_length - len(before))
    x = np.concatenate(before)
    a = np.tanh(weights["hidden/bias"] + x @ weights["hidden/kernel"])
    u, w = weights["output_table"][:, :H], weights["output_table"][:, H:]
    y = weights["output_bias"] + u @ a
    return y + w @ x if made.direct else y


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("direct", [False, True])
def test_the_network_is_the_papers_equation_wherever_padding_is(order, direct):
    made = network(order, direct=direct)
    rng = np.random.default_rng(1)
    text = rng.integers(1, V, 7).tolist()
    expected = [in_numpy(made, text[: end + 1]) for end in range(7)]
    for before, after in ((0, 0), (0, 3), (2, 0), (3, 1)):
        mask = np.array([[0] * before + [1] * 7 + [0] * after], "int32")
        ids = np.array([[9] * before + text + [9] * after], "int32")
        found = logits(made, {"token_ids": ids, "padding_mask": mask})[0]
        np.testing.assert_allclose(found[before : before + 7], expected, atol=1e-5)
    alone = logits(made, {"token_ids": np.array([text], "int32")})[0]
    np.testing.assert_allclose(alone, expected, atol=1e-5)


@pytest.mark.parametrize("order", [2, 3, 5])
def test_a_token_is_predicted_from_the_order_minus_1_before_it_alone(order):
    made, ids = network(order, direct=True), np.arange(5, 17, dtype="int32")[None]
    turned = ids.copy()
    turned[0, 4] = 1
    moved = np.abs(logits(made, {"token_ids": turned}) - logits(made, {"token_ids": ids}))[0]
    places = np.flatnonzero(moved.max(axis=-1) > 0)
    # Position t predicts token t + 1 from tokens t - n + 2 … t.
    assert places.tolist() == list(range(4, 4 + order - 1))


@pytest.mark.parametrize(("n", "m", "h"), [(5, 30, 100), (6, 100, 60), (2, 7, 3)])
def test_parameters_are_by_the_papers_formula(n, m, h):
    v, size = 16_383, {"order": n, "embedding_dim": m, "intermediate_dim": h}
    with weightless():
        direct = Nnlm(vocabulary_size=v, direct=True, **size).count_params()
        plain = Nnlm(vocabulary_size=v, **size).count_params()
    assert direct == v * (1 + n * m + h) + h * (1 + (n - 1) * m)
    assert plain == direct - v * (n - 1) * m


@pytest.mark.parametrize("direct", [False, True])
def test_causal_lm_scores_it_by_the_equation_and_gradients_are_finite_differences(direct):
    import tensorflow as tf

    made = network(direct=direct)
    objective = CausalLM(Context(PlainTokenizer(V), 8))
    model = StageModel(made, {"causal_lm": objective.attach(made)})
    ids = np.array([[2, 7, 8, 9, 7, 11, 3, 6], [2, 5, 13, 3, 0, 0, 0, 0]], "int32")
    batch = {"token_ids": ids, "padding_mask": (ids > 0).astype("int32")}
    batch = objective.examples(batch, np.random.default_rng(0))
    with tf.GradientTape() as tape:
        total, weight = model.outputs(batch, training=False)[0]["causal_lm"]["loss"]
    weights = weights_of(made)

    def nats() -> float:
        total = 0.0
        for row in ids.tolist():
            real = [token for token in row if token]
            for end in range(1, len(real)):
                total -= log_softmax(in_numpy(made, real[:end], weights))[real[end]]
        return total

    assert float(weight) == 7 + 3
    assert float(total) == pytest.approx(nats(), rel=1e-6)
    named = named_weights(made)
    assert len(named) == len(made.trainable_variables) == 5
    gradients = tape.gradient(total, {name: v.value for name, v in named.items()})
    for name, gradient in gradients.items():
        check_slopes(np.array(tf.convert_to_tensor(gradient)), weights[name], nats, name)


def test_a_context_of_nothing_is_refused():
    with pytest.raises(RecipeError, match=r"order: expected a whole number from 2, got 1"):
        network(order=1)
