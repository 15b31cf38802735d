"""Filling in one blank after another with a cache equals reading everything anew at each step."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from models.decoding import cached
from models.decoding.generate import generate
from models.decoding.reader import Reading, cached_reader
from models.decoding.settings import Generation
from models.layers.token_prediction import TokenOutput
from models.modes import Mode
from tests.conformance.parts import VOCABULARY_SIZE, network

MASK, STOP = 4, 3
SEARCHES = {
    "greedy": {},
    "beams": {"beams": 3, "length_penalty": 0.5},
    "no_repeat": {"beams": 2, "no_repeat_ngram": 1},
    "sampled": {"sample": True, "top_k": 20, "seed": 3},
}


class Anew:
    """Reads [CLS] text [SEP] and what is written, each text alone, with a [MASK] at its end."""

    longest = 47
    begin = ()

    def __init__(self, made: Any):
        import tensorflow as tf

        def last(batch: dict[str, Any]) -> Any:
            return logits(made, made(batch)["sequence_output"][:, -1])

        self._last = tf.function(last, reduce_retracing=True)
        self._texts: list[tuple[list[int], list[int]]] = []

    def start(self, token_ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        pairs = zip(token_ids, padding_mask > 0, strict=True)
        self._texts = [(ids[real].tolist(), []) for ids, real in pairs]
        return self._read()

    def step(self, rows: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        chosen = zip(rows, token_ids.tolist(), strict=True)
        self._texts = [
            (self._texts[row][0], [*self._texts[row][1], token]) for row, token in chosen
        ]
        return self._read()

    def _read(self) -> np.ndarray:
        found = []
        for text, written in self._texts:
            segments = [0] * len(text) + [1] * (len(written) + 1)
            batch = {
                "token_ids": [[*text, *written, MASK]],
                "segment_ids": [segments],
                "padding_mask": [[1] * len(segments)],
                "modes": [Mode.SEQUENCE_TO_SEQUENCE],
            }
            given = {key: np.array(value, np.int32) for key, value in batch.items()}
            found.append(np.asarray(self._last(given))[0])
        return np.array(found)


def logits(made: Any, hidden: Any) -> Any:
    return keras.ops.matmul(hidden, keras.ops.transpose(made.token_embedding.embeddings))


@pytest.fixture(scope="module")
def made() -> Any:
    found = network("unilm", seed=5)
    rng = np.random.default_rng(0)
    for variable in found.variables:  # so large that texts vary and depend on what was read
        if variable.path.endswith(("kernel", "embeddings")):
            variable.assign(rng.normal(0.0, 0.1, variable.shape))
    return found


@pytest.fixture(scope="module")
def reader(made) -> Any:
    return cached_reader(Reading(made, TokenOutput(made), blank=MASK))


@pytest.fixture(scope="module")
def anew(made) -> Anew:
    return Anew(made)


def prompts() -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [[2, *rng.integers(5, VOCABULARY_SIZE, n).tolist(), 3] for n in (1, 6, 3, 11, 6)]


def test_step_by_step_with_padding_on_the_left_and_texts_that_fork(reader, anew, monkeypatch):
    monkeypatch.setattr(cached, "ROOM", 2)
    rng = np.random.default_rng(2)
    ids, mask = np.zeros((5, 13), np.int32), np.zeros((5, 13), np.int32)
    for row, prompt in enumerate(prompts()):
        ids[row, 13 - len(prompt) :], mask[row, 13 - len(prompt) :] = prompt, 1
    np.testing.assert_allclose(reader.start(ids, mask), anew.start(ids, mask), atol=1e-5)
    for rows in ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [4, 1, 1, 0], [3, 2, 1], [0, 1, 2, 2]):
        new = rng.integers(5, VOCABULARY_SIZE, len(rows)).astype(np.int32)
        one, other = (each.step(np.array(rows), new) for each in (reader, anew))
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_writes_the_same(reader, anew, search):
    settings = Generation(max_new_tokens=6, **SEARCHES[search])
    how = {"stops": {STOP}, "never": [0, 1, 2, MASK], "pad_id": 0, "batch_size": 3}
    one, other = (generate(each, prompts(), settings, **how) for each in (reader, anew))
    assert [each.tokens for each in one] == [each.tokens for each in other]
    np.testing.assert_allclose(
        [each.log_probability for each in one],
        [each.log_probability for each in other],
        atol=1e-4,
    )
    assert len({each.tokens for each in one}) > 1


def test_a_blank_has_room_after_the_longest_text(reader, made):
    assert reader.longest == made.max_sequence_length - 1 == Anew.longest
    settings = Generation(max_new_tokens=4)
    prompt = [2] * (reader.longest - 3)
    (found,) = generate(reader, [prompt], settings, stops=set(), pad_id=0)
    assert len(found.tokens) == 4
    with pytest.raises(ValueError, match="the network reads 47 tokens"):
        generate(reader, [[*prompt, 2]], settings, stops=set(), pad_id=0)
