"""The multiple-choice head: pairs of a row side by side, the softmax over its own choices only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.evaluation.predict import RowPredictor
from models.families.bert import SIZES, Bert
from models.heads.multiple_choice import MultipleChoice
from models.inputs.batches import batches
from models.inputs.display import shown
from models.protocols import Context
from models.training.stage_model import StageModel
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

ROWS = MemoryRows(
    [([7, 8], [9], [10, 11], [12], "1"), ([13], [14], [15], "0"), ([7], [9, 9, 9], [16, 17], "")]
)
CONTEXT = Context(PlainTokenizer(50), 8, (), ROWS)
RNG = np.random.default_rng(0)


def test_a_row_is_its_text_with_each_choice_and_choices_that_fill_up_are_no_tokens():
    batch = MultipleChoice(CONTEXT).segments(ROWS, np.arange(3), RNG)
    assert batch["token_ids"].shape == (3, 3, 8)
    assert batch["token_ids"][0].tolist() == [
        [2, 7, 8, 3, 9, 3, 0, 0],
        [2, 7, 8, 3, 10, 11, 3, 0],
        [2, 7, 8, 3, 12, 3, 0, 0],
    ]
    assert batch["segment_ids"][0, 1].tolist() == [0, 0, 0, 0, 1, 1, 1, 0]
    assert batch["padding_mask"].sum(axis=-1).tolist() == [[6, 7, 6], [5, 5, 0], [7, 6, 0]]
    assert batch["labels"].tolist() == [1, 0, -1]


def test_a_row_is_as_long_as_all_its_pairs_after_cutting():
    rows = MemoryRows([*ROWS.rows, ([7] * 9, [8], [9, 9], "1")])
    index = MultipleChoice(CONTEXT).index(rows, RNG)
    assert index.lengths.tolist() == [19, 10, 13, 16]
    assert index.details["truncated_rows"] == 1, "a row of two pairs that are cut"


def test_a_text_shares_tokens_with_each_choice_apart():
    rows = MemoryRows([([7, 8, 9], [9, 7], [10], [8, 8], "1"), ([13], [14], [13], "0")])
    head = MultipleChoice(replace(CONTEXT, rows=rows), shared_tokens=True)
    _, stage = model(head)
    (scorer,) = stage.scorers
    scorer.shared_tokens.vectors.assign(np.repeat([[1.0], [2.0]], 128, axis=1))
    batch = head.segments(rows, np.arange(2), RNG)
    added = np.asarray(scorer.prepare(batch, training=False)["added_vectors"])
    assert added[:, :, 5].astype(int).tolist() == [
        [0, 1, 0, 1, 0, 2, 2, 0],
        [0] * 8,
        [0, 0, 1, 0, 0, 2, 2, 0],
        [0] * 8,
        [0, 1, 0, 2, 0, 0, 0, 0],
        [0] * 8,
    ]


def model(head: MultipleChoice) -> tuple[Bert, StageModel]:
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    scorer = head.attach(network)
    scorer.output_projection.kernel.assign(np.random.default_rng(0).normal(size=(128, 1)))
    return network, StageModel(network, {"multiple_choice": scorer})


def test_scores_and_loss_are_those_of_each_pair_alone():
    head = MultipleChoice(CONTEXT, dropout=0.0)
    network, stage = model(head)
    batch = batches({"rows": (ROWS, 1.0)}, [head], CONTEXT, 4, seed=0, once=True).batch(0)
    scores, predictions = stage.outputs(batch)
    (scorer,) = stage.scorers
    kernel, bias = (np.asarray(weight) for weight in scorer.output_projection.weights)
    nats = []
    for row in range(4):
        texts = batch["token_ids"][row], batch["segment_ids"][row], batch["padding_mask"][row]
        logits = []
        for ids, segments, mask in zip(*texts, strict=True):
            length = int(mask.sum())
            if length:
                alone = {
                    "token_ids": ids[None, :length],
                    "segment_ids": segments[None, :length],
                    "padding_mask": mask[None, :length],
                }
                logits.append((np.asarray(network(alone)["pooled_output"]) @ kernel + bias).item())
        found = np.asarray(predictions["logits"][row])
        assert found[: len(logits)] == pytest.approx(logits, abs=1e-4)
        assert (found[len(logits) :] < -1e8).all()
        label = int(batch["labels"][row])
        if label >= 0 and batch["row_weights"][row]:
            nats.append(np.log(np.exp(logits).sum()) - logits[label])
    assert len(nats) == 2
    assert [float(part) for part in scores["multiple_choice"]["loss"]] == pytest.approx(
        [sum(nats), 2], rel=1e-4
    )


def test_an_answer_is_one_of_the_rows_own_choices_whatever_the_batch_is_filled_with():
    head = MultipleChoice(CONTEXT)
    answer = head.answer(ROWS, 1, [{"logits": np.array([0.0, np.log(3.0), 99.0])}])
    assert (answer.text, answer.probability) == ("1", pytest.approx(0.75))
    assert answer.details == pytest.approx({"0": 0.25, "1": 0.75})


def test_batches_with_other_numbers_of_choices_and_tokens_are_predicted_alike():
    head = MultipleChoice(CONTEXT)
    network, stage = model(head)
    many = MemoryRows([*[([7], [9], [10, 11], "0")] * 64, ([7] * 4, [9], [10], [11], [12], "3")])
    (scorer,) = stage.scorers
    found = RowPredictor(network, head, scorer, many, CONTEXT).answers()
    assert [len(answer.details) for answer in found] == [2] * 64 + [4]
    alone = RowPredictor(network, head, scorer, MemoryRows(many.rows[:1]), CONTEXT).answers()[0]
    assert found[0].probability == pytest.approx(alone.probability, abs=1e-5)


def test_an_example_is_shown_choice_by_choice():
    batch = MultipleChoice(CONTEXT).segments(ROWS, np.arange(2), RNG)
    lines = shown(batch, batch, 1, PlainTokenizer(50)).splitlines()
    assert [line.split() for line in lines] == [
        ["clean", "2", "13", "3", "14", "3"],
        ["segment", "0", "0", "0", "1", "1"],
        ["clean", "2", "13", "3", "15", "3"],
        ["segment", "0", "0", "0", "1", "1"],
        ["labels:", "0"],
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([([7], [8], [9], "2"), ([7], [8], [9], "x"), ([7], [8], [9], "1")], "2 of 3: r0, r1;"),
        ([([7], [8], [9], ""), ([7], [8], [9], "")], "no answer in any of the 2 training rows"),
    ],
)
def test_answers_that_are_none_of_the_choices_are_refused_in_training(rows, message):
    with pytest.raises(ContractViolation, match=message):
        MultipleChoice(Context(PlainTokenizer(50), 8, (), MemoryRows(rows)))


def test_rows_with_fewer_than_two_choices_are_named_in_every_split():
    rows = MemoryRows([([7], [8], [9], "0"), ([7], [8], "0"), ([7], "0")])
    with pytest.raises(ContractViolation, match="something else in 2 of 3: r1, r2;"):
        MultipleChoice(Context(PlainTokenizer(50), 8)).index(rows, RNG)
