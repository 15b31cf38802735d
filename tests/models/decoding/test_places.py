"""Texts that are written where they stand, read with a cache, equal one reading of all of it."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from models.decoding import cached
from models.decoding.fragment import FragmentReading
from models.decoding.reader import Reading, cached_reader
from models.layers.token_prediction import TokenOutput
from tests.conformance.parts import VOCABULARY_SIZE, network

MASK = 4
LENGTHS = (9, 5, 2, 7)  # of the prompts
FRAGMENTS = ((3, 5), (2, 3), (1, 2), (1, 7))  # first and last place of each prompt's blanks


def logits(made: Any, hidden: Any) -> np.ndarray:
    table = keras.ops.transpose(made.token_embedding.embeddings)
    return keras.ops.matmul(hidden, table)


def lively(family: str) -> Any:
    """A network whose predictions depend on what was read, and where.

    With larger weights it amplifies the rounding of float32: at 0.2, to 1.05e-5 with AMX.
    """
    made = network(family, seed=5)
    rng = np.random.default_rng(0)
    for variable in made.variables:
        if len(variable.shape) > 1 or "mask_embedding" in variable.path:
            variable.assign(rng.normal(0.0, 0.15, variable.shape))
    return made


def prompts() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(1)
    rows = [rng.integers(5, VOCABULARY_SIZE, n).astype(np.int32) for n in LENGTHS]
    for row, (first, last) in zip(rows, FRAGMENTS, strict=True):
        row[first:last] = MASK
    ids, mask = np.zeros((2, len(rows), max(LENGTHS)), np.int32)
    for number, row in enumerate(rows):
        ids[number, -len(row) :], mask[number, -len(row) :] = row, 1
    return ids, mask, rows


def of_xlnet(made: Any, prompt: np.ndarray, new: list[int]) -> np.ndarray:
    """Logits after a prompt and new tokens, by a factorisation and the second stream."""
    size = len(prompt) + len(new)
    batch = {
        "token_ids": np.array([[*prompt, *new, 0]], np.int32),
        "factorisation": np.array([[0] * len(prompt) + list(range(1, len(new) + 2))], np.int32),
        "query_positions": np.array([[size]], np.int32),
    }
    return np.asarray(logits(made, made(batch)["query_output"]))[0, -1]


def of_mass(made: Any, prompt: np.ndarray, new: list[int]) -> np.ndarray:
    """The same, by a target with positions."""
    before = int(np.argmax(prompt == MASK)) - 1
    batch = {
        "token_ids": prompt[None],
        "attended_mask": (prompt != MASK).astype(np.int32)[None],
        "target_ids": np.array([[prompt[before], *new]], np.int32),
        "target_positions": before + np.arange(1 + len(new), dtype=np.int32)[None],
    }
    return np.asarray(logits(made, made(batch)["sequence_output"]))[0, -1]


@pytest.mark.parametrize(("family", "whole"), [("xlnet", of_xlnet), ("mass", of_mass)])
def test_token_by_token_with_padding_on_the_left_and_texts_that_fork(family, whole, monkeypatch):
    monkeypatch.setattr(cached, "ROOM", 2)
    made, (ids, mask, rows) = lively(family), prompts()
    output = TokenOutput(made)
    kind = FragmentReading(made, output, MASK) if family == "mass" else Reading(made, output)
    reader, rng = cached_reader(kind), np.random.default_rng(2)
    found, texts = reader.start(ids, mask), [(row, []) for row in rows]
    for going in ([0, 1, 2, 3], [0, 1, 2, 3], [3, 1, 1, 0], [3, 2, 1], [0, 1, 2, 2], []):
        for got, text in zip(found, texts, strict=True):
            np.testing.assert_allclose(got, whole(made, *text), atol=1e-5)
        if going:
            tokens = rng.integers(5, VOCABULARY_SIZE, len(going)).astype(np.int32)
            found = reader.step(np.array(going), tokens)
            pairs = zip(going, tokens.tolist(), strict=True)
            texts = [(texts[row][0], [*texts[row][1], token]) for row, token in pairs]
    assert np.abs(found[0] - found[1]).max() > 0.1
