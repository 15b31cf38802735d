"""LXMERT and VisualBERT give the numbers of transformers, read from folders that it wrote.

`make_region_goldens.py` made them.
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
from models import catalogue
from models.families.bert import Bert
from models.interchange.architecture import architectures
from models.interchange.huggingface import PretrainedNetwork, read_checkpoint, write_checkpoint
from models.layers.transformer import TextTransformer
from models.protocols import Context
from models.weights import load_weights, named_weights
from tests.models.memory_corpus import PlainTokenizer

ops: Any = keras.ops
GOLDEN = Path(__file__).with_name("regions")
HIDDEN, LOGITS = 5e-6, 1e-5
Case = tuple[PretrainedNetwork, Any, dict[str, np.ndarray]]


@pytest.fixture(
    scope="module",
    params=["lxmert-large", "lxmert-small", "visualbert-large", "visualbert-small"],
)
def case(request) -> Case:
    """What was read, the network, and their numbers."""
    found = read_checkpoint(GOLDEN / request.param)
    with np.load(GOLDEN / request.param / "numbers.npz") as numbers:
        return found, found.build(), dict(numbers)


def batch_of(golden: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        key: value.astype(np.int32) if value.dtype == np.int64 else value
        for key, value in golden.items()
        if "/" not in key and key != "versions"
    }


def last(golden: dict[str, np.ndarray], side: str) -> np.ndarray:
    """Their last states of ``text`` or ``regions``."""
    count = sum(key.startswith(f"their/{side}_") for key in golden)
    return golden[f"their/{side}_{count - 1}"]


def error(ours: Any, theirs: np.ndarray, mask: np.ndarray) -> float:
    return np.abs(ops.convert_to_numpy(ours) - theirs)[mask.astype(bool)].max()


def test_every_state_of_both_streams_matches(case):
    found, made, golden = case
    batch = batch_of(golden)
    if found.family == "lxmert":
        states = list(made.streams(batch))
        assert len(states) == 1 + 3 + 2
        # Theirs are after each layer, those of regions after their own and each of both.
        text = [x for x, _ in states[1:]]
        regions = [None, *(each for _, each in states[3:])]
    else:
        text = made.hidden_states(batch)
        assert len(text) == made.num_hidden_states == 1 + 3
        width = batch["token_ids"].shape[1]
        regions = [x[:, width:] for x in TextTransformer.hidden_states(made, batch)]
    for side, ours, mask in (
        ("text", text, batch["padding_mask"]),
        ("regions", regions, batch["region_mask"]),
    ):
        assert sum(key.startswith(f"their/{side}_") for key in golden) == len(ours)
        for number, each in enumerate(ours):
            if each is not None:
                assert error(each, golden[f"their/{side}_{number}"], mask) < HIDDEN, (side, number)


def test_the_outputs_match_at_all_positions_and_at_some(case):
    _, made, golden = case
    batch, text = batch_of(golden), last(golden, "text")
    outputs = made(batch)
    whole = np.ones(4)
    whole[2] = 0  # it starts with padding
    assert error(outputs["pooled_output"], golden["their/pooled"], whole) < HIDDEN
    assert error(outputs["sequence_output"], text, batch["padding_mask"]) < HIDDEN
    read = np.array([[0, 5, 8], [0, 1, 2], [7, 6, 13], [0, 1, 0]], np.int32)
    some = made(batch | {"read_positions": read})
    expected = np.take_along_axis(text, read[:, :, None], axis=1)
    assert error(some["sequence_output"], expected, np.ones((4, 3))) < HIDDEN
    for each in (outputs, some):
        regions = last(golden, "regions")
        assert error(each["region_output"], regions, batch["region_mask"]) < HIDDEN


def test_logits_loss_and_the_gradient_on_the_table_match(case):
    import tensorflow as tf

    found, made, golden = case
    context = Context(PlainTokenizer(97), sequence_length=14)
    scorer = catalogue.find("objectives", "masked_lm")(context).attach(made)
    load_weights(scorer, found.heads["masked_lm"])
    batch, table = batch_of(golden), made.token_embedding.embeddings
    with tf.GradientTape() as tape:
        scores, predicted = scorer(batch, made(batch))
        loss = scores["loss"][0] / scores["loss"][1]
    gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
    logits = golden["their/token_logits"]
    assert error(predicted["token_logits"], logits, batch["mask_weights"]) < LOGITS
    assert abs(float(loss) - float(golden["their/loss"])) < LOGITS
    expected = golden["their/table_gradient"]
    excess = np.abs(gradient - expected) - (1e-6 + 1e-5 * np.abs(expected))
    excess[0] = 0.0  # torch never moves the padding row
    assert excess.max() <= 0


def test_the_draws_tell_the_activations_and_the_epsilons_apart(case):
    found, _, golden = case
    large = np.abs(found.network["pooler/kernel"]).max() > 0.5
    other = {"activation": "gelu_tanh"} if large else {"layer_norm_epsilon": 1e-5}
    changed = PretrainedNetwork(found.family, {**found.settings, **other}, found.network).build()
    batch = batch_of(golden)
    ours = changed(batch)["sequence_output"]
    assert error(ours, last(golden, "text"), batch["padding_mask"]) > 10 * HIDDEN


def test_without_regions_it_is_bert_with_the_texts_blocks(case):
    """The weights of another class, under the same names, give the same numbers."""
    found, made, golden = case
    names = ("num_region_layers", "num_cross_layers", "region_dim")
    settings = {key: value for key, value in found.settings.items() if key not in names}
    bert = Bert(**settings | {"num_layers": 5 if found.family == "lxmert" else 3})
    load_weights(bert, {name: found.network[name] for name in named_weights(bert)})
    batch = batch_of(golden)
    text = {key: value for key, value in batch.items() if not key.startswith("region")}
    masked = batch | {"region_mask": np.zeros_like(batch["region_mask"])}
    expected = bert(text)
    for given in (text, masked):
        for key, value in made(given).items():
            if key != "region_output":
                theirs = ops.convert_to_numpy(expected[key])
                assert error(value, theirs, np.ones(theirs.shape)) < 1e-6, key


@pytest.mark.parametrize(
    ("family", "left_out"),
    [("lxmert", ("answer_head", "seq_relationship")), ("visualbert", ("seq_relationship",))],
)
def test_what_is_written_is_read_with_the_same_bits(family, left_out, tmp_path):
    found = read_checkpoint(GOLDEN / f"{family}-large")
    (name,), prefix = architectures()[family].classes, architectures()[family].prefix
    assert list(found.heads) == ["masked_lm"]
    assert any(all(part in note for part in left_out) for note in found.notes)
    notes = write_checkpoint(found, tmp_path / "ours")
    assert notes == (f"left out, {name} has no counterpart: head masked_lm",)
    config = json.loads((tmp_path / "ours" / "config.json").read_text("utf-8"))
    assert config["architectures"] == [name]
    theirs = load_file(GOLDEN / f"{family}-large" / "model.safetensors")
    ours = load_file(tmp_path / "ours" / "model.safetensors")
    kept = {name for name in theirs if name.startswith(prefix)}
    assert {f"{prefix}{name}" for name in ours} == kept
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[f"{prefix}{name}"])
    again = read_checkpoint(tmp_path / "ours")
    assert again.settings == found.settings
    for name, array in found.network.items():
        np.testing.assert_array_equal(array, again.network[name])


@pytest.mark.parametrize(
    ("family", "key", "expected", "got"),
    [("lxmert", "visual_pos_dim", 4, 7), ("visualbert", "bypass_transformer", False, True)],
)
def test_what_ours_has_not_is_refused(family, key, expected, got, tmp_path):
    shutil.copytree(GOLDEN / f"{family}-small", tmp_path / "other")
    path = tmp_path / "other" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: got}))
    with pytest.raises(RecipeError, match=f"{key}: expected {expected}, got {got}"):
        read_checkpoint(tmp_path / "other")
