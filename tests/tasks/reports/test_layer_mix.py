"""The learned mix of a frozen network's layers, as the layer itself computes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.layers.frozen_features import FeatureReader
from models.weights import save_weights
from tasks.reports.layer_mix import layer_mix, mix_line, mix_table


def reader(folder: Path, layers: int) -> FeatureReader:
    (folder / "heads").mkdir(parents=True)
    made = FeatureReader(layers, 4, hidden_dim=3, num_layers=1, dropout=0.0)
    made.mix.w.assign(np.linspace(-1, 1, layers))
    made.mix.scale.assign(1.5)
    save_weights(made, folder / "heads" / "feature_based.safetensors")
    return made


def test_shares_are_those_by_which_layers_are_mixed(tmp_path: Path):
    made = reader(tmp_path, 3)
    found = layer_mix(tmp_path)
    assert found is not None
    layers = np.eye(3, dtype=np.float32)[:, None, None]  # each alone in one dimension
    mixed = np.asarray(made.mix(list(layers)))[0, 0]
    np.testing.assert_allclose(np.array(found[0]) * found[1], mixed, rtol=1e-5)
    assert mix_line(tmp_path) == "layers 0: 0.09, 1: 0.24, 2: 0.67, times 1.50"
    assert "| learned share | 0.0900 | 0.2447 | 0.6652 | 1.5000 |" in mix_table(tmp_path)


def test_nothing_is_said_of_one_layer_or_without_a_frozen_network(tmp_path: Path):
    assert (mix_line(tmp_path), mix_table(tmp_path)) == ("", "")
    reader(tmp_path, 1)
    assert (mix_line(tmp_path), mix_table(tmp_path)) == ("", "")
