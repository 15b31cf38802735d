"""Alternating dense and banded attention gives the numbers of transformers' GPT-Neo.

`make_goldens.py` made them, with the weights under our names.
"""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

from models.families.gpt3 import Gpt3
from models.weights import load_weights
from tests.past import longer

GOLDEN = Path(__file__).with_name("banded") / "gpt_neo.npz"
HIDDEN, LOGITS, CACHED = 5e-6, 1e-5, 1e-5
WINDOW = 5


def made(band: int) -> Gpt3:
    network = Gpt3(
        vocabulary_size=97,
        num_layers=4,
        hidden_dim=32,
        num_heads=4,
        intermediate_dim=64,
        max_sequence_length=40,
        dropout=0.0,
        band=band,
    )
    with np.load(GOLDEN) as numbers:
        prefix = "weights/"
        weights = {n.removeprefix(prefix): numbers[n] for n in numbers if n.startswith(prefix)}
    load_weights(network, weights)
    return network


@pytest.fixture(scope="module")
def network() -> Gpt3:
    return made(WINDOW)


@pytest.fixture(scope="module")
def batch() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as numbers:
        return {key: numbers[key].astype("int32") for key in ("token_ids", "padding_mask")}


def test_every_layer_and_the_logits_match(network, batch):
    real = batch["padding_mask"].astype(bool)
    states = [keras.ops.convert_to_numpy(x) for x in network.hidden_states(batch)]
    with np.load(GOLDEN) as numbers:
        for layer, x in enumerate(states):
            error = np.abs(x - numbers[f"hidden_{layer}"])[real].max()
            assert error < HIDDEN, f"after {layer} blocks: {error}"
        logits = states[-1] @ keras.ops.convert_to_numpy(network.token_embedding.embeddings).T
        assert np.abs(logits - numbers["logits"])[real].max() < LOGITS


@pytest.mark.parametrize("band", [0, WINDOW - 1, WINDOW + 1])
def test_another_band_shows_in_these_numbers(band, batch):
    last = keras.ops.convert_to_numpy(made(band)(batch)["sequence_output"])
    with np.load(GOLDEN) as numbers:
        error = np.abs(last - numbers["hidden_4"])[batch["padding_mask"].astype(bool)]
    assert error.max() > 1000 * HIDDEN


def test_reading_token_by_token_equals_reading_at_once(network, batch):
    ids, mask = batch["token_ids"], batch["padding_mask"]
    whole = keras.ops.convert_to_numpy(network(batch)["sequence_output"])
    past, found = [], []
    for end in (7, *range(8, ids.shape[1] + 1)):
        given = ids[:, end - 1 : end] if past else ids[:, :end]
        hidden, new = network.go_on({"token_ids": given, "padding_mask": mask[:, :end]}, past)
        past = longer(past, new)
        found.append(keras.ops.convert_to_numpy(hidden))
    error = np.abs(np.concatenate(found, axis=1) - whole)[mask.astype(bool)]
    assert error.max() < CACHED
