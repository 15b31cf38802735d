"""UniLM gives the numbers of transformers' BERT under UniLM's masks, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from models import features
from models.interchange.bert_as_unilm import as_unilm
from models.interchange.huggingface import PretrainedNetwork, read_checkpoint
from models.modes import Mode
from models.objectives.masked_lm import MaskedLM
from models.protocols import Context
from models.weights import load_weights
from tests.models.memory_corpus import PlainTokenizer
from tests.parity.test_parity import HIDDEN, LENGTHS, LOGITS, batch_of

GOLDEN = Path(__file__).with_name("unilm")
MODES = [mode.name.lower() for mode in Mode]


@pytest.fixture(scope="module", params=["large", "small"])
def of(request) -> tuple[PretrainedNetwork, Any, Any, dict[str, np.ndarray]]:
    """The checkpoint, our network and scorer with its weights, and their numbers."""
    found = as_unilm(read_checkpoint(GOLDEN / request.param))
    network = found.build()
    scorer = MaskedLM(Context(PlainTokenizer(97), sequence_length=33)).attach(network)
    load_weights(scorer, found.heads["masked_lm"])
    with np.load(GOLDEN / request.param / "numbers.npz") as numbers:
        return found, network, scorer, dict(numbers)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("mode", MODES)
def test_every_layer_the_logits_and_the_gradient_match(of, mode, length):
    import tensorflow as tf

    found, network, scorer, numbers = of
    golden = {
        key.removeprefix(f"{length}/{mode}/"): value
        for key, value in numbers.items()
        if key.startswith(f"{length}/{mode}/")
    }
    batch = batch_of(numbers, length)
    batch[features.MODES] = np.full(4, Mode[mode.upper()], np.int32)
    real = batch["padding_mask"].astype(bool)
    for layer, x in enumerate(network.hidden_states(batch)):
        error = np.abs(keras.ops.convert_to_numpy(x) - golden[f"hidden_{layer}"])[real]
        assert error.max() < HIDDEN, f"after {layer} blocks: {error.max()}"
    with tf.GradientTape() as tape:
        scores, predicted = scorer(batch, network(batch))
        loss = scores["loss"][0] / scores["loss"][1]
    used = batch["mask_weights"] > 0
    ours = keras.ops.convert_to_numpy(predicted["token_logits"])
    assert np.abs(ours - golden["token_logits"])[used].max() < LOGITS
    assert abs(float(loss) - float(golden["loss"])) < LOGITS
    table = tape.gradient(loss, network.token_embedding.embeddings.value)
    expected = golden["table_gradient"]
    excess = np.abs(tf.convert_to_tensor(table).numpy() - expected) - 1e-5 * np.abs(expected)
    excess[found.pad_id] = 0.0  # torch never moves the padding row
    assert excess.max() <= 1e-6


def test_the_modes_differ_by_more_than_the_tolerance(of):
    *_, numbers = of
    real = numbers["33/padding_mask"].astype(bool)
    last = [numbers[f"33/{mode}/hidden_3"][real] for mode in MODES]
    for i, one in enumerate(last):
        for other in last[:i]:
            assert np.abs(one - other).max() > 10 * HIDDEN


def test_without_modes_it_is_a_bidirectional_encoder(of):
    _, network, _, numbers = of
    batch = batch_of(numbers, 33)
    real = batch["padding_mask"].astype(bool)
    ours = keras.ops.convert_to_numpy(network(batch)["sequence_output"])
    assert np.abs(ours - numbers["33/bidirectional/hidden_3"])[real].max() < HIDDEN
