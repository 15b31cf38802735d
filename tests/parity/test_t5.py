"""T5 gives the numbers of Hugging Face transformers, read from folders that it wrote.

`make_goldens.py` made them. Errors are held against the largest value of the same tensor: with
scores that are not scaled, those of the large draw are far from 1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import RecipeError
from models.interchange.huggingface import read_checkpoint, write_checkpoint
from models.layers.loss import cross_entropy
from models.layers.token_prediction import TokenOutput
from tests.past import target_token_by_token

ops: Any = keras.ops
GOLDEN = Path(__file__).with_name("encoder_decoders")
HIDDEN, LOGITS = 5e-6, 1e-5
RELATIVE = 1e-5  # of the largest value, where it is above 1
LENGTHS = (14, 33)
NAMES = ["t5-large", "t5-small", "t5-v1.1-large", "t5-v1.1-small"]
READ = ("token_ids", "padding_mask", "target_ids", "target_mask", "target_labels")


@pytest.fixture(scope="module", params=NAMES)
def case(request) -> tuple[Any, dict[str, np.ndarray]]:
    """The network, and their numbers."""
    folder = GOLDEN / request.param
    with np.load(folder / "numbers.npz") as numbers:
        return read_checkpoint(folder).build(), dict(numbers)


def batch_of(golden: dict[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    return {key: golden[f"{length}/{key}"].astype(np.int32) for key in READ}


def allowed(error: float, theirs: np.ndarray) -> float:
    return max(error, RELATIVE * float(np.abs(theirs).max()))


def test_every_state_of_both_sides_matches(case):
    made, golden = case
    for length in LENGTHS:
        batch = batch_of(golden, length)
        real = [batch[key].astype(bool) for key in ("padding_mask", "target_mask")]
        states = [ops.convert_to_numpy(x) for x in made.hidden_states(batch)]
        assert f"{length}/their/hidden_{len(states)}" not in golden
        for number, ours in enumerate(states):
            theirs = golden[f"{length}/their/hidden_{number}"]
            there = real[number > made.num_layers]
            error = np.abs(ours - theirs)[there].max()
            assert error < allowed(HIDDEN, theirs[there]), (length, number)


def test_logits_loss_and_the_gradient_on_the_table_match(case):
    import tensorflow as tf

    made, golden = case
    table = made.token_embedding.embeddings
    for length in LENGTHS:
        batch = batch_of(golden, length)
        real = batch["target_mask"]
        with tf.GradientTape() as tape:
            logits = TokenOutput(made).logits(made(batch)["sequence_output"])
            total, weight = cross_entropy(logits, batch["target_labels"], real)["loss"]
            loss = total / weight
        gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
        theirs = golden[f"{length}/their/token_logits"]
        error = np.abs(ops.convert_to_numpy(logits) - theirs)[real > 0].max()
        assert error < allowed(LOGITS, theirs), length
        expected = golden[f"{length}/their/loss"]
        assert abs(float(loss) - float(expected)) < allowed(LOGITS, expected)
        expected = golden[f"{length}/their/table_gradient"]
        excess = np.abs(gradient - expected) - (1e-6 + 1e-5 * np.abs(expected))
        assert excess.max() <= 0, (length, excess.max())


@pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # of one target token
def test_the_target_read_token_by_token_gives_the_same_logits(case):
    made, golden = case
    batch = batch_of(golden, LENGTHS[1])
    states = target_token_by_token(made, batch)
    ours = ops.convert_to_numpy(TokenOutput(made).logits(states))
    theirs = golden[f"{LENGTHS[1]}/their/token_logits"]
    error = np.abs(ours - theirs)[batch["target_mask"] > 0].max()
    assert error < allowed(LOGITS, theirs)


@pytest.mark.parametrize("name", ["t5-large", "t5-v1.1-large"])
@pytest.mark.parametrize("head", ["span_denoising", "sequence_to_sequence"])
def test_what_is_written_is_read_with_the_same_bits(name, head, tmp_path):
    found = read_checkpoint(GOLDEN / name)
    assert list(found.heads) == ["span_denoising"]
    assert not write_checkpoint(replace(found, heads={head: {}}), tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text("utf-8"))
    assert config["architectures"] == ["T5ForConditionalGeneration"]
    assert config["tie_word_embeddings"] == (name == "t5-large")
    theirs, ours = (
        load_file(folder / "model.safetensors") for folder in (GOLDEN / name, tmp_path / "ours")
    )
    assert theirs.keys() == ours.keys()
    assert all(np.array_equal(array, ours[key]) for key, array in theirs.items())
    again = read_checkpoint(tmp_path / "ours")
    assert again.settings == found.settings


def test_a_gate_that_theirs_does_not_have_is_refused(tmp_path):
    found = read_checkpoint(GOLDEN / "t5-v1.1-small")
    other = replace(found, settings={**found.settings, "activation": "gelu"})
    with pytest.raises(RecipeError, match=r"their gated t5 has gelu_tanh .*size\.activation"):
        write_checkpoint(other, tmp_path / "ours")
