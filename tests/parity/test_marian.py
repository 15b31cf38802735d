"""The Transformer gives the numbers of Marian in transformers, read from folders that it wrote.

`make_goldens.py` made them. What follows a prompt is in `test_generation.py`. There the places of a
vector are in another order (`models.interchange.families.transformer`); here they are put in ours.
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
from models.interchange.families.transformer import positions
from models.interchange.huggingface import read_checkpoint, write_checkpoint
from models.layers.target_scorer import TargetScorer
from models.layers.token_prediction import TokenOutput
from tests.models.memory_corpus import PlainTokenizer
from tests.past import target_token_by_token

ops: Any = keras.ops
GOLDEN = Path(__file__).with_name("encoder_decoders")
HIDDEN, LOGITS = 5e-6, 1e-5
LENGTHS = (14, 33)
READ = ("token_ids", "padding_mask", "target_ids", "target_mask", "target_labels")


@pytest.fixture(scope="module", params=["marian-large", "marian-small"])
def case(request) -> tuple[Any, dict[str, np.ndarray]]:
    """The network, and their numbers."""
    folder = GOLDEN / request.param
    with np.load(folder / "numbers.npz") as numbers:
        return read_checkpoint(folder).build(), dict(numbers)


def batch_of(golden: dict[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    return {key: golden[f"{length}/{key}"].astype(np.int32) for key in READ}


def ours_of(theirs: np.ndarray) -> np.ndarray:
    """Vectors with their places in our order."""
    found = np.empty_like(theirs)
    half = theirs.shape[-1] // 2
    found[..., 0::2], found[..., 1::2] = theirs[..., :half], theirs[..., half:]
    return found


def test_every_state_of_both_sides_matches(case):
    made, golden = case
    for length in LENGTHS:
        batch = batch_of(golden, length)
        real = [batch[key].astype(bool) for key in ("padding_mask", "target_mask")]
        states = [ops.convert_to_numpy(x) for x in made.hidden_states(batch)]
        assert f"{length}/their/hidden_{len(states)}" not in golden
        for number, ours in enumerate(states):
            there = real[number > made.num_layers]
            expected = ours_of(golden[f"{length}/their/hidden_{number}"])
            error = np.abs(ours - expected)[there].max()
            assert error < HIDDEN, (length, number, error)


def test_logits_loss_and_the_gradient_on_the_table_match(case):
    import tensorflow as tf

    made, golden = case
    assert made.target_begin == ("pad",)
    table = made.token_embedding.embeddings
    scorer = TargetScorer(made, "text_infilling", PlainTokenizer(97))
    for length in LENGTHS:
        batch = batch_of(golden, length)
        batch["target_weights"] = batch["target_mask"].astype(np.float32)
        with tf.GradientTape() as tape:
            scores, predicted = scorer(batch, made(batch))
            loss = scores["loss"][0] / scores["loss"][1]
        gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
        error = np.abs(
            ops.convert_to_numpy(predicted["token_logits"]) - golden[f"{length}/their/token_logits"]
        )[batch["target_mask"] > 0].max()
        assert error < LOGITS, (length, error)
        assert abs(float(loss) - float(golden[f"{length}/their/loss"])) < LOGITS
        expected = ours_of(golden[f"{length}/their/table_gradient"])
        excess = np.abs(gradient - expected) - (1e-6 + 1e-5 * np.abs(expected))
        excess[1] = 0.0  # torch never moves the padding row
        assert excess.max() <= 0, (length, excess.max())


@pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # of one target token
def test_the_target_read_token_by_token_gives_the_same_logits(case):
    made, golden = case
    batch = batch_of(golden, LENGTHS[1])
    states = target_token_by_token(made, batch)
    ours = ops.convert_to_numpy(TokenOutput(made).logits(states))
    theirs = golden[f"{LENGTHS[1]}/their/token_logits"]
    error = np.abs(ours - theirs)[batch["target_mask"] > 0].max()
    assert error < LOGITS


def test_what_is_written_is_read_with_the_same_bits(tmp_path):
    found = read_checkpoint(GOLDEN / "marian-large")
    assert list(found.heads) == ["sequence_to_sequence"]
    assert found.notes == ("no tokenizer: no vocab.txt, no merges.txt and no tokenizer.json",)
    assert write_checkpoint(found, tmp_path / "ours") == ()
    before, after = (
        json.loads((folder / "config.json").read_text("utf-8"))
        for folder in (GOLDEN / "marian-large", tmp_path / "ours")
    )
    assert {key: before[key] for key in after} == after
    theirs, ours = (
        load_file(folder / "model.safetensors")
        for folder in (GOLDEN / "marian-large", tmp_path / "ours")
    )
    assert theirs.keys() == ours.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, ours[name])
    again = read_checkpoint(tmp_path / "ours")
    assert again.settings == found.settings
    for name, array in found.network.items():
        np.testing.assert_array_equal(array, again.network[name])


def changed(folder: Path, **settings: Any) -> Path:
    """A copy of a golden folder with other settings."""
    shutil.copytree(GOLDEN / "marian-small", folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | settings), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"decoder_ffn_dim": 96}, "decoder_ffn_dim: expected 64, as encoder_ffn_dim, got 96"),
        ({"scale_embedding": False}, "scale_embedding: expected true"),
        ({"decoder_vocab_size": 90}, "decoder_vocab_size: expected 97, as vocab_size, got 90"),
        ({"decoder_start_token_id": 7}, "decoder_start_token_id: expected 1 or 2, .* got 7"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings: exp"),
    ],
)
def test_a_checkpoint_that_ours_cannot_compute_is_refused(settings, told, tmp_path):
    with pytest.raises(RecipeError, match=told):
        read_checkpoint(changed(tmp_path / "other", **settings))


def test_a_table_of_positions_is_theirs_or_refused(tmp_path):
    folder = changed(tmp_path / "other")
    path, name = folder / "model.safetensors", "model.decoder.embed_positions.weight"
    arrays = load_file(path)
    half = {"max_sequence_length": 40, "hidden_dim": 32}
    save_file(arrays | {name: positions(half).astype(np.float16)}, path)
    assert read_checkpoint(folder).settings == read_checkpoint(GOLDEN / "marian-small").settings
    save_file(arrays | {name: ours_of(positions(half))}, path)
    with pytest.raises(RecipeError, match=r"embed_positions.weight: expected the table that their"):
        read_checkpoint(folder)
