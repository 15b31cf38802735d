"""Transformer-XL by its equations, its memory against recomputation, and its published size."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError, UnknownNameError
from models import catalogue
from models.families.transformer_xl import SIZES, TransformerXL
from models.training.stage_model import StageModel
from models.weights import load_weights, named_weights
from tests.models.weightless import weightless
from tests.past import longer

ops: Any = keras.ops
SIZE = {"num_layers": 2, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 12, "dropout": 0.0}


def made(seed: int = 0, **settings: Any) -> TransformerXL:
    """A network with random weights of unit size, biases and gains too."""
    given = {"memory_length": 5, "evaluation_memory_length": None, "same_length": "never"}
    network = TransformerXL(vocabulary_size=30, **(SIZE | given | settings))
    rng = np.random.default_rng(seed)
    named = named_weights(network)
    load_weights(
        network, {n: rng.normal(0, 0.4, v.shape).astype("float32") for n, v in named.items()}
    )
    return network


def texts(rows: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(5, 30, (rows, length)).astype(np.int32)


def empty(network: TransformerXL, rows: int) -> dict[str, np.ndarray]:
    return {key: np.zeros((rows, *shape), np.float32) for key, shape in network.memory.items()}


def values(outputs: dict) -> dict[str, np.ndarray]:
    return {key: ops.convert_to_numpy(value) for key, value in outputs.items()}


def norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def by_the_equations(network: TransformerXL, ids: np.ndarray, before: list[np.ndarray]) -> list:
    """Section 3.3 for one row, one pair (i, j) at a time, in float64.

    Args:
        network: The network.
        ids: (T,) token ids.
        before: What each layer remembers, (P, D).

    Returns:
        What enters each layer, then the output, (T, D) each.
    """
    w = {name: np.asarray(value, np.float64) for name, value in named_weights(network).items()}
    config = network.get_config()
    width, heads = config["hidden_dim"], config["num_heads"]
    size = width // heads
    tied = config["tied_biases"]
    x = np.sqrt(width) * w["embeddings/token/embeddings"][ids]
    states = [x]
    for layer in range(config["num_layers"]):
        block = f"block_{layer}/"

        def of(name: str, block: str = block) -> np.ndarray:
            return w[f"{block}{name}"]

        whole = np.concatenate([before[layer], x])
        past = len(before[layer])
        if config["norm_first"]:
            whole = norm(whole, of("attention_norm/gamma"), of("attention_norm/beta"))
        start = "" if tied else f"{block}attention/"
        u, v = w[f"{start}biases/content_bias"], w[f"{start}biases/position_bias"]
        mixed = np.zeros((len(ids), width))
        for i in range(len(ids)):
            q = whole[past + i] @ of("attention/query/kernel")
            for h in range(heads):
                part = slice(h * size, (h + 1) * size)
                scores = []
                for j in range(past + i + 1):
                    distance = past + i - j
                    if config["clamp_length"]:
                        distance = min(distance, config["clamp_length"])
                    rates = 10000.0 ** (-np.arange(0, width, 2) / width)
                    r = np.concatenate([np.sin(distance * rates), np.cos(distance * rates)])
                    r = (r @ of("attention/relative/kernel"))[part]
                    k = (whole[j] @ of("attention/key/kernel"))[part]
                    scores.append(((q[part] + u[h]) @ k + (q[part] + v[h]) @ r) / np.sqrt(size))
                    if config["same_length"] == "always" and past + i - j > past:
                        scores[-1] = -np.inf
                share = np.exp(scores - np.max(scores))
                share /= share.sum()
                seen = whole[: past + i + 1] @ of("attention/value/kernel")[:, part]
                mixed[i, part] = share @ seen
        x = x + mixed @ of("attention/output/kernel")
        if not config["norm_first"]:
            x = norm(x, of("attention_norm/gamma"), of("attention_norm/beta"))
        inner = x
        if config["norm_first"]:
            inner = norm(x, of("output_norm/gamma"), of("output_norm/beta"))
        inner = np.maximum(inner @ of("intermediate/kernel") + of("intermediate/bias"), 0.0)
        x = x + inner @ of("output/kernel") + of("output/bias")
        if not config["norm_first"]:
            x = norm(x, of("output_norm/gamma"), of("output_norm/beta"))
        states.append(x)
    return states


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tied_biases": False},
        {"norm_first": True},
        {"clamp_length": 3},
        {"same_length": "always"},
    ],
    ids=str,
)
def test_every_layer_is_that_of_the_equations_and_memory_holds_what_entered_it(settings):
    network = made(**settings)
    first, second = texts(2, 5, seed=1), texts(2, 4, seed=2)
    one = values(network({"token_ids": first, **empty(network, 2)}))
    memory = {key: one[key] for key in network.memory}
    states = [
        ops.convert_to_numpy(x) for x in network.hidden_states({"token_ids": second} | memory)
    ]
    two = values(network({"token_ids": second} | memory))
    for row in range(2):
        nothing = [np.zeros((0, 8))] * 2
        if settings.get("same_length") == "always":  # five tokens of an empty memory are hidden
            kept = [np.asarray(memory["memory"][row, layer], np.float64) for layer in range(2)]
        else:
            kept = by_the_equations(network, first[row], nothing)[:2]
            np.testing.assert_allclose(memory["memory"][row], kept, atol=1e-5)
        expected = by_the_equations(network, second[row], kept)
        for found, right in zip(states, expected, strict=True):
            np.testing.assert_allclose(found[row], right, atol=1e-5)
        np.testing.assert_allclose(two["sequence_output"][row], expected[-1], atol=1e-5)
        # Five tokens: the last of the row before, then the four of this one.
        for layer in range(2):
            right = np.concatenate([kept[layer][-1:], expected[layer]])
            np.testing.assert_allclose(two["memory"][row, layer], right, atol=1e-5)


def test_rows_read_one_after_another_are_one_long_row():
    network, ids = made(memory_length=12), texts(3, 12)
    whole = values(network({"token_ids": ids}))["sequence_output"]
    memory = empty(network, 3)
    for start, end in ((0, 5), (5, 6), (6, 12)):
        out = values(network({"token_ids": ids[:, start:end]} | memory))
        np.testing.assert_allclose(out["sequence_output"], whole[:, start:end], atol=1e-5)
        memory = {key: out[key] for key in memory}
    np.testing.assert_array_equal(memory["memory_mask"], 1.0)


def test_with_the_same_length_a_token_sees_just_as_far_in_any_row():
    network, ids = made(num_layers=1, memory_length=3, same_length="always"), texts(1, 9)
    changed = ids.copy()
    changed[0, 2] = 5 + (ids[0, 2] - 4) % 20
    one, other = (
        values(network({"token_ids": each}))["sequence_output"] for each in (ids, changed)
    )
    moved = np.abs(one - other).max(axis=-1)[0] > 1e-7
    assert moved.tolist() == [False, False, True, True, True, True, False, False, False]


def test_in_evaluation_it_remembers_more_and_may_see_just_as_far():
    network = made(same_length="evaluation", memory_length=2, evaluation_memory_length=4)
    assert network.evaluation_memory == {"memory": (2, 4, 8), "memory_mask": (4,)}
    evaluating, training = StageModel(network, {}), StageModel(network, {})
    evaluating.carry_memory(3, evaluating=True)
    training.carry_memory(3)
    assert evaluating.memory["memory"].shape == (3, 2, 4, 8)
    assert training.memory["memory"].shape == (3, 2, 2, 8)
    ids = texts(3, 9)
    states = [network.hidden_states({"token_ids": ids}, training=each)[1] for each in (True, False)]
    same = np.abs(values({"": states[0] - states[1]})[""]).max(axis=(0, 2)) < 1e-6
    assert same.tolist() == [True] * 5 + [False] * 4


def test_no_gradient_reaches_the_row_before():
    import tensorflow as tf

    network = made()
    first, second = texts(2, 5, seed=1), texts(2, 4, seed=2)
    second = np.where(np.isin(second, first), 29, second)  # no token of the row before it
    first = np.where(first == 29, 28, first)
    table = network.token_embedding.embeddings
    with tf.GradientTape() as tape:
        one = network({"token_ids": first, **empty(network, 2)})
        two = network({"token_ids": second, **{key: one[key] for key in network.memory}})
        total = tf.reduce_sum(two["sequence_output"] ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(total, table.value)).numpy()
    assert np.abs(gradient[np.unique(second)]).max(axis=-1).min() > 0
    assert not gradient[np.unique(first)].any()


@pytest.mark.parametrize("where", ["left", "middle", "right"])
def test_padding_anywhere_parts_no_tokens(where):
    network, ids = made(), texts(2, 6)
    place = {"left": 0, "middle": 4, "right": 6}[where]
    padded = np.insert(ids, [place] * 3, 0, axis=1)
    mask = np.insert(np.ones_like(ids), [place] * 3, 0, axis=1)
    memory = {"memory": np.random.default_rng(0).normal(size=(2, 2, 5, 8)).astype("float32")}
    memory["memory_mask"] = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], np.float32)
    plain = values(network({"token_ids": ids} | memory))
    found = values(network({"token_ids": padded, "padding_mask": mask} | memory))
    real = mask[0] > 0
    np.testing.assert_allclose(
        found["sequence_output"][:, real], plain["sequence_output"], atol=1e-5
    )
    # The tokens are remembered in a row, then the padding, which the mask leaves out.
    assert found["memory_mask"].tolist() == [[1, 1, 0, 0, 0]] * 2
    np.testing.assert_allclose(found["memory"][:, :, :2], plain["memory"][:, :, -2:], atol=1e-5)


@pytest.mark.parametrize("place", [0, 4])
def test_what_a_head_adds_to_a_token_stays_with_it_behind_padding(place):
    network, ids = made(), texts(2, 6)
    added = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")
    padded, mask, moved = (
        np.insert(each, [place] * 3, 0, axis=1) for each in (ids, np.ones_like(ids), added)
    )
    plain = values(network({"token_ids": ids, "added_vectors": added}))
    found = values(network({"token_ids": padded, "padding_mask": mask, "added_vectors": moved}))
    np.testing.assert_allclose(
        found["sequence_output"][:, mask[0] > 0], plain["sequence_output"], atol=1e-5
    )


@pytest.mark.parametrize("same_length", ["never", "always"])
def test_reading_on_after_a_memory_equals_reading_the_row_with_it(same_length):
    network = made(same_length=same_length, norm_first=True)
    first, second = texts(2, 5, seed=1), texts(2, 4, seed=2)
    one = network({"token_ids": first, **empty(network, 2)})
    memory = {key: one[key] for key in network.memory}
    whole = values(network({"token_ids": second} | memory))["sequence_output"]
    past, mask = network.past_of(one["memory"]), np.ones((2, 5), np.int32)
    for at in range(4):
        mask = np.concatenate([mask, np.ones((2, 1), np.int32)], axis=1)
        features = {"token_ids": second[:, at : at + 1], "padding_mask": mask}
        hidden, new = network.go_on(features, past)
        past = longer(past, new)
        np.testing.assert_allclose(hidden[:, 0], whole[:, at], atol=1e-5)


def test_a_memory_of_other_rows_or_of_another_network_is_refused_with_the_numbers():
    network = made()
    with pytest.raises(RecipeError, match="of 3 rows, but the batch has 2"):
        network({"token_ids": texts(2, 4), **empty(network, 3)})
    with pytest.raises(RecipeError, match="of 3 layers 8 wide, expected 2 layers 8 wide"):
        network({"token_ids": texts(2, 4), **empty(made(num_layers=3), 2)})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden_dim": 9, "num_heads": 3}, "hidden_dim: expected an even width.* got 9"),
        ({"memory_length": -1}, "memory_length: expected a number of tokens from 0, got -1"),
        ({"memory_length": 0, "evaluation_memory_length": 4}, "4 tokens, but memory_length is 0"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(settings, said):
    with pytest.raises(RecipeError, match=said):
        made(**settings)
    with pytest.raises(UnknownNameError, match="always"):
        made(same_length="sometimes")


def test_the_parameters_are_the_authors_without_those_of_the_adaptive_softmax():
    with weightless():
        network = catalogue.find("families", "transformer_xl")(
            vocabulary_size=267_735, **SIZES["base"]
        )
    # 151,107,538 by their log, with a bias a word, and a vector and a bias of each of 3 clusters.
    assert network.count_params() == 151_107_538 - 267_735 - 3 * 410 - 3
    with weightless():
        large = catalogue.find("families", "transformer_xl")(
            vocabulary_size=267_735, **SIZES["large"]
        )
    assert large.count_params() == 519_695_360
