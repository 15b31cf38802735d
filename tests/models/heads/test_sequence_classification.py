"""The classification head: scores by hand, class weights, labels as names."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError, UnknownNameError
from models.catalogue import find
from models.evaluation.predict import RowPredictor
from models.families.bert import SIZES, Bert
from models.heads.sequence_classification import SequenceClassification
from models.protocols import Context
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

NAMES = ("background", "method", "result")
ROWS = MemoryRows([([7], None, name) for name in [NAMES[0]] * 8 + [NAMES[1]] * 4 + [NAMES[2]]])
CONTEXT = Context(PlainTokenizer(50), 16, NAMES, ROWS)


def scorer(**settings):
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    made = SequenceClassification(CONTEXT, dropout=0.0, **settings).attach(network)
    kernel = np.zeros((128, 3), np.float32)
    kernel[:3] = np.eye(3)  # the logits are the first three numbers of the pooled vector
    made.output_projection.kernel.assign(kernel)
    return made


POOLED = np.zeros((4, 128), np.float32)
POOLED[:, :3] = [[2, 0, 0], [0, 1, 0], [0, 0, 0], [9, 9, 0]]
BATCH = {
    "labels": np.array([0, 2, 1, -1], np.int32),
    "row_weights": np.array([1, 1, 1, 1], np.float32),
}
NATS = [np.log(np.e**2 + 2) - 2, np.log(np.e + 2), np.log(3)]


def test_the_loss_is_the_mean_over_rows_with_a_label():
    scores, predictions = scorer()(BATCH, {"pooled_output": POOLED})
    assert float(scores["loss"][0]) == pytest.approx(sum(NATS), rel=1e-5)
    assert float(scores["loss"][1]) == 3
    # The third row's scores tie, and its own is among the highest.
    assert [float(part) for part in scores["accuracy"]] == [2, 3]
    assert np.allclose(predictions["logits"], POOLED[:, :3])


def test_rows_that_only_fill_a_batch_weigh_nothing():
    batch = BATCH | {"row_weights": np.array([1, 0, 0, 0], np.float32)}
    scores, _ = scorer()(batch, {"pooled_output": POOLED})
    assert float(scores["loss"][0]) == pytest.approx(NATS[0], rel=1e-5)
    assert float(scores["loss"][1]) == 1


@pytest.mark.parametrize(("summary", "over"), [("mean", np.mean), ("max", np.max)])
def test_all_tokens_but_padding_are_summed_up_on_request(summary, over):
    made = scorer(summary=summary)
    states = np.random.default_rng(0).normal(size=(4, 5, 128)).astype(np.float32)
    lengths = np.array([5, 1, 3, 4])
    mask = (np.arange(5) < lengths[:, None]).astype(np.int32)
    outputs = {"sequence_output": states, "pooled_output": POOLED}
    _, predictions = made(BATCH | {"padding_mask": mask}, outputs)
    expected = [over(row[:length, :3], axis=0) for row, length in zip(states, lengths, strict=True)]
    np.testing.assert_allclose(predictions["logits"], expected, rtol=1e-5, atol=1e-6)
    assert made.reads is None  # the last layer is computed everywhere


def test_mean_and_max_are_read_side_by_side_on_request():
    rng = np.random.default_rng(1)
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    made = SequenceClassification(CONTEXT, dropout=0.0, summary="both").attach(network)
    kernel = rng.normal(size=(256, 3)).astype(np.float32)
    made.output_projection.kernel.assign(kernel)
    states = rng.normal(size=(4, 5, 128)).astype(np.float32)
    mask = (np.arange(5) < np.array([5, 1, 3, 4])[:, None]).astype(np.int32)
    for lengths, batch in (([5, 1, 3, 4], BATCH | {"padding_mask": mask}), ([5] * 4, BATCH)):
        _, predictions = made(batch, {"sequence_output": states, "pooled_output": POOLED})
        real = [row[:length] for row, length in zip(states, lengths, strict=True)]
        rows = np.stack([np.concatenate([row.mean(0), row.max(0)]) for row in real])
        np.testing.assert_allclose(predictions["logits"], rows @ kernel, rtol=1e-4, atol=1e-4)
    assert made.reads is None


@pytest.mark.parametrize(
    "head",
    [
        "sequence_classification",
        "sequence_regression",
        "multi_label_classification",
        "multiple_choice",
    ],
)
def test_an_unknown_summary_is_refused(head):
    with pytest.raises(UnknownNameError, match=f"head.{head}.summary"):
        find("heads", head)(Context(PlainTokenizer(50), 16, NAMES), summary="men")


def test_balanced_weighs_the_loss_and_not_the_accuracy():
    scores, _ = scorer(class_weights="balanced")(BATCH, {"pooled_output": POOLED})
    often, rare, middle = (13 / 3 / rows for rows in (8, 1, 4))
    expected = often * NATS[0] + rare * NATS[1] + middle * NATS[2]
    assert float(scores["loss"][0]) == pytest.approx(expected, rel=1e-5)
    assert float(scores["loss"][1]) == pytest.approx(often + rare + middle)
    assert [float(part) for part in scores["accuracy"]] == [2, 3]


def test_balanced_without_weights_is_refused_when_a_loss_is_asked_and_fine_without():
    context = Context(PlainTokenizer(50), 16, NAMES)
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    made = SequenceClassification(context, class_weights="balanced").attach(network)
    with pytest.raises(RecipeError, match="needs the training rows, got none"):
        made(BATCH, {"pooled_output": POOLED})
    scores, predictions = made({}, {"pooled_output": POOLED})
    assert scores == {}
    assert predictions["logits"].shape == (4, 3)


def test_predictions_are_names_with_probabilities():
    decoded = [
        SequenceClassification(CONTEXT).answer(ROWS, row, [{"logits": np.log(shares)}])
        for row, shares in enumerate([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25]])
    ]
    assert [row.text for row in decoded] == ["method", "background"]
    assert [row.probability for row in decoded] == pytest.approx([0.7, 0.5])
    expected = dict(zip(NAMES, [0.2, 0.7, 0.1], strict=True))
    assert decoded[0].details == pytest.approx(expected)
    assert all(sum(row.details.values()) == pytest.approx(1.0) for row in decoded)


def test_a_symmetric_head_gives_a_pair_the_same_probabilities_in_either_order():
    rows = MemoryRows([([7, 8], [9], "method"), ([7], [8, 9, 10], "result"), ([11], None, "")])
    swapped = MemoryRows([([9], [7, 8], ""), ([8, 9, 10], [7], ""), ([11], None, "")])
    keras.utils.set_random_seed(0)
    made = Bert(vocabulary_size=50, **SIZES["tiny"])
    head = SequenceClassification(CONTEXT, symmetric=True)
    its = head.attach(made)
    its.output_projection.kernel.assign(np.random.default_rng(0).normal(size=(128, 3)))
    index = head.index(rows, np.random.default_rng(0))
    batch = head.segments(rows, index.entries, np.random.default_rng(0))
    assert batch["token_ids"][:2, :6].tolist() == [[2, 7, 8, 3, 9, 3], [2, 9, 3, 7, 8, 3]]
    assert batch["labels"].tolist() == [1, 1, 2, 2, -1]

    def shares(head: SequenceClassification, rows: MemoryRows) -> np.ndarray:
        found = RowPredictor(made, head, its, rows, CONTEXT).answers()
        return np.array([[answer.details[name] for name in NAMES] for answer in found])

    both = shares(head, rows)
    np.testing.assert_allclose(both, shares(head, swapped), rtol=1e-5)
    as_given = SequenceClassification(CONTEXT)
    orders = [shares(as_given, each) for each in (rows, swapped)]
    np.testing.assert_allclose(both, np.mean(orders, axis=0), rtol=1e-5)
    assert np.abs(orders[0] - orders[1])[:2].max() > 1e-3
    with pytest.raises(RecipeError, match="symmetric: expected false with wide"):
        SequenceClassification(CONTEXT, symmetric=True, wide=True)


def test_huge_scores_give_probabilities_all_the_same():
    row = SequenceClassification(CONTEXT).answer(ROWS, 0, [{"logits": np.array([1e4, -1e4, 0.0])}])
    assert row.details["background"] == row.probability == 1.0


def test_bad_settings_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'balanced'"):
        SequenceClassification(CONTEXT, class_weights="balance")
    with pytest.raises(RecipeError, match="two labels or more"):
        SequenceClassification(Context(PlainTokenizer(50), 16, ("only",)))


def relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0.0)


@pytest.mark.parametrize(
    ("family", "curve"), [("roberta", np.tanh), ("distilbert", relu), ("electra", None)]
)
def test_without_a_pooler_the_head_makes_its_own_from_the_first_position(family, curve):
    from models.catalogue import find, literals

    sizes = literals("families", family)["SIZES"]["tiny"]
    network = find("families", family)(vocabulary_size=50, **sizes)
    made = SequenceClassification(CONTEXT, dropout=0.0).attach(network)
    rng = np.random.default_rng(0)
    for variable in made.weights:
        variable.assign(rng.normal(size=variable.shape))
    sequence = rng.normal(size=(4, 7, network.hidden_dim)).astype(np.float32)
    _, predictions = made({}, {"sequence_output": sequence})
    weights = {path.path.split("/", 1)[-1]: np.asarray(path) for path in made.weights}
    hidden = sequence[:, 0]
    if curve is not None:
        hidden = curve(hidden @ weights["pooler/kernel"] + weights["pooler/bias"])
    expected = hidden @ weights["output/kernel"] + weights["output/bias"]
    assert np.allclose(predictions["logits"], expected, rtol=1e-4, atol=1e-4)
