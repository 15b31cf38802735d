"""Masked sequence to sequence: a row by hand, what may be seen, and the loss by its equation."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from fourstage.errors import RecipeError
from models.inputs.batches import batches
from models.inputs.display import shown
from models.inputs.noise import choose_fragment
from models.objectives.masked_seq2seq import MaskedSeq2Seq
from models.protocols import Context
from models.training.stage_model import StageModel
from tests.conformance.parts import CONTEXT, network
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus
from tests.models.scripted_chance import ScriptedChance

CLS, SEP, MASK = 2, 3, 4
TWELVE = Context(PlainTokenizer(120), 12)
CORPUS = MemoryCorpus([[[10, 11, 12, 13], [14, 15, 16]], [[20, 21, 22]]])


def rows(objective: MaskedSeq2Seq, corpus: MemoryCorpus) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return objective.segments(corpus, objective.index(corpus, rng).entries, rng)


def test_a_row_of_twelve_tokens_by_hand():
    objective = MaskedSeq2Seq(TWELVE)
    clean = rows(objective, CORPUS)
    assert clean["token_ids"][0].tolist() == [CLS, 10, 11, 12, 13, 14, 15, 16, SEP, 20, 21, 22]
    clean = {key: value[:1] for key, value in clean.items()}
    # Half of eleven tokens, from one of the places 1 … 6; by dice, the third of the fragment is
    # replaced, the fifth stays, the others become [MASK].
    dice = np.zeros((1, 12))
    dice[0, 5], dice[0, 7] = 0.85, 0.95
    drawn = np.full((1, 12), 40)
    batch = objective.examples(clean, ScriptedChance(np.array([0.4]), dice, drawn))
    assert batch["token_ids"][0].tolist() == [
        *(CLS, 10, 11, MASK, MASK, 45, MASK, 16, MASK, 20, 21, 22)
    ]
    assert batch["attended_mask"][0].tolist() == [1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1]
    assert batch["target_positions"][0].tolist() == [2, 3, 4, 5, 6, 7]
    assert batch["target_ids"][0].tolist() == [11, 12, 13, 14, 15, 16]
    assert batch["target_labels"][0].tolist() == [12, 13, 14, 15, 16, SEP]
    assert batch["target_mask"][0].tolist() == [1] * 6
    assert batch["target_weights"][0].tolist() == [1.0] * 6
    assert clean["token_ids"][0, 3] == 12
    assert shown(clean, batch, 0, TWELVE.tokenizer).split("\n") == [
        "clean    2 10 11 12 13 14 15 16 3 20 21 22",
        "units      w  w  w  w  w  w  w    w  w  w",
        "seen     2 10 11 4  4  45 4  16 4 20 21 22",
        "hidden           x  x     x     x",
        "segment  0 0  0  0  0  0  0  0  0 0  0  0",
        "",
        "position  2  3  4  5  6  7",
        "reads     11 12 13 14 15 16",
        "writes    12 13 14 15 16 3",
    ]


def test_short_rows_write_half_of_what_they_have():
    objective = MaskedSeq2Seq(TWELVE, across_documents=False)
    corpus = MemoryCorpus([[[10]], [[20, 21, 22]], [[*range(30, 41)]]])
    index = objective.index(corpus, np.random.default_rng(0))
    assert index.lengths.tolist() == [3 + 1, 5 + 2, 12 + 6, 12 + 6]  # read once and written in part
    batch = objective.examples(rows(objective, corpus), np.random.default_rng(1))
    assert batch["target_mask"].sum(axis=1).tolist() == [1, 2, 6, 6]
    for row in range(4):
        unseen = batch["target_mask"][row] == 0
        for key in ("target_ids", "target_positions", "target_labels", "target_weights"):
            assert not batch[key][row][unseen].any(), key
    assert not (batch["attended_mask"] > batch["padding_mask"]).any()


def test_a_fragment_begins_everywhere_alike_and_never_with_the_first_token():
    lengths, sizes = np.full(6000, 12), np.full(6000, 6)
    chosen = choose_fragment(lengths, sizes, 14, np.random.default_rng(2))
    assert (chosen.sum(axis=1) == 6).all()
    assert not chosen[:, 12:].any()
    starts = np.bincount(chosen.argmax(axis=1), minlength=8)
    assert starts[0] == starts[7] == 0
    assert np.abs(starts[1:7] - 1000).max() < 120  # four standard deviations


def test_a_prediction_depends_on_no_token_that_is_still_to_be_written():
    objective = MaskedSeq2Seq(TWELVE, mask_share=1.0, random_share=0.0)
    clean = {key: value[:1] for key, value in rows(objective, CORPUS).items()}
    made = network("mass", dropout=0.0)

    def states(ids: np.ndarray) -> np.ndarray:
        chance = ScriptedChance(np.array([0.4]), np.zeros((1, 12)), np.zeros((1, 12), int))
        batch = objective.examples(clean | {"token_ids": ids}, chance)
        return keras.ops.convert_to_numpy(made(batch)["sequence_output"])[0]

    before = states(clean["token_ids"])
    for place in (3, 5, 8):  # of the fragment 3 … 8
        turned = clean["token_ids"].copy()
        turned[0, place] = 77
        moved = np.abs(states(turned) - before).max(axis=-1) > 1e-6
        assert moved.tolist() == [slot > place - 3 for slot in range(6)], place


def test_its_loss_is_the_mean_over_tokens_of_the_negative_log_probability():
    made = network("mass", seed=3)
    objective = MaskedSeq2Seq(CONTEXT)
    scorer = objective.attach(made)
    assert not scorer.variables
    feed = batches({"t": (random_corpus(40, 120, seed=3), 1.0)}, [objective], CONTEXT, 6, 5)
    batch = feed.batch(0) | {"row_weights": np.array([1, 1, 0, 1, 1, 1], np.float32)}
    scores, _ = StageModel(made, {"masked_seq2seq": scorer}).outputs(batch)
    table = np.asarray(made.token_embedding.embeddings)
    nats = total = 0.0
    for row in (0, 1, 3, 4, 5):
        real, size = (int(batch[key][row].sum()) for key in ("padding_mask", "target_mask"))
        sizes = {key: size if key.startswith("target") else real for key in batch}
        alone = {
            key: batch[key][row : row + 1, : sizes[key]] for key in batch if key != "row_weights"
        }
        hidden = keras.ops.convert_to_numpy(made(alone)["sequence_output"])[0]
        log_p = log_softmax(hidden.astype(np.float64) @ table.T, axis=-1)
        nats -= log_p[np.arange(size), batch["target_labels"][row, :size]].sum()
        total += size
    found, weight = (float(x) for x in scores["masked_seq2seq"]["loss"])
    assert weight == total
    assert found / weight == pytest.approx(nats / total, rel=1e-6)


def test_settings_out_of_range_are_told_with_the_numbers():
    with pytest.raises(RecipeError, match=r"masked_seq2seq\.rate: expected .* got 1\.0"):
        MaskedSeq2Seq(TWELVE, rate=1.0)
    with pytest.raises(RecipeError, match=r"exceed 1 together, got 0\.9 and 0\.2"):
        MaskedSeq2Seq(TWELVE, mask_share=0.9, random_share=0.2)
