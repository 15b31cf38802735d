"""The Transformer: its size, its positions, and how its weights begin."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from models.families.transformer import SIZES, Transformer
from models.layers.sinusoids import Sinusoids
from tests.models.weightless import weightless

VOCABULARY_SIZE = 37_000  # "about 37000 tokens", section 5.1


@pytest.mark.parametrize(
    ("size", "parameters", "paper"),
    [("base", 63_082_496, 65e6), ("big", 214_245_376, 213e6)],
)
def test_parameters_are_those_of_table_3_but_for_its_vocabulary(size, parameters, paper):
    with weightless():
        network = Transformer(vocabulary_size=VOCABULARY_SIZE, **SIZES[size])
    assert network.count_params() == parameters
    assert parameters == pytest.approx(paper, rel=0.03)


def test_sinusoids_begin_at_position_0_and_sines_and_cosines_take_turns():
    table = Sinusoids(41, 4).embeddings
    assert table[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    expected = [np.sin(40.0), np.cos(40.0), np.sin(0.4), np.cos(0.4)]
    np.testing.assert_allclose(table[40], expected, rtol=1e-6)
    with pytest.raises(ValueError, match="hidden_dim must be even for sinusoids, got 5"):
        Sinusoids(3, 5)


def test_what_enters_the_first_block_is_scaled_and_has_no_norm():
    network = Transformer(vocabulary_size=20, **SIZES["tiny"])
    ids = np.array([[7, 8]], "int32")
    token = np.asarray(network.token_embedding.embeddings)[[7, 8]]
    expected = token * 128**0.5 + Sinusoids(2, 128).embeddings
    np.testing.assert_allclose(
        np.asarray(network.embed({"token_ids": ids}))[0], expected, atol=1e-6
    )


def test_kernels_begin_as_xaviers_each_with_draws_of_its_own():
    network = Transformer(vocabulary_size=20, **SIZES["tiny"])
    kernels = [v for v in network.trainable_variables if v.path.endswith("kernel")]
    assert len(kernels) == 2 * 6 + 2 * 10
    for kernel in kernels:
        bound = (6 / sum(kernel.shape)) ** 0.5
        values = np.asarray(kernel)
        assert np.abs(values).max() <= bound
        assert values.std() == pytest.approx(bound / 3**0.5, rel=0.03)
    square = [
        np.asarray(kernel).ravel() for kernel in kernels if kernel.shape[0] == kernel.shape[1]
    ]
    assert np.abs(np.corrcoef(square) - np.eye(len(square))).max() < 0.05


def test_the_first_loss_is_that_of_guessing_at_the_published_size():
    keras.utils.set_random_seed(0)
    network = Transformer(vocabulary_size=VOCABULARY_SIZE, **SIZES["base"])
    rng = np.random.default_rng(0)
    ids, target = rng.integers(5, VOCABULARY_SIZE, (2, 2, 20)).astype("int32")
    hidden = network({"token_ids": ids, "target_ids": target})["sequence_output"]
    logits = np.asarray(hidden) @ np.asarray(network.token_embedding.embeddings).T
    labels = rng.integers(5, VOCABULARY_SIZE, (2, 20, 1))
    loss = -np.take_along_axis(log_softmax(logits, axis=-1), labels, axis=-1).mean()
    assert loss == pytest.approx(np.log(VOCABULARY_SIZE), rel=0.1)
