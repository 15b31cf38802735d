"""Tokens that both texts of a row have: found by brute force, and what is added to them."""

from __future__ import annotations

import keras
import numpy as np

from models import features as keys
from models.layers.embedding import with_added
from models.layers.shared_tokens import SharedTokens

SPECIAL = (0, 2, 3)  # [PAD], [CLS], [SEP]


def rows(seed: int) -> dict[str, np.ndarray]:
    """Ten rows, of one text or of two, with many tokens twice; padding has a token's id, too."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(4, 9, (10, 16)).astype(np.int32)
    first, second = rng.integers(0, 7, 10), rng.integers(0, 7, 10)
    segments, mask = np.zeros_like(ids), np.zeros_like(ids)
    for row, (one, two) in enumerate(zip(first, second, strict=True)):
        ids[row, 0], ids[row, one + 1] = 2, 3
        mask[row, : one + 2] = 1
        if two:
            ids[row, one + two + 2] = 3
            segments[row, one + 2 : one + two + 3] = 1
            mask[row, : one + two + 3] = 1
    return {keys.TOKEN_IDS: ids, keys.SEGMENT_IDS: segments, keys.PADDING_MASK: mask}


def shared(batch: dict[str, np.ndarray]) -> np.ndarray:
    """As told, one token at a time."""
    found = np.zeros(batch[keys.TOKEN_IDS].shape, bool)
    for row, (ids, segments, mask) in enumerate(zip(*batch.values(), strict=True)):
        texts = [
            {int(i) for i, s, real in zip(ids, segments, mask, strict=True) if real and s == text}
            for text in (0, 1)
        ]
        for place, (token, segment, real) in enumerate(zip(ids, segments, mask, strict=True)):
            other = texts[1 - segment] - set(SPECIAL)
            found[row, place] = bool(real) and int(token) in other
    return found


def test_they_are_those_of_both_texts_without_special_tokens_and_padding() -> None:
    layer, some = SharedTokens(3, SPECIAL), 0
    for seed in range(20):
        batch = rows(seed)
        expected = shared(batch)
        assert np.array_equal(np.asarray(layer.found(batch)), expected)
        some += expected.sum()
    assert some > 100


def test_each_gets_the_vector_of_its_text() -> None:
    layer, batch = SharedTokens(3, SPECIAL), rows(0)
    layer.build()
    layer.vectors.assign([[1, 2, 3], [4, 5, 6]])
    added = np.asarray(layer(batch))
    found = shared(batch)
    for text, vector in enumerate(([1, 2, 3], [4, 5, 6])):
        own = found & (batch[keys.SEGMENT_IDS] == text)
        assert own.any()
        assert np.array_equal(added[own], np.tile(np.float32(vector), (own.sum(), 1)))
    assert not added[~found].any()


def test_what_is_added_is_in_units_of_each_tokens_own_length() -> None:
    rng = np.random.default_rng(0)
    tokens, added = rng.normal(size=(2, 3, 5, 4)).astype(np.float32)
    tokens *= np.float32(10) ** np.arange(5, dtype=np.float32)[:, None]
    length = np.sqrt(np.square(tokens).mean(axis=-1, keepdims=True))
    found = np.asarray(with_added(tokens, {keys.ADDED_VECTORS: added}))
    np.testing.assert_allclose(found, tokens + length * added, rtol=1e-5)
    assert with_added(tokens, {}) is tokens


def test_only_the_vectors_of_texts_with_shared_tokens_are_trained() -> None:
    layer = SharedTokens(3, SPECIAL)
    layer.build()
    assert [variable.shape for variable in layer.trainable_variables] == [(2, 3)]
    assert keras.ops.shape(layer(rows(1))) == (10, 16, 3)
