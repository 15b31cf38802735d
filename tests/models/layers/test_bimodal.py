"""The bimodal block as one stream, and as two of different widths against NumPy."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from scipy.special import softmax

from models.layers.attention import bias_from_padding
from models.layers.bimodal import ACROSS, TOGETHER, BimodalBlock
from models.layers.block import TransformerBlock
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


def test_with_all_paths_and_one_set_of_weights_it_is_a_block_on_both_side_by_side():
    block = built(BimodalBlock(**ARGUMENTS, paths=TOGETHER, name="block_0"))
    single = TransformerBlock(**ARGUMENTS, name="block_1")
    single.build()
    load_weights(single, {n: np.asarray(v) for n, v in named_weights(block).items()})
    x, regions = drawn(3, 5, 8), drawn(3, 4, 8)
    masks = (
        np.array([[1] * 5, [1] * 3 + [0] * 2, [1] * 5]),
        np.array([[1] * 4, [1, 0, 0, 0], [0] * 4]),
    )
    biases = [bias_from_padding(mask) for mask in masks]
    one, two = block(x, regions, *biases)
    whole = np.concatenate([x, regions], axis=1)
    expected = value(single(whole, bias_from_padding(np.concatenate(masks, axis=1))))
    assert np.abs(value(one) - expected[:, :5])[masks[0] > 0].max() < 1e-5
    assert np.abs(value(two) - expected[:, 5:])[masks[1] > 0].max() < 1e-5
    at = np.array([[0, 4], [2, 1], [0, 3]], np.int32)
    some, _ = block(x, regions, *biases, at=at)
    assert np.abs(value(some) - np.take_along_axis(value(one), at[:, :, None], 1)).max() < 1e-5


def test_streams_of_two_widths_attend_to_each_other_as_in_vilbert():
    other = {"hidden_dim": 12, "intermediate_dim": 10}
    size = ARGUMENTS | {"head_dim": 3}
    block = built(BimodalBlock(**size, paths=ACROSS, regions=other, name="block_0"))
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
