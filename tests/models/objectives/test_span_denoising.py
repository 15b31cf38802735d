"""Span denoising: rows by hand, the loss by its equation, and what is refused."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from fourstage.errors import RecipeError, UnknownNameError
from models import catalogue
from models.inputs.batches import batches
from models.inputs.display import shown
from models.objectives.span_denoising import SpanDenoising
from models.protocols import Context
from models.training.stage_model import StageModel
from tests.conformance.parts import network
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus
from tests.models.scripted_chance import ScriptedChance

CLS, SEP = 2, 3
TOKENIZER = PlainTokenizer(120, sentinel_ids=tuple(range(119, 99, -1)))
CONTEXT = Context(TOKENIZER, 13)
# Documents of twelve tokens, of five, of one.
CORPUS = MemoryCorpus(
    [[[10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20, 21]], [[*range(30, 35)]], [[40]]]
)


def test_rows_by_hand():
    objective, rng = SpanDenoising(CONTEXT, rate=0.25, mean_length=1.5), np.random.default_rng(0)
    index = objective.index(CORPUS, rng)
    clean = objective.segments(CORPUS, index.entries, rng)
    assert clean["padding_mask"].sum(axis=1).tolist() == [14, 7, 3]
    chance = ScriptedChance(
        *([3, 0, 1, 2, 4, 5, 6, 7], [0, 1]),  # 4 + 5 tokens stay, 1 + 2 are hidden
        *([2, 0, 1], []),  # one span of one token, at the end
    )
    batch = objective.examples(clean, chance)
    assert batch["token_ids"].tolist() == [
        [CLS, 10, 11, 12, 13, 119, 15, 16, 17, 18, 19, 118, SEP],
        [CLS, 30, 31, 32, 33, 119, SEP, *[0] * 6],
        [CLS, 40, SEP, *[0] * 10],
    ]
    assert batch["padding_mask"].sum(axis=1).tolist() == [13, 7, 3]
    assert batch["segment_ids"].shape == (3, 13)
    assert batch["target_labels"].tolist() == [
        [119, 14, 118, 20, 21, SEP],
        [119, 34, SEP, 0, 0, 0],
        [119, SEP, 0, 0, 0, 0],  # nothing is hidden, and nothing scored
    ]
    assert batch["target_ids"].tolist() == [
        [SEP, 119, 14, 118, 20, 21],
        [SEP, 119, 34, 0, 0, 0],
        [SEP, 119, 0, 0, 0, 0],
    ]
    assert batch["target_weights"].sum(axis=1).tolist() == [6.0, 3.0, 0.0]
    assert batch["target_mask"].sum(axis=1).tolist() == [6, 3, 2]
    # What is read and what is written.
    assert index.lengths.tolist() == [19, 10, 5]


def test_of_the_measured_loss_the_hidden_tokens_count_alone():
    measured = catalogue.literals("objectives", "span_denoising")["MEASURED"]
    objective, rng = SpanDenoising(CONTEXT, **measured), np.random.default_rng(0)
    clean = objective.segments(CORPUS, objective.index(CORPUS, rng).entries, rng)
    batch = objective.examples(clean, rng)
    counted = batch["target_weights"] > 0
    assert counted.sum(axis=1).tolist() == [2, 1, 0]
    assert not np.isin(batch["target_labels"][counted], (*TOKENIZER.sentinel_ids, SEP)).any()


def test_a_full_row_is_of_a_longer_text():
    objective = SpanDenoising(Context(TOKENIZER, 128))
    rng = np.random.default_rng(0)
    corpus = MemoryCorpus([[[*rng.integers(5, 90, 1000).tolist()]]])
    clean = objective.segments(corpus, objective.index(corpus, rng).entries[:2], rng)
    batch = objective.examples(clean, rng)
    assert clean["token_ids"].shape == (2, 142)
    assert batch["token_ids"].shape == (2, 128)
    assert (batch["padding_mask"] == 1).all()
    assert (batch["target_mask"] == 1).all()
    longest = SpanDenoising(
        Context(PlainTokenizer(120, sentinel_ids=TOKENIZER.sentinel_ids * 2), 512)
    )
    assert (longest.numbers.text, longest.numbers.written + 1) == (567, 114)


def test_the_loss_is_the_cross_entropy_of_the_target():
    objective = SpanDenoising(CONTEXT)
    made = network("t5", dropout=0.0)
    corpora = {"a": (random_corpus(9, 100, seed=1), 1.0)}
    batch = batches(corpora, [objective], CONTEXT, 4, seed=2).batch(0)
    scores, _ = StageModel(made, {"span_denoising": objective.attach(made)}).outputs(batch)
    nats = count = 0.0
    table = keras.ops.convert_to_numpy(made.token_embedding.embeddings)
    for row in range(4):
        real = int(batch["target_mask"][row].sum())
        one = {
            "token_ids": batch["token_ids"][row : row + 1, : batch["padding_mask"][row].sum()],
            "target_ids": np.array([[0, *batch["target_ids"][row, 1:real]]], np.int32),
        }
        hidden = np.asarray(made(one)["sequence_output"][0], np.float64)
        log_p = log_softmax(hidden @ table.T / 128**0.5, axis=-1)
        nats -= log_p[np.arange(real), batch["target_labels"][row, :real]].sum()
        count += real
    total, weight = scores["span_denoising"]["loss"]
    assert float(weight) == count
    assert float(total) == pytest.approx(nats, rel=1e-5)


def test_source_and_target_are_shown():
    objective, rng = SpanDenoising(CONTEXT, rate=0.25, mean_length=1.5), np.random.default_rng(0)
    clean = objective.segments(CORPUS, objective.index(CORPUS, rng).entries[:1], rng)
    batch = objective.examples(clean, ScriptedChance([3, 0, 1, 2, 4, 5, 6, 7], [0, 1]))
    assert shown(clean, batch, 0, TOKENIZER).split("\n")[-4:] == [
        "seen  2 10 11 12 13 119 15 16 17 18 19 118 3",
        "",
        "reads   3   119 14  118 20 21",
        "writes  119 14  118 20  21 3",
    ]


def test_what_is_out_of_range_is_told_with_the_numbers():
    with pytest.raises(RecipeError, match=r"rate: expected a number in \(0, 1\), got 1\.0"):
        SpanDenoising(CONTEXT, rate=1.0)
    with pytest.raises(RecipeError, match=r"mean_length: expected 1 to 13 tokens, got 0\.5"):
        SpanDenoising(CONTEXT, mean_length=0.5)
    with pytest.raises(UnknownNameError, match="hidden"):
        SpanDenoising(CONTEXT, scored="hiden")
    with pytest.raises(RecipeError, match=r"512 tokens has 28 hidden spans, .* has 20 sentinels"):
        SpanDenoising(Context(TOKENIZER, 512))
