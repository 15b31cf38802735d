"""Causal language modelling: which tokens are predicted, and the loss by its equation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from models import catalogue
from models.inputs.batches import batches
from models.inputs.display import shown
from models.objectives.causal_lm import CausalLM
from models.protocols import Context
from models.training.stage_model import StageModel
from tests.conformance.parts import CONTEXT, answered, network, settings
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus

CLS, SEP = 2, 3
BY_HAND = MemoryCorpus([[[10, 11], [12]], [[20]], [[30, 31, 32, 33, 34, 35, 36]]])


def rows_of(objective: CausalLM, corpus: MemoryCorpus) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    index = objective.index(corpus, rng)
    batch = objective.examples(objective.segments(corpus, index.entries, rng), rng)
    np.testing.assert_array_equal(batch["padding_mask"].sum(axis=1), index.lengths)
    return batch


def predicted(batch: dict[str, np.ndarray]) -> list[list[int]]:
    """The targets of each row that count."""
    pairs = zip(batch["next_labels"], batch["next_weights"], strict=True)
    return [labels[weights > 0].tolist() for labels, weights in pairs]


def test_windows_by_hand():
    batch = rows_of(CausalLM(Context(PlainTokenizer(), 6)), BY_HAND)
    assert batch["token_ids"].tolist() == [
        [CLS, 10, 11, 12, SEP, 20],
        [CLS, SEP, 30, 31, 32, 33],
        [CLS, 33, 34, 35, 36, SEP],  # begins early enough to be full
    ]
    assert predicted(batch) == [row[1:] for row in batch["token_ids"].tolist()]


def test_windows_of_single_documents_by_hand():
    objective = CausalLM(Context(PlainTokenizer(), 6), across_documents=False)
    assert predicted(rows_of(objective, BY_HAND)) == [
        [10, 11, 12, SEP],
        [20, SEP],
        [30, 31, 32, 33, 34],
        [33, 34, 35, 36, SEP],
    ]


@pytest.mark.parametrize("across", [True, False])
def test_every_token_and_every_end_of_a_document_is_predicted_once(across):
    corpus = random_corpus(30, 100, seed=4)
    length = 14
    objective = CausalLM(Context(PlainTokenizer(), length), across_documents=across)
    found = Counter(token for row in predicted(rows_of(objective, corpus)) for token in row)
    there = Counter(t for i in range(len(corpus)) for t in corpus.document(i)[0].tolist())
    there[SEP] += int((corpus.lengths > 0).sum()) if not across else len(corpus)
    assert not there - found
    most = (length - 2) * (len(corpus) if not across else 1)  # repeated to fill the last window
    assert sum((found - there).values()) <= most


def test_a_shown_row_has_the_next_token_below_each_and_padding_is_never_predicted():
    context = Context(PlainTokenizer(), 6)
    batch = rows_of(CausalLM(context, across_documents=False), BY_HAND)
    assert batch["next_weights"].sum(axis=1).tolist() == [4, 2, 5, 5]
    lines = shown(batch, batch, 1, context.tokenizer).splitlines()
    assert [line.split() for line in lines if line.startswith(("clean", "next"))] == [
        ["clean", "2", "20", "3"],
        ["next", "20", "3"],
    ]
    ids, mask = np.array([[0, 0, 2, 20, 21, 0]]), np.array([[0, 0, 1, 1, 1, 0]])  # on both sides
    made = CausalLM(context).examples(
        {"token_ids": ids, "padding_mask": mask}, np.random.default_rng(0)
    )
    assert made["next_weights"].tolist() == [[0, 0, 1, 1, 0]]


def test_its_loss_is_the_mean_over_tokens_of_the_negative_log_probability():
    made = network("gpt2", seed=3)
    objective = CausalLM(CONTEXT)
    scorer = objective.attach(made)
    assert not scorer.variables
    feed = batches({"t": (random_corpus(40, 120, seed=3), 1.0)}, [objective], CONTEXT, 6, 5)
    batch = feed.batch(0) | {"row_weights": np.array([1, 1, 0, 1, 1, 1], np.float32)}
    scores, outputs = StageModel(made, {"causal_lm": scorer}).outputs(batch)
    hidden = keras.ops.convert_to_numpy(outputs["sequence_output"])
    table = np.asarray(made.token_embedding.embeddings)
    nats = total = 0.0
    for row in (0, 1, 3, 4, 5):
        for t in range(int(batch["padding_mask"][row].sum()) - 1):
            logits = log_softmax(hidden[row, t].astype(np.float64) @ table.T)
            nats -= logits[batch["token_ids"][row, t + 1]]
            total += 1
    found, weight = (float(x) for x in scores["causal_lm"]["loss"])
    assert weight == total
    assert found / weight == pytest.approx(nats / total, rel=1e-6)


@pytest.mark.parametrize("head", catalogue.names("heads"))
def test_beside_a_head_it_scores_the_rows_the_head_reads(head):
    made = network("gpt", dropout=0.0)
    data = answered(head)
    context = replace(
        CONTEXT, label_names=catalogue.answers_of(head).names(data.answers), rows=data
    )
    parts = {
        "causal_lm": CausalLM(context),
        head: catalogue.find("heads", head)(context, **settings(head, "gpt")),
    }
    scorers = {name: part.attach(made) for name, part in parts.items()}
    batch = batches({"rows": (data, 1.0)}, list(parts.values()), context, 6, 5).batch(0)
    found = StageModel(made, scorers).outputs(batch)[0]["causal_lm"]["loss"]
    rows = {k: batch[k] for k in ("token_ids", "padding_mask")}
    rows = {key: value.reshape(-1, value.shape[-1]) for key, value in rows.items()}
    alone = CausalLM(context).examples(rows, np.random.default_rng(0))
    sequence = made(rows)["sequence_output"]
    expected = scorers["causal_lm"](alone, {"sequence_output": sequence})[0]["loss"]
    for one, other in zip(found, expected, strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-5)
