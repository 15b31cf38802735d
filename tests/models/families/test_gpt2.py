"""GPT-2's weights as training begins."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from scipy.stats import truncnorm

from models.families.gpt2 import Gpt2
from models.weights import named_weights

# Of a normal distribution cut at two standard deviations, as all kernels' is, in those.
CUT = float(truncnorm(-2, 2).std())


@pytest.mark.parametrize("layers", [2, 8])
def test_what_is_added_to_the_residual_stream_is_drawn_smaller_by_the_root_of_the_additions(layers):
    keras.utils.set_random_seed(1)
    size = {"hidden_dim": 96, "num_heads": 2, "intermediate_dim": 256}
    network = Gpt2(vocabulary_size=50, num_layers=layers, max_sequence_length=16, **size)
    weights = {name: w.numpy() for name, w in named_weights(network).items()}
    kernels = [name for name in weights if name.endswith("/kernel")]
    added = [name for name in kernels if name.endswith("/output/kernel")]  # attention's, too
    assert len(added) == 2 * layers
    assert len(kernels) == 6 * layers
    for name in kernels:
        expected = CUT * (0.02 / np.sqrt(2 * layers) if name in added else 0.02)
        # 96 × 96 draws or more: the standard error of the deviation is 0.8 % at most.
        assert weights[name].std() == pytest.approx(expected, rel=0.04), name
        assert weights[name].mean() == pytest.approx(0.0, abs=5 * expected / 96), name
