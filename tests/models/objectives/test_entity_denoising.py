"""The denoising entity auto-encoder: its rule, and its loss against NumPy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models.families.ernie_tsinghua import SIZES, ErnieTsinghua
from models.heads.sequence_classification import SequenceClassification
from models.inputs.batches import batches
from models.objectives.entity_denoising import EntityDenoising, corrupted
from models.protocols import Context
from models.weights import named_weights
from tests.models.memory_corpus import MemoryCorpus, MemoryRows, PlainTokenizer

CONTEXT = Context(PlainTokenizer(), 12, network=ErnieTsinghua.provides)
ENTITY = 256
# [CLS] 5 6 7 8 9 10 [SEP] 11 12 [SEP] [PAD]: two tokens are entity 9, one 7, one 31.
NAMED = np.array([[0, 9, 0, 7, 0, 0, 9, 0, 31, 0, 0, 0]], np.int32)


def test_a_name_is_read_with_its_own_entity_with_another_or_with_none():
    ids = np.where(np.arange(200_000).reshape(100, -1) % 3, 0, NAMED[0, [1, 3, 8]][:, None][0])
    ids = ids.astype(np.int32)
    ids[:, 3::9], ids[:, 6::9] = 7, 31
    ids *= np.arange(2000) % 3 == 0
    after = corrupted(ids, 0.05, 0.15, np.random.default_rng(3))
    named = ids > 0
    assert (after[~named] == 0).all(), "no name, no entity"
    assert (after[named] == 0).mean() == pytest.approx(0.15, abs=0.01)
    others = (after != ids) & (after > 0)
    assert others.sum() / named.sum() == pytest.approx(0.05, abs=0.005)
    assert set(after[others]) <= set(ids[named]), "of the batch"
    for own in np.unique(ids[named]):  # each other one equally often
        drawn = after[others & (ids == own)]
        _, counts = np.unique(drawn, return_counts=True)
        assert own not in drawn
        assert counts.min() > 0.85 * counts.mean()


def test_the_only_entity_of_a_batch_is_replaced_by_no_other():
    ids = np.full((20, 50), 7, np.int32)
    after = corrupted(ids, 0.5, 0.2, np.random.default_rng(0))
    assert set(np.unique(after)) == {0, 7}
    assert (after == 0).mean() == pytest.approx(0.2, abs=0.05)


def test_what_a_name_means_is_asked_whatever_it_was_read_with():
    made = EntityDenoising(CONTEXT, replaced=0.0, unaligned=1.0)
    batch = made.examples({"entity_ids": NAMED}, np.random.default_rng(0))
    assert not batch["entity_ids"].any(), "nothing of it is left to read"
    assert NAMED.any(), "the rows before are as they were"
    assert batch["entity_weights"].sum() == 3, "a slot for four tokens"
    used = batch["entity_weights"] > 0
    at = np.take_along_axis(NAMED, batch["entity_positions"], axis=1)
    assert np.array_equal(at[used], batch["entity_labels"][used])
    assert np.array_equal(batch["entity_candidates"], batch["entity_labels"])


def test_entities_of_a_corpus_reach_the_batch_of_a_network_that_reads_them_alone():
    units = [[1, 1 + ENTITY * 9, 0, 1 + ENTITY * 70_000]]
    corpus = MemoryCorpus([[[5, 6, 7, 8]]], units)

    def first(context: Context) -> dict[str, Any]:
        made = EntityDenoising(context, replaced=0.0, unaligned=0.0)
        return batches({"a": (corpus, 1.0)}, [made], context, 1, seed=1).batch(0)

    batch = first(CONTEXT)
    assert batch["entity_ids"][0].tolist()[:6] == [0, 0, 9, 0, 70_000, 0]
    assert "unit_starts" not in batch
    with pytest.raises(ContractViolation, match=r"units: \{entities: FILE\}"):
        first(Context(PlainTokenizer(), 12))


def test_beside_a_head_a_copy_of_the_rows_names_what_the_rows_name():
    class Named(MemoryRows):
        def entities(self, i: int) -> tuple[np.ndarray, ...]:
            return tuple(np.where(ids % 2, ids * 1000, 0) for ids in self.texts(i))

    rows = Named([([5, 6, 7, 8], None, "a"), ([9, 10], None, "b")])
    context = replace(CONTEXT, label_names=("a", "b"))
    head, beside = SequenceClassification(context), EntityDenoising(context, unaligned=0.95)
    batch = batches({"rows": (rows, 1.0)}, [head], context, 2, seed=1, on_copy=[beside]).batch(0)
    text = batch["token_ids"] * (batch["token_ids"] > 4)
    assert np.array_equal(batch["entity_ids"], np.where(text % 2, text * 1000, 0))
    assert batch["copy/entity_weights"].sum() == 3
    assert {*np.unique(batch["copy/entity_labels"])} == {0, 5000, 7000, 9000}
    assert not np.array_equal(batch["copy/entity_ids"], batch["entity_ids"])


def test_the_loss_is_over_the_different_entities_of_the_batch():
    network = ErnieTsinghua(vocabulary_size=40, **SIZES["tiny"])
    scorer = EntityDenoising(CONTEXT).attach(network)
    rng = np.random.default_rng(5)
    labels = np.array([[9, 7, 0], [9, 31, 5]], np.int32)
    positions = np.array([[1, 3, 0], [2, 4, 11]], np.int32)
    states = rng.normal(size=(2, 12, 128)).astype(np.float32)
    batch = {
        "entity_positions": positions,
        "entity_candidates": labels,
        "entity_labels": labels,
        "entity_weights": (labels > 0).astype(np.float32),
        "row_weights": np.array([1, 1], np.float32),
    }
    scores, predictions = scorer(batch, {"sequence_output": states})

    w = {name: keras.ops.convert_to_numpy(each) for name, each in named_weights(scorer).items()}
    table = keras.ops.convert_to_numpy(network.entities.embeddings)
    known = np.unique(labels[labels > 0])
    total, hits, said = 0.0, 0, []
    for row, slot in zip(*np.nonzero(labels), strict=True):
        x = states[row, positions[row, slot]] @ w["transform/kernel"] + w["transform/bias"]
        x = x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-12) * w["norm/gamma"] + w["norm/beta"]
        logits = table[known] @ x
        own = int(np.flatnonzero(known == labels[row, slot])[0])
        total += np.log(np.exp(logits).sum()) - logits[own]
        hits += int(logits.argmax() == own)
        said.append(known[logits.argmax()])
    assert float(scores["loss"][0]) == pytest.approx(total, rel=1e-5)
    assert float(scores["loss"][1]) == 5
    assert float(scores["accuracy"][0]) == hits
    logits = keras.ops.convert_to_numpy(predictions["entity_logits"])
    assert labels.ravel()[logits.argmax(axis=-1)[labels > 0]].tolist() == said


def test_shares_out_of_range_are_refused():
    with pytest.raises(RecipeError, match="replaced and unaligned"):
        EntityDenoising(CONTEXT, replaced=0.5, unaligned=0.6)
