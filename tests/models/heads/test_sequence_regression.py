"""The regression head: its loss by hand, the scale of its numbers, pairs in both orders."""

from __future__ import annotations

import math
from dataclasses import replace

import keras
import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.evaluation.predict import RowPredictor
from models.families.bert import SIZES, Bert
from models.heads.sequence_regression import SequenceRegression
from models.inputs.batches import batches
from models.protocols import Capability, Context
from models.weights import load_weights, save_weights
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

# Mean 100, deviation 4.
ROWS = MemoryRows(
    [([7, 8], [9], "96.0"), ([7], [8, 9, 10], "104.0"), ([11], None, "96.0"), ([12], None, "104.0")]
)
CONTEXT = Context(PlainTokenizer(50), 16, (), ROWS)
BARE = Context(PlainTokenizer(50), 16)


def network() -> Bert:
    return Bert(vocabulary_size=50, **SIZES["tiny"])


def scorer(context: Context = CONTEXT):
    made = SequenceRegression(context, dropout=0.0).attach(network())
    made.output_projection.kernel.assign(np.eye(128, 1, dtype=np.float32))
    return made


POOLED = np.zeros((3, 128), np.float32)
POOLED[:, 0] = [0.5, -1.0, 7.0]
BATCH = {
    "number_labels": np.array([108, 96, np.nan], np.float32),
    "row_weights": np.array([1, 1, 1], np.float32),
}


def test_the_loss_is_the_squared_error_in_standard_deviations():
    scores, predictions = scorer()(BATCH, {"pooled_output": POOLED})
    assert float(scores["loss"][0]) == pytest.approx((0.5 - 2) ** 2 + (-1 + 1) ** 2)
    assert float(scores["loss"][1]) == 2
    assert np.asarray(predictions["numbers"]) == pytest.approx([102, 96, 128])


def test_rows_that_only_fill_a_batch_weigh_nothing():
    batch = BATCH | {"row_weights": np.array([0, 1, 0], np.float32)}
    scores, _ = scorer()(batch, {"pooled_output": POOLED})
    assert [float(part) for part in scores["loss"]] == [0, 1]


def test_a_restored_head_has_its_scale_without_any_rows(tmp_path):
    trained, restored = scorer(), scorer(BARE)
    before = restored({}, {"pooled_output": POOLED})[1]["numbers"]
    assert np.asarray(before) == pytest.approx([0.5, -1, 7])
    save_weights(trained, tmp_path / "head.safetensors")
    load_weights(restored, tmp_path / "head.safetensors")
    expected, found = (
        np.asarray(each({}, {"pooled_output": POOLED})[1]["numbers"])
        for each in (trained, restored)
    )
    assert np.array_equal(expected, found)


def test_answers_are_the_shortest_spelling_and_have_no_probability():
    head = SequenceRegression(BARE)
    answer = head.answer(ROWS, 0, [{"numbers": np.float32(3.8)}])
    assert answer.text == "3.8"
    assert math.isnan(answer.probability)
    assert head.answer(ROWS, 0, [{"numbers": np.float32(5)}]).text == "5.0"


def test_a_symmetric_head_reads_pairs_in_both_orders_and_other_rows_once():
    head = SequenceRegression(CONTEXT, symmetric=True)
    index = head.index(ROWS, np.random.default_rng(0))
    assert index.entries.tolist() == [
        (0, False), (0, True), (1, False), (1, True), (2, False), (3, False),
    ]  # fmt: skip
    assert index.lengths.tolist() == [6, 6, 7, 7, 3, 3]
    batch = head.segments(ROWS, index.entries, np.random.default_rng(0))
    assert batch["token_ids"][:2, :6].tolist() == [[2, 7, 8, 3, 9, 3], [2, 9, 3, 7, 8, 3]]
    assert batch["segment_ids"][:2, :6].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]]
    assert batch["number_labels"].tolist() == [96, 96, 104, 104, 96, 104]


def test_entities_are_swapped_with_the_texts_that_name_them():
    class Named(MemoryRows):
        def entities(self, i: int) -> tuple[np.ndarray, ...]:
            return tuple(ids * 1000 for ids in self.texts(i))

    rows = Named([([7, 8], [9], "96.0"), ([7], None, "104.0")])
    context = replace(BARE, network=frozenset({Capability.ENTITIES}))
    head = SequenceRegression(context, symmetric=True)
    index = head.index(rows, np.random.default_rng(0))
    named = head.segments(rows, index.entries, np.random.default_rng(0))["entity_ids"]
    assert named[:2, :5].tolist() == [[0, 7000, 8000, 0, 9000], [0, 9000, 0, 7000, 8000]]
    assert named[2].tolist() == [0, 7000, *[0] * (named.shape[1] - 2)]


def test_a_symmetric_head_gives_a_pair_one_number_in_either_order():
    swapped = MemoryRows([([9], [7, 8], "0.0"), ([8, 9, 10], [7], "0.0")])
    keras.utils.set_random_seed(0)
    made, head = network(), SequenceRegression(CONTEXT, symmetric=True)
    its = head.attach(made)
    its.output_projection.kernel.assign(np.random.default_rng(0).normal(size=(128, 1)))

    def numbers(head: SequenceRegression, rows: MemoryRows) -> list[float]:
        found = RowPredictor(made, head, its, rows, CONTEXT).answers()
        return [float(answer.text) for answer in found][:2]

    assert numbers(head, ROWS) == pytest.approx(numbers(head, swapped), rel=1e-6)
    as_given = SequenceRegression(CONTEXT)
    one_order, other = numbers(as_given, ROWS), numbers(as_given, swapped)
    assert numbers(head, ROWS) == pytest.approx(np.mean([one_order, other], axis=0), rel=1e-6)
    assert one_order != pytest.approx(other, rel=1e-4)


def test_a_row_without_a_number_is_predicted_and_not_learnt_from():
    rows = MemoryRows([([7], None, ""), ([8], None, "1.0"), ([9], None, "3.0")])
    head = SequenceRegression(Context(PlainTokenizer(50), 16, (), rows))
    assert head.scale == (2.0, 1.0)
    batch = batches({"rows": (rows, 1.0)}, [head], BARE, 4, seed=0, once=True).batch(0)
    assert np.isnan(batch["number_labels"]).sum() == 2  # the row, and the one that fills the batch
    made = network()
    assert len(RowPredictor(made, head, head.attach(made), rows, BARE).answers()) == 3


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (["1.0", "1.0"], "got 2 rows with the same"),
        (["", ""], "no answer in any of the 2"),
        (["1.0", ""], "got 1 rows"),
        (["1000000000.0", "1000000001.0"], "got 2 rows with the same"),
        (["1e300", "2.0", "3.0"], "something else in 1 of 3: r0;"),
        (["1.0", "2.0", "nan", "good"], "something else in 2 of 4: r2, r3;"),
    ],
)
def test_rows_that_give_no_scale_are_refused(answers, message):
    rows = MemoryRows([([7], None, answer) for answer in answers])
    with pytest.raises(ContractViolation, match=message) as refused:
        SequenceRegression(Context(PlainTokenizer(50), 16, (), rows))
    assert "good" not in str(refused.value)
