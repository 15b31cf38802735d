"""Our networks give the numbers of Hugging Face transformers, read from folders that it wrote.

`make_goldens.py` made them; the names of tensors are the product's own.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from models import catalogue, features
from models.interchange.huggingface import PretrainedNetwork, read_checkpoint
from models.layers.loss import cross_entropy
from models.layers.token_prediction import TokenOutput
from models.objectives.causal_lm import CausalLM
from models.protocols import Context
from models.weights import load_weights
from tests.models.memory_corpus import PlainTokenizer
from tests.past import longer

ops: Any = keras.ops
GOLDEN = Path(__file__).with_name("golden")
FOLDERS = sorted(path.name for path in GOLDEN.iterdir())
ACTIVATION_KEYS = ("activation", "activation_function", "hidden_act", "afn")
HIDDEN, LOGITS = 5e-6, 1e-5
LENGTHS = (14, 33)


@pytest.fixture(params=FOLDERS)
def name(request) -> str:
    return request.param


@pytest.fixture(params=["gelu", "gelu_new"])
def activation(request, name: str) -> str:
    if name.startswith("gpt-") and request.param != "gelu":
        pytest.skip("transformers' GPT has one activation")
    return request.param


def checkpoint(name: str, activation: str, tmp_path: Path) -> PretrainedNetwork:
    """The folder that transformers wrote, with another activation in its configuration."""
    folder = tmp_path / name
    shutil.copytree(GOLDEN / name, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config[next(key for key in ACTIVATION_KEYS if key in config)] = activation
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return read_checkpoint(folder)


def batch_of(numbers: Any, length: int) -> dict[str, np.ndarray]:
    keys = ("token_ids", "segment_ids", "padding_mask", "task_ids", "mask_positions", "mask_labels")
    batch = {key: numbers[f"{length}/{key}"].astype(np.int32) for key in keys}
    return batch | {"mask_weights": numbers[f"{length}/mask_weights"]}


def test_every_layer_matches(name, activation, tmp_path):
    found = checkpoint(name, activation, tmp_path)
    network = found.build()
    with np.load(GOLDEN / name / "numbers.npz") as numbers:
        for length in LENGTHS:
            batch = batch_of(numbers, length)
            real = batch["padding_mask"].astype(bool)
            compared = 0
            states = [ops.convert_to_numpy(x) for x in network.hidden_states(batch)]
            for layer, x in enumerate(states):
                key = f"{length}/{activation}/hidden_{layer}"
                if key in numbers:
                    error = np.abs(x - numbers[key])[real]
                    assert error.max() < HIDDEN, f"after {layer} blocks of {length}: {error.max()}"
                    compared += 1
            assert compared == (len(network.order) + 1 if length == LENGTHS[0] else 1)
            last = ops.convert_to_numpy(network(batch)[features.SEQUENCE_OUTPUT])
            assert np.abs(last - states[-1]).max() < HIDDEN


def token_scorer(objective: str, network: Any, found: PretrainedNetwork) -> Any:
    context = Context(PlainTokenizer(network.vocabulary_size), sequence_length=33)
    scorer = catalogue.find("objectives", objective)(context).attach(network)
    load_weights(scorer, found.heads[objective])
    return scorer


def second_logits(network: Any, found: PretrainedNetwork, outputs: dict) -> Any:
    """Of the other pre-training head: a dense layer, in ELECTRA two and one a token."""
    for head in ("next_sentence", "sentence_order"):
        if head in found.heads:
            weights = found.heads[head]
            return (
                ops.matmul(outputs["pooled_output"], weights["output/kernel"])
                + weights["output/bias"]
            )
    weights = found.heads.get("replaced_token_detection")
    if weights is None:
        return None
    hidden = ops.matmul(outputs["sequence_output"], weights["transform/kernel"])
    hidden = network.blocks[0].intermediate._plain(hidden, weights["transform/bias"])
    return (ops.matmul(hidden, weights["score/kernel"]) + weights["score/bias"])[..., 0]


def test_logits_loss_and_the_gradient_on_the_table_match(name, activation, tmp_path):
    import tensorflow as tf

    found = checkpoint(name, activation, tmp_path)
    network = found.build()
    table = network.token_embedding.embeddings
    objective = next((name for name in ("masked_lm", "causal_lm") if name in found.heads), "")
    scorer = token_scorer(objective, network, found) if objective else None
    with np.load(GOLDEN / name / "numbers.npz") as numbers:
        for length in LENGTHS:
            batch = batch_of(numbers, length)
            if objective == "causal_lm":
                batch = CausalLM(Context(PlainTokenizer(), 33)).examples(
                    batch, np.random.default_rng(0)
                )
            golden = {
                key: numbers[f"{length}/{activation}/{key}"]
                for key in ("loss", "table_gradient", "token_logits", "second_logits")
                if f"{length}/{activation}/{key}" in numbers
            }
            real = batch["padding_mask"].astype(bool)
            replaced = numbers[f"{length}/replaced"].astype(np.float32)
            rows = numbers[f"{length}/row_labels"].astype(np.int32)
            with tf.GradientTape() as tape:
                outputs = network(batch)
                loss, predicted = 0.0, {}
                if scorer is not None:
                    scores, predicted = scorer(batch, outputs)
                    loss = scores["loss"][0] / scores["loss"][1]
                second = second_logits(network, found, outputs)
                if second is not None and second.shape[-1] == 2:
                    total, weight = cross_entropy(second, rows, np.ones(4, np.float32))["loss"]
                    loss = loss + total / weight
                elif second is not None:
                    nats = tf.nn.sigmoid_cross_entropy_with_logits(replaced, second)
                    loss = tf.reduce_mean(tf.boolean_mask(nats, real))
            gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()

            if scorer is not None:
                used = batch["next_weights" if "next_weights" in batch else "mask_weights"] > 0
                ours = ops.convert_to_numpy(predicted["token_logits"])
                error = np.abs(ours - golden["token_logits"])[used]
                assert error.max() < LOGITS, f"{length}: token_logits: {error.max()}"
            if second is not None:
                # A row that starts with padding pools a padding position.
                counted = real if second.shape[-1] != 2 else real[:, 0]
                ours = ops.convert_to_numpy(second)
                error = np.abs(ours - golden["second_logits"])[counted]
                assert error.max() < LOGITS, f"{length}: second_logits: {error.max()}"
            assert abs(float(loss) - float(golden["loss"])) < LOGITS
            expected = golden["table_gradient"]
            excess = np.abs(gradient - expected) - (1e-6 + 1e-5 * np.abs(expected))
            # torch never moves the padding row.
            excess[found.pad_id] = 0.0
            assert excess.max() <= 0, f"{length}: gradient: {excess.max()} too much"


@pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # of one token
@pytest.mark.parametrize("name", [name for name in FOLDERS if name.startswith("gpt")])
def test_a_text_read_token_by_token_gives_the_same_logits(name):
    network = read_checkpoint(GOLDEN / name).build()
    with np.load(GOLDEN / name / "numbers.npz") as numbers:
        batch = batch_of(numbers, LENGTHS[0])
        theirs = numbers[f"{LENGTHS[0]}/gelu/token_logits"]
    ids, mask = batch["token_ids"], batch["padding_mask"]
    past, found = [], []
    for place in range(ids.shape[1]):
        given = {"token_ids": ids[:, place : place + 1], "padding_mask": mask[:, : place + 1]}
        hidden, new = network.go_on(given, past)
        past = longer(past, new)
        found.append(ops.convert_to_numpy(TokenOutput(network).logits(hidden))[:, 0])
    predicted = np.stack(found, axis=1)[:, : theirs.shape[1]]
    used = (mask[:, 1:] * mask[:, :-1])[:, : theirs.shape[1]] > 0
    assert {0, 1} <= {*mask[:, 0].tolist()}, "rows are padded on either side"
    assert np.abs(predicted - theirs)[used].max() < LOGITS


@pytest.mark.parametrize("name", [name for name in FOLDERS if not name.startswith("gpt-")])
def test_the_draws_tell_the_activations_and_the_epsilons_apart(name):
    with np.load(GOLDEN / name / "numbers.npz") as numbers:
        last = max(key for key in numbers if key.startswith("33/gelu/hidden"))
        one, two = numbers[last], numbers[last.replace("gelu", "gelu_new")]
    if name.endswith("large"):
        assert np.abs(one - two).max() > 10 * HIDDEN


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "ernie", "gpt", "gpt2"])
def test_another_epsilon_shows_in_the_small_draw(family):
    name = f"{family}-small"
    found = read_checkpoint(GOLDEN / name)
    other = 1e-12 if found.settings["layer_norm_epsilon"] > 1e-8 else 1e-5
    activation = "gelu_tanh" if family == "gpt" else "gelu"
    changed = {**found.settings, "layer_norm_epsilon": other, "activation": activation}
    network = PretrainedNetwork(found.family, changed, found.network).build()
    with np.load(GOLDEN / name / "numbers.npz") as numbers:
        batch = batch_of(numbers, 33)
        last = max(key for key in numbers if key.startswith("33/gelu/hidden"))
        ours = ops.convert_to_numpy(network(batch)["sequence_output"])
        error = np.abs(ours - numbers[last])[batch["padding_mask"].astype(bool)]
    assert error.max() > 10 * HIDDEN


@pytest.mark.parametrize("case", ["gpt-small", "gpt2-small"])
def test_a_decoder_whose_settings_name_no_padding_is_read(case, tmp_path):
    shutil.copytree(GOLDEN / case, tmp_path / case)
    config = tmp_path / case / "config.json"
    none = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))  # as transformers 5 does
    config.write_text(json.dumps(json.loads(config.read_text()) | none))
    assert read_checkpoint(tmp_path / case).pad_id == 0
