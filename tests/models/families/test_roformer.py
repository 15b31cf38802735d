"""RoFormer: queries and keys turned by their positions, against complex numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.families.roformer import Roformer
from models.layers.rotary_attention import RotaryAttention
from models.weights import named_weights

SIZE = {"num_layers": 2, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
TEXT = np.array([[2, 7, 9, 3, 11]])


def drawn(**more: int) -> Roformer:
    """A network whose weights are so large that attention is uneven."""
    network = Roformer(vocabulary_size=50, dropout=0.0, **(SIZE | more))
    rng = np.random.default_rng(0)
    for variable in named_weights(network).values():
        variable.assign(rng.normal(0, 1.0, variable.shape))
    return network


def states(network: Roformer, **features: np.ndarray) -> np.ndarray:
    return np.array(network(features)["sequence_output"])


def test_a_pair_of_numbers_turns_by_its_positions_angle():
    layer = RotaryAttention(max_sequence_length=7, hidden_dim=12, num_heads=2, stddev=1.0)
    layer.build()
    x = np.random.default_rng(1).normal(size=(1, 7, 12)).astype(np.float32)
    weights = {path: variable.numpy() for path, variable in named_weights(layer).items()}

    def turned(name: str) -> np.ndarray:
        pairs = (x[0] @ weights[f"{name}/kernel"]).reshape(7, 2, 3, 2)
        angles = np.arange(7)[:, None] * 10_000.0 ** -(np.arange(3) / 3)
        return (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)[:, None]

    # Su et al., equation 16: Re[q k* e^{i(m - n)θ}]
    scores = np.einsum("thp,shp->hts", turned("query"), turned("key").conj()).real / np.sqrt(6)
    shares = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    values = (x[0] @ weights["value/kernel"]).reshape(7, 2, 6)
    read = np.einsum("hts,shk->thk", shares, values).reshape(7, 12)
    expected = read @ weights["output/kernel"]
    np.testing.assert_allclose(np.array(layer(x))[0], expected, rtol=1e-4, atol=1e-4)


def test_positions_are_told_apart_and_padding_may_stand_anywhere():
    network = drawn()
    alone = states(network, token_ids=TEXT)
    for before in (0, 1, 3):
        around = ((0, 0), (before, 3 - before))
        mask = np.pad(np.ones_like(TEXT), around)
        found = states(network, token_ids=np.pad(TEXT, around), padding_mask=mask)
        np.testing.assert_allclose(found[:, before : before + 5], alone, rtol=1e-4, atol=1e-5)
    backwards = states(network, token_ids=TEXT[:, ::-1])[:, ::-1]
    assert np.abs(backwards - alone).max() > 100 * 1e-4  # of what padding may change


def test_the_last_layer_may_be_read_in_some_places():
    network = drawn()
    ids = np.array([[2, 7, 9, 3, 11], [2, 8, 8, 3, 0]])
    mask = (ids > 0).astype("int32")
    at = np.array([[0, 3, 1], [0, 2, 2]], "int32")
    whole = states(network, token_ids=ids, padding_mask=mask)
    read = states(network, token_ids=ids, padding_mask=mask, read_positions=at)
    expected = np.take_along_axis(whole, at[:, :, None], axis=1)
    np.testing.assert_allclose(read, expected, rtol=1e-4, atol=1e-5)


def test_an_odd_width_per_head_is_refused():
    with pytest.raises(RecipeError, match="even width per head for rotary positions, got 3"):
        drawn(hidden_dim=6)
