"""The embedding head: its vectors, cosines and loss in NumPy; texts read alone, in any order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models.evaluation.predict import RowPredictor
from models.families.bert import SIZES, Bert
from models.heads.sentence_embedding import SentenceEmbedding
from models.inputs.batches import batches
from models.inputs.display import shown
from models.protocols import Context
from models.training.stage_model import StageModel
from models.weights import load_weights, save_weights
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

ROWS = MemoryRows(
    [([7, 8], [9], "1.0"), ([13], [14, 15, 16, 17], "6.0"), ([7], [9, 9, 9], ""), ([7], [7], "3.5")]
)
CONTEXT = Context(PlainTokenizer(50), 8, (), ROWS)
RNG = np.random.default_rng(0)


def network() -> Bert:
    return Bert(vocabulary_size=50, **SIZES["tiny"])


def alone(made: Bert, ids: list[int]) -> np.ndarray:
    """The vector of one text that is read without padding."""
    outputs = made({"token_ids": np.array([[2, *ids, 3]], np.int32)})
    mean = np.asarray(outputs["sequence_output"])[0].mean(axis=0)
    return mean / np.linalg.norm(mean)


def test_each_text_of_a_row_is_read_alone():
    batch = SentenceEmbedding(CONTEXT).segments(ROWS, np.arange(3), RNG)
    assert batch["token_ids"].tolist() == [
        [[2, 7, 8, 3, 0, 0, 0, 0], [2, 9, 3, 0, 0, 0, 0, 0]],
        [[2, 13, 3, 0, 0, 0, 0, 0], [2, 14, 15, 16, 17, 3, 0, 0]],
        [[2, 7, 3, 0, 0, 0, 0, 0], [2, 9, 9, 9, 3, 0, 0, 0]],
    ]
    assert not batch["segment_ids"].any()
    assert batch["padding_mask"].sum(axis=-1).tolist() == [[4, 3], [3, 6], [3, 5]]
    np.testing.assert_array_equal(batch["number_labels"], np.array([1, 6, np.nan], np.float32))


def test_a_row_is_as_long_as_both_texts_after_cutting_each():
    rows = MemoryRows([*ROWS.rows, ([7] * 9, [8] * 9, "2.0")])
    index = SentenceEmbedding(CONTEXT).index(rows, RNG)
    assert index.lengths.tolist() == [7, 9, 8, 6, 16]
    assert index.details["truncated_rows"] == 1, "a row of two texts that are cut"


def test_vectors_numbers_and_loss_are_those_of_numpy_whatever_the_padding():
    head, made = SentenceEmbedding(CONTEXT), network()
    scorer = head.attach(made)
    stage = StageModel(made, {"sentence_embedding": scorer})
    batch = batches({"rows": (ROWS, 1.0)}, [head], CONTEXT, 6, seed=0, once=True).batch(0)
    scores, predictions = stage.outputs(batch)
    prepared = scorer.prepare(batch, False)
    vectors = np.asarray(scorer.vectors(prepared, made(prepared)))
    squares = []
    for row in range(6):
        texts = [
            ids[1 : mask.sum() - 1].tolist()
            for ids, mask in zip(batch["token_ids"][row], batch["padding_mask"][row], strict=True)
        ]
        own = [alone(made, text) for text in texts]
        np.testing.assert_allclose(vectors[2 * row : 2 * row + 2], own, atol=1e-5)
        cosine = float(own[0] @ own[1])
        # Numbers from 1 to 6 are cosines from 0 to 1.
        assert float(predictions["numbers"][row]) == pytest.approx(1 + 5 * cosine, abs=1e-4)
        number = batch["number_labels"][row]
        if batch["row_weights"][row] and np.isfinite(number):
            squares.append((cosine - (number - 1) / 5) ** 2)
    assert len(squares) == 3  # a row has no number, and two only fill the batch
    assert [float(part) for part in scores["sentence_embedding"]["loss"]] == pytest.approx(
        [sum(squares), 3], rel=1e-4
    )


def test_the_order_of_a_pair_makes_no_difference_and_the_same_text_twice_is_most_similar():
    head, made = SentenceEmbedding(CONTEXT), network()
    scorer = head.attach(made)
    swapped = MemoryRows([(second, first, answer) for first, second, answer in ROWS.rows])

    def numbers(rows: MemoryRows) -> list[float]:
        found = RowPredictor(made, head, scorer, rows, CONTEXT).answers()
        assert all(math.isnan(answer.probability) for answer in found)
        return [float(answer.text) for answer in found]

    assert numbers(ROWS) == pytest.approx(numbers(swapped), rel=1e-6)
    assert numbers(ROWS)[3] == pytest.approx(6.0, abs=1e-4)


def test_a_restored_head_has_its_range_without_any_rows(tmp_path):
    trained = SentenceEmbedding(CONTEXT).attach(network())
    restored = SentenceEmbedding(Context(PlainTokenizer(50), 8)).attach(network())
    half = np.array([[0.5]], np.float32), np.array([[1.0]], np.float32)
    assert [float(part[0]) for part in restored.numbers(*half)] == [0.5, 0.5]
    save_weights(trained, tmp_path / "head.safetensors")
    load_weights(restored, tmp_path / "head.safetensors")
    assert [float(part[0]) for part in restored.numbers(*half)] == [0.5, 3.5]
    assert not restored.trainable_variables


def test_an_example_is_shown_text_by_text():
    batch = SentenceEmbedding(CONTEXT).segments(ROWS, np.arange(2), RNG)
    lines = shown(batch, batch, 0, PlainTokenizer(50)).splitlines()
    assert [line.split() for line in lines] == [
        ["clean", "2", "7", "8", "3"],
        ["segment", "0", "0", "0", "0"],
        ["clean", "2", "9", "3"],
        ["segment", "0", "0", "0"],
        ["number_labels:", "1.0"],
    ]


def test_rows_without_a_second_text_are_named_in_every_split():
    rows = MemoryRows([([7], [8], "0.0"), ([7], None, "1.0")])
    with pytest.raises(ContractViolation, match=r"two texts in each row.* 1 of 2: r1;"):
        SentenceEmbedding(Context(PlainTokenizer(50), 8)).index(rows, RNG)


def test_numbers_that_are_all_the_same_are_refused():
    rows = MemoryRows([([7], [8], "1.0"), ([7], [9], "1.0")])
    with pytest.raises(ContractViolation, match=r"sentence_embedding: .* got 2 rows with the same"):
        SentenceEmbedding(Context(PlainTokenizer(50), 8, (), rows))


def test_the_contrastive_loss_is_that_of_numpy():
    # Numbers are from 1 to 6, so 0, 1, 4 and 5 are positives. The second text of 4 is that of 3,
    # too, and the first of 1 is the second of 2.
    pairs = [
        ([7, 8], [9], "5.0"),
        ([13], [14, 15, 16], "4.0"),
        ([7], [13], "1.0"),
        ([10], [20, 21], ""),
        ([11, 12], [20, 21], "4.5"),
        ([30], [31], "6.0"),
    ]
    left_out = {(1, 2), (4, 3), (3, 4)}
    rows = MemoryRows(pairs)
    context = Context(PlainTokenizer(50), 8, (), rows)
    head, made = SentenceEmbedding(context, positive_from=0.6, temperature=0.2), network()
    stage = StageModel(made, {"sentence_embedding": head.attach(made)})
    batch = batches({"rows": (rows, 1.0)}, [head], context, 8, seed=0, once=True).batch(0)
    assert batch["row_weights"].tolist() == [1] * 6 + [0] * 2  # the last ones are no negatives
    scores, _ = stage.outputs(batch)
    first, second = ([alone(made, row[i]) for row in pairs] for i in (0, 1))
    losses = []
    for i in (0, 1, 4, 5):
        others = [j for j in range(6) if (i, j) not in left_out]
        similar = np.exp([first[i] @ second[j] / 0.2 for j in others])
        losses.append(-math.log(similar[others.index(i)] / similar.sum()))
    assert [float(part) for part in scores["sentence_embedding"]["loss"]] == pytest.approx(
        [sum(losses), 4], rel=1e-4
    )


def test_a_batch_without_a_positive_adds_nothing():
    rows = MemoryRows([([7], [8], "1.0"), ([9], [8], "2.0")])
    context = Context(PlainTokenizer(50), 8, (), ROWS)
    head, made = SentenceEmbedding(context, positive_from=0.6), network()
    stage = StageModel(made, {"sentence_embedding": head.attach(made)})
    batch = batches({"rows": (rows, 1.0)}, [head], context, 2, seed=0, once=True).batch(0)
    scores, _ = stage.outputs(batch)
    assert [float(part) for part in scores["sentence_embedding"]["loss"]] == [0, 0]


def test_settings_out_of_range_are_refused():
    for similarity in (0.0, 4.0, math.nan):
        with pytest.raises(RecipeError, match="positive_from: expected a similarity above 0"):
            SentenceEmbedding(CONTEXT, positive_from=similarity)
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(RecipeError, match="temperature: expected more than 0"):
            SentenceEmbedding(CONTEXT, positive_from=0.8, temperature=temperature)
