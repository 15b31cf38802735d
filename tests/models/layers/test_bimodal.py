"""The bimodal block with two streams of different widths against NumPy."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from scipy.special import softmax

from models.layers.attention import bias_from_padding
from models.layers.bimodal import BimodalBlock
from models.weights import load_weights, named_weights

RNG = np.random.default_rng(4)
ARGUMENTS: dict[str, Any] = {
    "hidden_dim": 8,
    "num_heads": 2,
    "intermediate_dim": 16,
    "dropout": 0.0,
    "activation": "gelu",
    "layer_norm_epsilon": 1e-12,
}


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def built(block: Any) -> Any:
    block.build()
    weights = {name: drawn(*v.shape) * 0.5 for name, v in named_weights(block).items()}
    load_weights(block, weights)
    return block


def value(tensor: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(tensor)


def test_streams_of_two_widths_attend_to_each_other_as_in_vilbert():
    other = {"hidden_dim": 12, "intermediate_dim": 10}
    size = ARGUMENTS | {"head_dim": 3}
    block = built(BimodalBlock(**size, across=True, regions=other, name="block_0"))
    w = {name: np.asarray(variable) for name, variable in named_weights(block).items()}
    x, regions = drawn(2, 5, 8), drawn(2, 4, 12)
    mask = np.array([[1, 1, 0, 1], [0, 0, 0, 0]])

    def dense(name: str, rows: np.ndarray) -> np.ndarray:
        return rows @ w[f"{name}/kernel"] + w[f"{name}/bias"]

    def norm(name: str, rows: np.ndarray) -> np.ndarray:
        moved = rows - rows.mean(-1, keepdims=True)
        scaled = moved / np.sqrt((moved**2).mean(-1, keepdims=True))
        return scaled * w[f"{name}/gamma"] + w[f"{name}/beta"]

    def attended(asking: str, seen: str, rows: np.ndarray, others: np.ndarray, mask: np.ndarray):
        found = []
        for head in (slice(0, 3), slice(3, 6)):
            query = dense(f"{asking}attention/query", rows)[:, head]
            key = dense(f"{seen}attention/key", others)[:, head][mask > 0]
            scores = softmax(query @ key.T / 3**0.5, axis=-1)
            found.append(scores @ dense(f"{seen}attention/value", others)[:, head][mask > 0])
        mixed = dense(f"{asking}attention/output", np.concatenate(found, axis=-1))
        return norm(f"{asking}attention_norm", rows + mixed)

    def forward(side: str, rows: np.ndarray) -> np.ndarray:
        inner = value(keras.activations.gelu(dense(f"{side}intermediate", rows), approximate=False))
        return norm(f"{side}output_norm", rows + dense(f"{side}output", inner))

    biases = bias_from_padding(np.ones((2, 5))), bias_from_padding(mask)
    one, two = block(x, regions, *biases)
    text = attended("", "regions/", x[0], regions[0], mask[0])
    assert np.abs(value(one)[0] - forward("", text)).max() < 1e-5
    # Nothing to attend to: the attention is left out with its norm.
    assert np.abs(value(one)[1] - forward("", x[1])).max() < 1e-5
    for row in range(2):
        picture = attended("regions/", "", regions[row], x[row], np.ones(5))
        assert np.abs(value(two)[row] - forward("regions/", picture)).max() < 1e-5
    alone, none = block(x)
    assert none is None
    assert np.abs(value(alone)[0] - forward("", x[0])).max() < 1e-5
