"""BART gives the numbers of Hugging Face transformers, read from folders that it wrote.

`make_goldens.py` made them. What follows a prompt is in `test_generation.py`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from fourstage.errors import RecipeError
from models.interchange.huggingface import read_checkpoint, write_checkpoint
from models.layers.target_scorer import TargetScorer
from tests.models.memory_corpus import PlainTokenizer
from tests.past import target_token_by_token

ops: Any = keras.ops
GOLDEN = Path(__file__).with_name("encoder_decoders")
HIDDEN, LOGITS = 5e-6, 1e-5
LENGTHS = (14, 33)
READ = ("token_ids", "padding_mask", "target_ids", "target_mask", "target_labels")


@pytest.fixture(scope="module", params=["bart-large", "bart-small"])
def case(request) -> tuple[Any, dict[str, np.ndarray]]:
    """The network, and their numbers."""
    folder = GOLDEN / request.param
    with np.load(folder / "numbers.npz") as numbers:
        return read_checkpoint(folder).build(), dict(numbers)


def batch_of(golden: dict[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    return {key: golden[f"{length}/{key}"].astype(np.int32) for key in READ}


def test_every_state_of_both_sides_matches(case):
    made, golden = case
    for length in LENGTHS:
        batch = batch_of(golden, length)
        real = [batch[key].astype(bool) for key in ("padding_mask", "target_mask")]
        states = [ops.convert_to_numpy(x) for x in made.hidden_states(batch)]
        assert f"{length}/their/hidden_{len(states)}" not in golden
        for number, ours in enumerate(states):
            there = real[number > made.num_layers]
            error = np.abs(ours - golden[f"{length}/their/hidden_{number}"])[there].max()
            assert error < HIDDEN, (length, number, error)


def test_logits_loss_and_the_gradient_on_the_table_match(case):
    import tensorflow as tf

    made, golden = case
    table = made.token_embedding.embeddings
    scorer = TargetScorer(made, "text_infilling", PlainTokenizer(97))
    for length in LENGTHS:
        batch = batch_of(golden, length)
        batch["target_weights"] = batch["target_mask"].astype(np.float32)
        with tf.GradientTape() as tape:
            # Their decoder begins with one token, so the batch is not begun anew.
            states = made(batch)["sequence_output"]
            states = tf.concat([states[:, :1], states], axis=1)
            begun = np.pad(batch["target_ids"], ((0, 0), (1, 0)))
            scores, predicted = scorer(batch | {"target_ids": begun}, {"sequence_output": states})
            loss = scores["loss"][0] / scores["loss"][1]
        gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
        error = np.abs(
            ops.convert_to_numpy(predicted["token_logits"]) - golden[f"{length}/their/token_logits"]
        )[batch["target_mask"] > 0].max()
        assert error < LOGITS, (length, error)
        assert abs(float(loss) - float(golden[f"{length}/their/loss"])) < LOGITS
        expected = golden[f"{length}/their/table_gradient"]
        excess = np.abs(gradient - expected) - (1e-6 + 1e-5 * np.abs(expected))
        excess[1] = 0.0  # torch never moves the padding row
        assert excess.max() <= 0, (length, excess.max())


def test_the_target_read_token_by_token_gives_the_same_logits(case):
    made, golden = case
    batch = batch_of(golden, LENGTHS[1])
    states = target_token_by_token(made, batch)
    ours = ops.convert_to_numpy(ops.matmul(states, ops.transpose(made.token_embedding.embeddings)))
    theirs = golden[f"{LENGTHS[1]}/their/token_logits"]
    error = np.abs(ours - theirs)[batch["target_mask"] > 0].max()
    assert error < LOGITS


def test_what_is_written_is_read_with_the_same_bits(tmp_path):
    found = read_checkpoint(GOLDEN / "bart-large")
    assert list(found.heads) == ["text_infilling"]
    write_checkpoint(found, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text("utf-8"))
    assert config["architectures"] == ["BartForConditionalGeneration"]
    theirs, ours = (
        load_file(folder / "model.safetensors")
        for folder in (GOLDEN / "bart-large", tmp_path / "ours")
    )
    assert theirs.keys() == ours.keys()
    for name, array in theirs.items():
        # The first two rows of their positions are read by no text.
        first = 2 if name.endswith("embed_positions.weight") else 0
        np.testing.assert_array_equal(array[first:], ours[name][first:])
    again = read_checkpoint(tmp_path / "ours")
    assert again.settings == found.settings
    for name, array in found.network.items():
        np.testing.assert_array_equal(array, again.network[name])


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("decoder_ffn_dim", 96, "decoder_ffn_dim: expected 64, as encoder_ffn_dim, got 96"),
        ("decoder_attention_heads", 2, "decoder_attention_heads: expected 4, .* got 2"),
        ("scale_embedding", True, "scale_embedding: expected False, got True"),
    ],
)
def test_a_checkpoint_of_another_shape_is_refused(key, value, told, tmp_path):
    shutil.copytree(GOLDEN / "bart-small", tmp_path / "other")
    path = tmp_path / "other" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: value}), "utf-8")
    with pytest.raises(RecipeError, match=told):
        read_checkpoint(tmp_path / "other")


def test_a_bias_of_the_logits_is_refused(tmp_path):
    shutil.copytree(GOLDEN / "bart-small", tmp_path / "other")
    path = tmp_path / "other" / "model.safetensors"
    arrays = load_file(path)
    arrays["final_logits_bias"] = arrays["final_logits_bias"] + 0.5
    save_file(arrays, path)
    with pytest.raises(RecipeError, match="final_logits_bias: expected zeros"):
        read_checkpoint(tmp_path / "other")
