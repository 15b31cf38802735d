"""Which tokens a layer of GPT-3 sees, and its published size."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models import catalogue
from models.families import gpt3
from models.families.gpt3 import Gpt3
from tests.models.weightless import weightless

SMALL = {"vocabulary_size": 20, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
PUBLISHED = {"small": 125, "medium": 356, "large": 760}  # table 2.1; medium: "350M"


def seen(network: Gpt3, features: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Of each layer, (B, T, S) bool: which position sees which."""
    found = [keras.ops.convert_to_numpy(bias) for bias in network.attention_biases(features)]
    return [bias[:, 0] > -1 for bias in found]


def in_numpy(mask: np.ndarray, layer: int, band: int) -> np.ndarray:
    """The same by the definition, position by position."""
    expected = np.zeros((*mask.shape, mask.shape[1]), bool)
    for row, real in enumerate(mask):
        for i in range(len(real)):
            for j in range(i + 1):
                between = real[j:i].sum()  # real tokens from j up to i
                near = band == 0 or layer % 2 == 0 or between < band
                expected[row, i, j] = real[j] and near
    return expected


@pytest.mark.parametrize("band", [0, 1, 3, 50])
def test_layers_see_in_turn_everything_before_and_a_band(band):
    network = Gpt3(**SMALL, num_layers=4, max_sequence_length=16, band=band)
    mask = np.ones((4, 9), np.int32)
    mask[1, :4] = mask[2, 5:] = mask[3, 3:6] = 0  # on the left, on the right, in between
    ids = np.full_like(mask, 7)
    for layer, found in enumerate(seen(network, {"token_ids": ids, "padding_mask": mask})):
        real = mask.astype(bool)
        expected = in_numpy(mask, layer, band)
        np.testing.assert_array_equal(found[real], expected[real])
    for layer, found in enumerate(seen(network, {"token_ids": ids})):
        np.testing.assert_array_equal(found[0], in_numpy(mask[:1], layer, band)[0])


def test_the_smallest_has_125_million_parameters():
    for size, millions in PUBLISHED.items():
        settings = catalogue.literals("families", "gpt3")["SIZES"][size]
        with weightless():
            network = Gpt3(vocabulary_size=50_257, **settings)
        assert round(network.count_params() / 1e6) == millions
        width, inner = settings["hidden_dim"], settings["intermediate_dim"]
        block = 4 * width * width + 2 * width * inner + 9 * width + inner
        tables = (50_257 + 2048) * width
        expected = tables + settings["num_layers"] * block + 2 * width
        assert network.count_params() == expected
        assert f"{size} {expected:,}" in " ".join((gpt3.__doc__ or "").split())
