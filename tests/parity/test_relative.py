"""XLNet and Transformer-XL give the numbers of transformers' XLNet, from folders that it wrote.

`make_goldens.py` made them. transformers has no Transformer-XL; that its XLNet is one with
``attn_type: uni`` is confirmed by the equations in `tests/models/families/test_transformer_xl.py`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import RecipeError
from models.families.transformer_xl import TransformerXL
from models.interchange.huggingface import PretrainedNetwork, read_checkpoint, write_checkpoint
from models.objectives.causal_lm import CausalLM
from models.objectives.permutation_lm import PermutationLM
from models.protocols import Context
from models.weights import load_weights
from tests.models.memory_corpus import PlainTokenizer

ops: Any = keras.ops
GOLDEN = Path(__file__).with_name("relative")
DRAWS = ("large", "small")
HIDDEN, LOGITS = 5e-6, 1e-5


def gradient_excess(found: np.ndarray, expected: np.ndarray) -> float:
    return float((np.abs(found - expected) - (1e-6 + 1e-5 * np.abs(expected))).max())


def values_of(outputs: dict) -> dict[str, np.ndarray]:
    return {key: ops.convert_to_numpy(value) for key, value in outputs.items()}


def given(numbers: Any, *names: str) -> dict[str, np.ndarray]:
    return {name: numbers[name].astype(np.int32) for name in names}


def changed(found: PretrainedNetwork, **settings: Any) -> Any:
    return PretrainedNetwork(found.family, {**found.settings, **settings}, found.network).build()


def under(numbers: Any, start: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, without the beginning."""
    return {key.removeprefix(start): numbers[key] for key in numbers if key.startswith(start)}


def check_both_streams(
    found: PretrainedNetwork, network: Any, numbers: Any, golden: dict[str, np.ndarray]
) -> None:
    """Every state of both streams, the memory, the logits, the loss and its gradient.

    Args:
        found: The checkpoint.
        network: Ours with its weights.
        numbers: The inputs.
        golden: What theirs computes; of a row after another one with its ``memory``.
    """
    import tensorflow as tf

    batch = given(
        numbers, "token_ids", "segment_ids", "padding_mask", "factorisation", "query_positions"
    )
    scorer = PermutationLM(Context(PlainTokenizer(97), batch["token_ids"].shape[1])).attach(network)
    load_weights(scorer, found.heads["permutation_lm"])
    table = network.token_embedding.embeddings
    batch["query_weights"] = numbers["query_weights"]
    batch["query_labels"] = np.take_along_axis(batch["token_ids"], batch["query_positions"], 1)
    if "memory" in golden:
        batch["memory"] = golden["memory"]
        batch["memory_mask"] = np.ones(golden["memory"].shape[::2][:2], np.float32)
    real, used = batch["padding_mask"] > 0, batch["query_weights"] > 0
    with tf.GradientTape() as tape:
        outputs = network(batch)
        scores, predicted = scorer(batch, outputs)
        loss = scores["loss"][0] / scores["loss"][1]
    gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
    ours = values_of(outputs | predicted)
    states = [ops.convert_to_numpy(state) for state in network.hidden_states(batch)]
    assert len(states) == 4
    for number, state in enumerate(states):
        error = np.abs(state - golden[f"hidden_{number}"])[real].max()
        assert error < HIDDEN, f"content after {number} blocks: {error}"
    assert np.abs(ours["sequence_output"] - golden["hidden_3"])[real].max() < HIDDEN
    assert np.abs(ours["query_output"] - golden["query"])[used].max() < HIDDEN
    assert np.abs(ours["token_logits"] - golden["logits"])[used].max() < LOGITS
    if "memory" in golden:
        kept = ours["memory_mask"] > 0
        assert kept.sum() == real[:, -10:].sum()
        error = np.abs(ours["memory"] - golden["memory_after"]).transpose(0, 2, 1, 3)[kept].max()
        assert error < HIDDEN
    assert abs(float(loss) - float(golden["loss"])) < LOGITS
    expected = golden["table_gradient"]
    gradient[0] = expected[0]  # torch's embedding of padding: masked, or never moved
    assert gradient_excess(gradient, expected) <= 0


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
@pytest.mark.parametrize("draw", DRAWS)
def test_both_streams_of_xlnet_match_with_padding_segments_memory_and_an_order(draw, activation):
    found = read_checkpoint(GOLDEN / f"xlnet-{draw}")
    network = changed(found, activation={"gelu": "gelu", "gelu_new": "gelu_tanh"}[activation])
    with np.load(GOLDEN / f"xlnet-{draw}" / "numbers.npz") as numbers:
        check_both_streams(found, network, numbers, under(numbers, f"{activation}/"))


@pytest.mark.parametrize("where", ["after", "alone"])
@pytest.mark.parametrize("draw", DRAWS)
def test_both_streams_of_xlnet_match_in_a_longer_row_with_and_without_memory(draw, where):
    found = read_checkpoint(GOLDEN / f"xlnet-{draw}")
    with np.load(GOLDEN / f"xlnet-{draw}" / "longer.npz") as numbers:
        golden = under(numbers, f"{where}/")
        assert ("memory" in golden) == (where == "after")
        check_both_streams(found, changed(found), numbers, golden)


