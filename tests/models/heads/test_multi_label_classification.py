"""The multi-label head: its loss by hand, the threshold, rows it cannot learn from."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models.families.bert import SIZES, Bert
from models.heads.multi_label_classification import MultiLabelClassification
from models.protocols import Context
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

NAMES = ("delay", "price", "refund")
ROWS = MemoryRows(
    [
        ([7], None, '["delay", "refund"]'),
        ([8], [9], "[]"),
        ([10], None, ""),
        ([11], None, '["price", "unseen"]'),
    ]
)
CONTEXT = Context(PlainTokenizer(50), 16, NAMES, ROWS)


def test_the_loss_is_the_mean_over_labels_of_rows_that_have_an_answer():
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    scorer = MultiLabelClassification(CONTEXT, dropout=0.0).attach(network)
    scorer.output_projection.kernel.assign(np.eye(128, 3, dtype=np.float32))
    pooled = np.zeros((4, 128), np.float32)
    pooled[:, :3] = [[2, -1, 0.5], [0, 0, -3], [9, 9, 9], [1, 1, 1]]
    batch = {
        "set_labels": np.array([[1, 0, 1], [0, 0, 0], [-1, -1, -1], [1, 1, 1]], np.int32),
        "row_weights": np.array([1, 1, 1, 0], np.float32),
    }
    scores, predictions = scorer(batch, {"pooled_output": pooled})
    shares = 1 / (1 + np.exp(-pooled[:2, :3]))
    labels = batch["set_labels"][:2]
    nats = -np.log(np.where(labels == 1, shares, 1 - shares))
    assert float(scores["loss"][0]) == pytest.approx(nats.sum(), rel=1e-5)
    assert float(scores["loss"][1]) == 6
    assert float(scores["accuracy"][0]) == 6
    assert np.asarray(predictions["probabilities"][:2]) == pytest.approx(shares, rel=1e-5)


def test_balanced_weighs_rows_with_a_label_and_without_by_their_frequency():
    import tensorflow as tf

    answers = ['["delay"]'] * 6 + ['["delay", "price"]', '["refund"]', "", "[]"]
    rows = MemoryRows([([7], None, answer) for answer in answers])
    head = MultiLabelClassification(
        Context(PlainTokenizer(50), 16, NAMES, rows), class_weights="balanced", dropout=0.0
    )
    scorer = head.attach(Bert(vocabulary_size=50, **SIZES["tiny"]))
    scorer.output_projection.kernel.assign(np.eye(128, 3, dtype=np.float32))
    pooled = np.zeros((4, 128), np.float32)
    pooled[:, :3] = [[2, -1, 0.5], [0, 0, -3], [9, 9, 9], [1, 1, 1]]
    labels = np.array([[1, 0, 1], [0, 1, 0], [-1, -1, -1], [1, 1, 1]], np.int32)
    batch = {"set_labels": labels, "row_weights": np.array([1, 1, 1, 0], np.float32)}
    with tf.GradientTape() as tape:
        scores, _ = scorer(batch, {"pooled_output": pooled})
        total, weight = scores["loss"]
    gradient = tape.gradient(total, scorer.output_projection.bias.value)
    # Of nine rows with an answer seven have "delay", one "price" and one "refund".
    yes, no = 9 / 2 / np.array([7, 1, 1]), 9 / 2 / np.array([2, 8, 8])
    hot, shares = labels[:2], 1 / (1 + np.exp(-pooled[:2, :3]))
    own = np.where(hot == 1, yes, no)
    nats = -np.log(np.where(hot == 1, shares, 1 - shares))
    assert float(total) == pytest.approx((own * nats).sum(), rel=1e-5)
    assert float(weight) == pytest.approx(own.sum())
    np.testing.assert_allclose(gradient, (own * (shares - hot)).sum(axis=0), rtol=1e-4)
    assert [float(part) for part in scores["accuracy"]] == [5, 6]


def test_a_row_has_its_labels_none_or_unknown_ones():
    head = MultiLabelClassification(CONTEXT)
    batch = head.segments(ROWS, np.arange(4), np.random.default_rng(0))
    assert batch["set_labels"].tolist() == [[1, 0, 1], [0, 0, 0], [-1, -1, -1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("threshold", "said", "probability"),
    [(0.5, '["delay", "refund"]', 0.9 * 0.8 * 0.6), (0.7, '["delay"]', 0.9 * 0.8 * 0.4),
     (0.1, '["delay", "price", "refund"]', 0.9 * 0.2 * 0.6), (0.95, "[]", 0.1 * 0.8 * 0.4)],
)  # fmt: skip
def test_the_labels_above_the_threshold_are_the_answer(threshold, said, probability):
    head = MultiLabelClassification(CONTEXT, threshold=threshold)
    answer = head.answer(ROWS, 0, [{"probabilities": np.array([0.9, 0.2, 0.6])}])
    assert answer.text == said
    assert answer.probability == pytest.approx(probability)
    assert answer.details == {"delay": 0.9, "price": 0.2, "refund": 0.6}


def test_the_thresholds_on_offer_come_with_what_the_head_answers_under_them():
    outputs = [[{"probabilities": np.array(shares)}] for shares in ([0.9, 0.2, 0.6], [0.1, 0, 1])]
    offered = dict(MultiLabelClassification(CONTEXT, threshold="dev").thresholds(ROWS, outputs))
    assert len(offered) == 99
    for threshold, said in offered.items():
        head = MultiLabelClassification(CONTEXT, threshold=threshold)
        assert said == [head.answer(ROWS, row, own).text for row, own in enumerate(outputs)]


@pytest.mark.parametrize("threshold", [0.0, 1.0, -1.0, float("nan")])
def test_a_threshold_that_decides_nothing_is_refused(threshold):
    with pytest.raises(RecipeError, match="between 0 and 1"):
        MultiLabelClassification(CONTEXT, threshold=threshold)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (['["a"]', '["a"]'], "same set of labels in all of 2 rows"),
        (["[]", ""], "same set of labels in all of 1 rows"),
        (["", ""], "no answer in any of the 2"),
        (['["a"]', "a", "[1]"], "something else in 2 of 3: r1, r2;"),
    ],
)
def test_rows_with_nothing_to_learn_are_refused(answers, message):
    rows = MemoryRows([([7], None, answer) for answer in answers])
    with pytest.raises(ContractViolation, match=message):
        MultiLabelClassification(Context(PlainTokenizer(50), 16, ("a",), rows))


def test_a_head_without_labels_is_refused():
    with pytest.raises(RecipeError, match="one label or more"):
        MultiLabelClassification(Context(PlainTokenizer(50), 16))
