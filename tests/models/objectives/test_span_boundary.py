"""Span boundaries by hand in two languages; the head against its equations in NumPy."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import RecipeError
from models import catalogue
from models.objectives.masked_lm import MaskedLM
from models.objectives.span_boundary import SpanBoundary
from models.protocols import Context
from models.weights import load_weights, named_weights
from tests.models.memory_corpus import PlainTokenizer
from tests.models.objectives.twelve_tokens import CONTEXT, VOCABULARY, ids, row


def hidden(tokens: list[str], places: list[int], slots: int) -> dict[str, np.ndarray]:
    batch = row(tokens)
    fill = [0] * (slots - len(places))
    return batch | {
        "mask_positions": np.array([places + fill], np.int32),
        "mask_labels": np.array([ids([tokens[p] for p in places]) + fill], np.int32),
        "mask_weights": np.array([[1.0] * len(places) + [0.0] * len(fill)], np.float32),
    }


def test_english_by_hand():
    tokens = "[CLS] un ##believ ##able news from new york city to ##day [SEP]".split()
    batch = hidden(tokens, [1, 2, 3, 6, 7], slots=6)
    result = SpanBoundary(CONTEXT).examples(batch, np.random.default_rng(0))
    assert result["span_before"].tolist() == [[0, 0, 0, 5, 5, 0]], "[CLS] is a boundary too"
    assert result["span_behind"].tolist() == [[4, 4, 4, 8, 8, 0]]
    assert result["span_places"].tolist() == [[0, 1, 2, 0, 1, 0]]
    assert result["span_labels"].tolist() == batch["mask_labels"].tolist()
    assert result["span_weights"].tolist() == [[1.0] * 5 + [0.0]]


def test_chinese_by_hand_with_spans_that_touch_and_one_that_is_too_long():
    tokens = ["[CLS]", *"我爱北京天安门和长城", "[SEP]"]
    batch = hidden(tokens, [3, 4, 5, 6, 7, 10], slots=6)  # 北京 and 天安门 touch: one span
    result = SpanBoundary(CONTEXT, num_places=4).examples(batch, np.random.default_rng(0))
    assert result["span_before"].tolist() == [[2, 2, 2, 2, 0, 9]]
    assert result["span_behind"].tolist() == [[8, 8, 8, 8, 0, 11]]
    assert result["span_places"].tolist() == [[0, 1, 2, 3, 0, 0]]
    assert result["span_weights"].tolist() == [[1, 1, 1, 1, 0, 1]]


@given(st.integers(0, 2**31), st.integers(6, 60))
@settings(max_examples=60)
def test_boundaries_are_what_can_be_seen_beside_the_span(seed, length):
    rng = np.random.default_rng(seed)
    text = rng.integers(5, 60, (4, length)).astype(np.int32)
    text[:, 0], text[:, -1] = 2, 3
    batch = {
        "token_ids": text,
        "padding_mask": np.ones_like(text),
        "unit_starts": (rng.random(text.shape) < 0.7).astype(np.uint8),
    }
    context = Context(PlainTokenizer(60), length)
    noised = MaskedLM(context, unit="span").examples(batch, rng)
    result = SpanBoundary(context).examples(noised, rng)
    chosen = np.zeros(text.shape, bool)
    at, slot = np.nonzero(noised["mask_weights"])
    chosen[at, noised["mask_positions"][at, slot]] = True
    at, slot = np.nonzero(result["span_weights"])
    before, behind = result["span_before"][at, slot], result["span_behind"][at, slot]
    place = noised["mask_positions"][at, slot]
    assert not chosen[at, before].any()
    assert not chosen[at, behind].any()
    assert (before + 1 + result["span_places"][at, slot] == place).all()
    for i, a, b in zip(at, before, behind, strict=True):
        assert chosen[i, a + 1 : b].all()
    assert (result["span_labels"][at, slot] == text[at, place]).all()


def test_the_head_is_its_equations():
    size = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
    network = catalogue.find("families", "bert")(vocabulary_size=len(VOCABULARY), **size)
    objective = SpanBoundary(CONTEXT, num_places=4, place_dim=3)
    scorer = objective.attach(network)
    rng = np.random.default_rng(0)
    w = {n: rng.normal(0, 0.5, v.shape).astype("float32") for n, v in named_weights(scorer).items()}
    load_weights(scorer, w)
    load_weights(
        network,
        {n: rng.normal(0, 0.5, v.shape).astype("f4") for n, v in named_weights(network).items()},
    )
    tokens = ["[CLS]", *"我爱北京天安门和长城", "[SEP]"]
    batch = objective.examples(hidden(tokens, [3, 4, 5, 6, 7, 10], slots=7), rng)
    states = rng.normal(0, 1, (1, 12, 8)).astype("float32")
    scores, predicted = scorer(batch, {"sequence_output": states})

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return centred / scale * w[f"{name}/gamma"] + w[f"{name}/beta"]

    before, behind = states[0, batch["span_before"][0]], states[0, batch["span_behind"][0]]
    places = w["place/embeddings"][batch["span_places"][0]]
    h = np.concatenate([before, behind, places], axis=-1).astype("float64")
    h = norm(gelu(h @ w["first/kernel"] + w["first/bias"]), "first_norm")
    h = norm(gelu(h @ w["second/kernel"] + w["second/bias"]), "second_norm")
    table = keras.ops.convert_to_numpy(network.token_embedding.embeddings)
    logits = h @ table.T + w["output_bias"]
    assert np.abs(predicted["span_logits"][0] - logits).max() < 1e-4
    nats = np.log(np.exp(logits).sum(-1)) - logits[np.arange(7), batch["span_labels"][0]]
    counted = batch["span_weights"][0]
    assert float(scores["loss"][0]) == pytest.approx((nats * counted).sum(), rel=1e-5)
    assert float(scores["loss"][1]) == 5.0
    assert scorer.tied_embedding is network.token_embedding.embeddings


def test_without_masked_lm_before_it_there_are_no_spans():
    with pytest.raises(RecipeError, match="name masked_lm before it"):
        SpanBoundary(CONTEXT).examples(row(["[CLS]", *"我爱北京"]), np.random.default_rng(0))