@pytest.mark.parametrize("draw", DRAWS)
def test_what_is_written_of_xlnet_is_what_was_read(draw, tmp_path):
    found = read_checkpoint(GOLDEN / f"xlnet-{draw}")
    assert found.settings["memory_length"] == 10
    assert not write_checkpoint(found, tmp_path / "ours")
    again = read_checkpoint(tmp_path / "ours")
    assert again.settings == found.settings
    assert again.network.keys() == found.network.keys()
    assert all(np.array_equal(again.network[name], found.network[name]) for name in found.network)
    one, other = (
        load_file(f / "model.safetensors") for f in (GOLDEN / f"xlnet-{draw}", tmp_path / "ours")
    )
    assert all(np.array_equal(other[name], one[name]) for name in other)
    assert set(one) - set(other) <= {"lm_loss.weight"}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("attn_type", "uni", "attn_type: expected bi, got uni"),
        ("same_length", True, "same_length: expected False, got True"),
        ("mem_len", -2, "mem_len: expected a number of tokens, got -2"),
    ],
)
def test_settings_of_theirs_that_ours_has_not_are_refused(key, value, said, tmp_path):
    shutil.copytree(GOLDEN / "xlnet-small", tmp_path / "theirs")
    config = tmp_path / "theirs" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {key: value}))
    with pytest.raises(RecipeError, match=said):
        read_checkpoint(tmp_path / "theirs")


@pytest.mark.parametrize("draw", DRAWS)
def test_a_wrong_gelu_or_epsilon_would_show(draw):
    found = read_checkpoint(GOLDEN / f"xlnet-{draw}")
    right = {"activation": "gelu", "layer_norm_epsilon": 1e-12}
    wrong = {"activation": "gelu_tanh"} if draw == "large" else {"layer_norm_epsilon": 1e-5}
    with np.load(GOLDEN / f"xlnet-{draw}" / "numbers.npz") as numbers:
        batch = given(numbers, "token_ids", "segment_ids", "padding_mask")
    one, other = (
        values_of(changed(found, **settings)(batch))["sequence_output"]
        for settings in (right, right | wrong)
    )
    assert np.abs(one - other).max() > 10 * HIDDEN


def transformer_xl(draw: str, **settings: Any) -> TransformerXL:
    """Ours with the weights that are theirs."""
    theirs = load_file(GOLDEN / f"transformer-xl-{draw}" / "model.safetensors")
    weights = {
        "embeddings/token/embeddings": theirs["word_embedding.weight"],
        "biases/content_bias": theirs["layer.0.rel_attn.r_w_bias"],
        "biases/position_bias": theirs["layer.0.rel_attn.r_r_bias"],
    }
    names = {"query": "q", "key": "k", "value": "v", "relative": "r"}
    for number in range(3):
        there, here = f"layer.{number}.", f"block_{number}/"
        for ours, name in names.items():
            kernel = theirs[f"{there}rel_attn.{name}"].reshape(32, 32)
            weights[f"{here}attention/{ours}/kernel"] = kernel
        output = theirs[f"{there}rel_attn.o"].reshape(32, 32).T
        weights[f"{here}attention/output/kernel"] = output
        for ours, name in (("intermediate", "ff.layer_1"), ("output", "ff.layer_2")):
            weights[f"{here}{ours}/kernel"] = theirs[f"{there}{name}.weight"].T
            weights[f"{here}{ours}/bias"] = theirs[f"{there}{name}.bias"]
        norms = (("attention_norm", "rel_attn.layer_norm"), ("output_norm", "ff.layer_norm"))
        for ours, name in norms:
            weights[f"{here}{ours}/gamma"] = theirs[f"{there}{name}.weight"]
            weights[f"{here}{ours}/beta"] = theirs[f"{there}{name}.bias"]
    size = {"num_layers": 3, "hidden_dim": 32, "num_heads": 4, "intermediate_dim": 64}
    given = {"same_length": "never", "clamp_length": 0, "dropout": 0.0, "memory_length": 10}
    network = TransformerXL(vocabulary_size=97, **size, **(given | settings))
    load_weights(network, weights)
    return network


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(
    ("reading", "settings"),
    [("plain", {}), ("same_length", {"same_length": "always"}), ("clamped", {"clamp_length": 6})],
)
def test_transformer_xl_matches_after_another_row(draw, reading, settings):
    import tensorflow as tf

    network = transformer_xl(draw, **settings)
    table = network.token_embedding.embeddings
    with np.load(GOLDEN / f"transformer-xl-{draw}" / "numbers.npz") as numbers:
        ids, before = (numbers[key].astype(np.int32) for key in ("token_ids", "before"))
        golden = under(numbers, f"{reading}/")
    empty = {key: np.zeros((4, *shape), np.float32) for key, shape in network.memory.items()}
    first = values_of(network({"token_ids": before, **empty}))
    assert first["memory_mask"].all()
    if reading == "plain":  # without memory theirs reads its own length only
        assert np.abs(first["memory"] - golden["memory"]).max() < HIDDEN
    batch = {"token_ids": ids, "memory": golden["memory"], "memory_mask": first["memory_mask"]}
    scorer = CausalLM(Context(PlainTokenizer(97), 14)).attach(network)
    labels = {"next_labels": ids[:, 1:], "next_weights": np.ones((4, 13), np.float32)}
    with tf.GradientTape() as tape:
        outputs = network(batch)
        scores, predicted = scorer(batch | labels, outputs)
        loss = scores["loss"][0] / scores["loss"][1]
    gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
    for number, state in enumerate(network.hidden_states(batch)):
        error = np.abs(ops.convert_to_numpy(state) - golden[f"hidden_{number}"]).max()
        assert error < HIDDEN, f"after {number} blocks: {error}"
    ours = values_of(outputs | predicted)
    assert np.abs(ours["memory"] - golden["memory_after"]).max() < HIDDEN
    assert np.abs(ours["token_logits"] - golden["logits"][:, :-1]).max() < LOGITS
    assert abs(float(loss) - float(golden["loss"])) < LOGITS
    assert gradient_excess(gradient, golden["table_gradient"]) <= 0
