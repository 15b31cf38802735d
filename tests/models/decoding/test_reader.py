"""Reading with a cache equals reading everything anew."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models import catalogue
from models.decoding import cached
from models.decoding.reader import causal_reader
from tests.conformance.parts import FAMILIES, VOCABULARY_SIZE, network

CAUSAL = [f for f in FAMILIES if "causal" in catalogue.literals("families", f)["PROVIDES"]]


@pytest.fixture(params=CAUSAL)
def made(request):
    return network(request.param, seed=5)


def logits(made, hidden):
    return keras.ops.matmul(hidden, keras.ops.transpose(made.token_embedding.embeddings))


def texts(count: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(5, VOCABULARY_SIZE, (count, length)).astype("int32")


def padded(said: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids and mask of texts, padded on the left."""
    width = max(map(len, said))
    ids = np.array([[0] * (width - len(text)) + text for text in said], "int32")
    lengths = np.array([[len(text)] for text in said])
    return ids, (np.arange(width) >= width - lengths).astype("int32")


def whole(made, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Logits after the last token, read from the first."""
    hidden = made({"token_ids": ids, "padding_mask": mask})["sequence_output"][:, -1]
    return keras.ops.convert_to_numpy(logits(made, hidden))


def test_token_by_token_equals_one_reading_with_padding_on_the_left(made):
    ids, lengths = texts(3, 7), np.array([[7], [4], [1]])
    mask = (np.arange(7) >= 7 - lengths).astype("int32")
    reader = causal_reader(made, lambda hidden: logits(made, hidden))
    found = reader.start(ids * mask, mask)
    np.testing.assert_allclose(found, whole(made, ids * mask, mask), atol=1e-5)
    for step in range(20):
        new = texts(3, 1, seed=step)[:, 0]
        ids = np.concatenate([ids * mask, new[:, None]], axis=1)
        mask = np.concatenate([mask, np.ones((3, 1), "int32")], axis=1)
        found = reader.step(np.arange(3), new)
        np.testing.assert_allclose(found, whole(made, ids, mask), atol=1e-5)


def test_texts_may_be_dropped_doubled_and_turned(made):
    ids, rows = texts(3, 6), np.array([2, 0, 0, 2])
    reader = causal_reader(made, lambda hidden: logits(made, hidden))
    reader.start(ids, np.ones_like(ids))
    new = texts(4, 1)[:, 0]
    found = reader.step(rows, new)
    turned = np.concatenate([ids[rows], new[:, None]], axis=1)
    np.testing.assert_allclose(found, whole(made, turned, np.ones_like(turned)), atol=1e-5)
    found = reader.step(np.array([1]), new[:1])
    turned = np.concatenate([turned[1:2], new[None, :1]], axis=1)
    np.testing.assert_allclose(found, whole(made, turned, np.ones_like(turned)), atol=1e-5)


def test_texts_that_part_and_end_equal_one_reading_whatever_room_there_is(made, monkeypatch):
    monkeypatch.setattr(cached, "ROOM", 2)
    rng, lengths = np.random.default_rng(3), (5, 2, 4)
    said = [rng.integers(5, VOCABULARY_SIZE, length).tolist() for length in lengths]
    ids, mask = padded(said)
    reader = causal_reader(made, lambda hidden: logits(made, hidden))
    reader.start(ids, mask)
    for count in (3, 4, 6, 6, 5, 6, 7, 4, 4, 1, 3, 2, 2):
        rows, new = rng.integers(0, len(said), count), rng.integers(5, VOCABULARY_SIZE, count)
        said = [[*said[row], token] for row, token in zip(rows.tolist(), new.tolist(), strict=True)]
        np.testing.assert_allclose(reader.step(rows, new), whole(made, *padded(said)), atol=1e-5)


def test_two_readings_share_nothing(made):
    reader = causal_reader(made, lambda hidden: logits(made, hidden))
    one, other = texts(2, 5, seed=1), texts(4, 9, seed=2)
    first = reader.start(one, np.ones_like(one))
    reader.start(other, np.ones_like(other))
    np.testing.assert_array_equal(reader.start(one, np.ones_like(one)), first)
