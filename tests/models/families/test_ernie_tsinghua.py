"""ERNIE of Tsinghua against NumPy, and against BERT where a text names nothing."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.families.bert import Bert
from models.families.ernie_tsinghua import ErnieTsinghua
from models.weights import load_weights, named_weights
from tests.models.families.drawn import dense, draw_weights, norm

RNG = np.random.default_rng(9)
TEXT_SIZE = {"vocabulary_size": 30, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
TEXT_SIZE |= {"num_layers": 4, "max_sequence_length": 9, "dropout": 0.0, "activation": "relu"}
SIZE: dict[str, Any] = {
    **TEXT_SIZE,
    "num_text_layers": 1,
    "num_entities": 11,
    "entity_dim": 6,
    "entity_heads": 2,
}
TEXT = {
    "token_ids": RNG.integers(0, 30, (3, 7)).astype(np.int32),
    "segment_ids": np.repeat([[0, 0, 0, 1, 1, 1, 1]], 3, axis=0).astype(np.int32),
    "padding_mask": (np.arange(7) < [[7], [5], [6]]).astype(np.int32),
}
NAMED = np.array([[0, 4, 0, 9, 4, 0, 0], [0, 0, 10, 0, 0, 0, 0], [0] * 7], np.int32)


def value(tensor: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(tensor)


@pytest.fixture(scope="module")
def made() -> tuple[Any, dict[str, np.ndarray]]:
    """A network all of whose weights are drawn, and its weights."""
    network = ErnieTsinghua(**SIZE)
    return network, draw_weights(network, RNG)


def attention(
    w: dict[str, np.ndarray], name: str, rows: np.ndarray, seen: np.ndarray, heads: int
) -> np.ndarray:
    """One row, (T, D), head by head, over the positions that are seen, (T,) bool."""
    asked, key, values = (dense(w, f"{name}/{each}", rows) for each in ("query", "key", "value"))
    width, found = rows.shape[-1] // heads, []
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        scores = asked[:, own] @ key[seen][:, own].T / np.sqrt(width)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        found.append(shares / shares.sum(-1, keepdims=True) @ values[seen][:, own])
    return dense(w, f"{name}/output", np.concatenate(found, axis=-1))


def by_hand(w: dict[str, np.ndarray], row: int) -> np.ndarray:
    """The last states of a row, (T, D), entity by entity."""
    ids, segments = TEXT["token_ids"][row], TEXT["segment_ids"][row]
    x = w["embeddings/token/embeddings"][ids] + w["embeddings/segment/embeddings"][segments]
    x = norm(w, "embeddings/norm", x + w["embeddings/position/embeddings"][: len(ids)])
    real = TEXT["padding_mask"][row] > 0
    places = np.flatnonzero(NAMED[row])
    entities = w["entities/embeddings"][NAMED[row][places]]  # (n, E)
    for number in range(4):
        at = f"block_{number}"
        x = norm(w, f"{at}/attention_norm", x + attention(w, f"{at}/attention", x, real, 3))
        inner = dense(w, f"{at}/intermediate", x)
        if number >= 2 and len(places):
            seen = np.ones(len(places), bool)
            attended = attention(w, f"{at}/entity_attention", entities, seen, 2)
            entities = norm(w, f"{at}/entity_attention_norm", entities + attended)
        if number >= 1:
            inner[places] += entities @ w[f"{at}/entity_intermediate/kernel"]
        inner = np.maximum(inner, 0)
        if 1 <= number < 3:
            given = dense(w, f"{at}/entity_output", inner[places])
            entities = norm(w, f"{at}/entity_output_norm", entities + given)
        x = norm(w, f"{at}/output_norm", x + dense(w, f"{at}/output", inner))
    return x


def test_tokens_and_entities_are_fused_as_in_the_paper(made):
    network, w = made
    found = network(TEXT | {"entity_ids": NAMED})
    for row in range(3):
        expected = by_hand(w, row)
        real = TEXT["padding_mask"][row] > 0
        np.testing.assert_allclose(
            value(found["sequence_output"])[row][real], expected[real], atol=2e-5
        )
        pooled = np.tanh(dense(w, "pooler", expected[0]))
        np.testing.assert_allclose(value(found["pooled_output"])[row], pooled, atol=2e-5)


def test_a_text_that_names_nothing_is_read_as_by_bert(made):
    network, w = made
    bert = Bert(**TEXT_SIZE)
    load_weights(bert, {name: w[name] for name in named_weights(bert)})
    expected = bert(TEXT)
    for batch in (TEXT, TEXT | {"entity_ids": np.zeros_like(NAMED)}):
        for key, numbers in network(batch).items():
            np.testing.assert_allclose(value(numbers), value(expected[key]), atol=1e-6)
    beside = network(TEXT | {"entity_ids": NAMED})["sequence_output"]
    np.testing.assert_allclose(value(beside)[2], value(expected["sequence_output"])[2], atol=1e-6)
    assert np.abs(value(beside)[:2] - value(expected["sequence_output"])[:2]).max() > 0.01


def test_what_stands_at_no_entity_changes_nothing(made):
    network, w = made
    batch = TEXT | {"entity_ids": NAMED}
    before = value(network(batch)["sequence_output"])
    table = network.entities.embeddings
    table.assign(np.where(np.arange(11)[:, None] == 0, 50.0, w["entities/embeddings"]))
    np.testing.assert_array_equal(value(network(batch)["sequence_output"]), before)
    table.assign(w["entities/embeddings"])


def test_the_table_of_entities_is_not_trained_and_all_else_is(made):
    network, _ = made
    assert [each.path.split("/")[-2] for each in network.non_trainable_variables] == ["entities"]


def test_a_network_without_a_layer_for_entities_is_refused():
    with pytest.raises(RecipeError, match=r"num_text_layers: expected 0 to 3.*got 4"):
        ErnieTsinghua(**SIZE | {"num_text_layers": 4})
