"""Log probabilities of answers equal those of one reading of prompt and answer, in NumPy."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models import catalogue
from models.decoding import likelihood
from models.decoding.likelihood import Likelihood
from models.layers.token_prediction import TokenOutput
from tests.conformance.parts import FAMILIES, VOCABULARY_SIZE, network

GENERATING = [f for f in FAMILIES if {"generation", "causal"} <= catalogue.provided(f)]
LENGTHS = (9, 1, 14, 9, 5)


def texts(rng: np.random.Generator, lengths) -> list[list[int]]:
    return [rng.integers(5, VOCABULARY_SIZE, n).tolist() for n in lengths]


def in_numpy(made, context: list[int], answer: list[int]) -> np.ndarray:
    """Σ by Σ: softmax over all tokens at each position before one of the answer's."""
    ids = np.array([[*context, *answer]], np.int32)
    hidden = made({"token_ids": ids, "padding_mask": np.ones_like(ids)})["sequence_output"]
    table = keras.ops.convert_to_numpy(made.token_embedding.embeddings).astype(np.float64)
    logits = keras.ops.convert_to_numpy(hidden)[0].astype(np.float64) @ table.T
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return np.array([log_p[len(context) - 1 + n, token] for n, token in enumerate(answer)])


@pytest.mark.parametrize("family", GENERATING)
def test_every_token_of_every_answer(family, monkeypatch):
    rng, made = np.random.default_rng(3), network(family, seed=5)
    contexts = texts(rng, LENGTHS)
    answers = [texts(rng, lengths) for lengths in ((1, 4), (2,), (1, 1, 1), (6, 1, 3), (1,))]
    score = Likelihood(made, TokenOutput(made), pad_id=0)
    together = score(contexts, answers)
    monkeypatch.setattr(likelihood, "TOGETHER", 2)
    monkeypatch.setattr(likelihood, "MOST", 1)
    one_by_one = score(contexts, answers)
    for context, own, found, again in zip(contexts, answers, together, one_by_one, strict=True):
        assert [len(each) for each in found] == [len(each) for each in own]
        for answer, log_p, same in zip(own, found, again, strict=True):
            expected = in_numpy(made, context, answer)
            np.testing.assert_allclose(log_p, expected, atol=1e-5)
            np.testing.assert_allclose(same, expected, atol=1e-5)
