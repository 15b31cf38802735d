"""BERT gives the numbers of Hugging Face transformers; `make_bert.py` made the golden file."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pytest

from models.families.bert import Bert
from models.layers.attention import bias_from_padding
from models.objectives.masked_lm import MaskedLM
from models.objectives.next_sentence import NextSentence
from models.protocols import Context
from models.weights import load_weights
from tests.models.memory_corpus import PlainTokenizer

GOLDEN = Path(__file__).with_name("bert.npz")
TOLERANCE = 2e-5
INPUTS = (
    "token_ids",
    "segment_ids",
    "padding_mask",
    "mask_positions",
    "mask_labels",
    "mask_weights",
    "next_sentence_labels",
)


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


def build(golden: dict[str, np.ndarray], activation: str):
    size = json.loads(str(golden["about"]))["size"]
    network = Bert(**size, dropout=0.0, activation=activation)
    context = Context(PlainTokenizer(size["vocabulary_size"]), sequence_length=14)
    scorers = [MaskedLM(context).attach(network), NextSentence(context).attach(network)]
    for prefix, layer in zip(
        ("network", "masked_lm", "next_sentence"), (network, *scorers), strict=True
    ):
        start = f"weights/{prefix}/"
        load_weights(
            layer, {k.removeprefix(start): v for k, v in golden.items() if k.startswith(start)}
        )
    return network, scorers, {key: golden[key] for key in INPUTS}


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_every_layer_matches(golden, activation):
    network, _, batch = build(golden, activation)
    real = batch["padding_mask"].astype(bool)
    x = network.embeddings(batch["token_ids"], batch["segment_ids"])
    bias = bias_from_padding(batch["padding_mask"])
    for number in range(network.num_layers + 1):
        expected = golden[f"{activation}/hidden_{number}"]
        error = np.abs(keras.ops.convert_to_numpy(x) - expected)[real]
        assert error.max() < TOLERANCE, f"after {number} blocks: {error.max()}, {error.mean()}"
        if number < network.num_layers:
            x = network.blocks[number](x, bias=bias)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_logits_loss_and_the_tied_gradient_match(golden, activation):
    import tensorflow as tf

    network, scorers, batch = build(golden, activation)
    table = network.token_embedding.embeddings
    with tf.GradientTape() as tape:
        outputs = network(batch)
        loss, predictions = 0.0, {}
        for scorer in scorers:
            scores, predicted = scorer(batch, outputs)
            loss = loss + scores["loss"][0] / scores["loss"][1]
            predictions |= predicted
    gradient = tf.convert_to_tensor(tape.gradient(loss, table.value))

    starts_real = batch["padding_mask"][:, 0].astype(bool)  # the others pool a padding position
    used = batch["mask_weights"] > 0
    for ours, theirs, where in (
        (outputs["pooled_output"], "pooled", starts_real),
        (predictions["next_sentence_logits"], "next_sentence_logits", starts_real),
        (predictions["token_logits"], "token_logits", used),
    ):
        error = np.abs(keras.ops.convert_to_numpy(ours) - golden[f"{activation}/{theirs}"])[where]
        assert error.max() < TOLERANCE, f"{theirs}: {error.max()}"
    assert abs(float(loss) - float(golden[f"{activation}/loss"])) < TOLERANCE
    # torch never moves the padding row; ours moves where a left-padded row pools its position.
    error = np.abs(gradient.numpy() - golden[f"{activation}/table_gradient"])[1:]
    assert error.max() < TOLERANCE, f"gradient: {error.max()}"


def test_the_two_activations_can_be_told_apart(golden):
    difference = np.abs(golden["gelu/token_logits"] - golden["gelu_tanh/token_logits"]).max()
    assert difference > 100 * TOLERANCE
