"""Objectives with regions: rows worked out by hand, NumPy oracles, and what holds for every row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError, UnknownNameError
from models import catalogue
from models.inputs.batches import batches
from models.objectives.image_text_match import ImageTextMatch
from models.objectives.masked_lm import MaskedLM
from models.objectives.region_class import RegionClass
from models.objectives.region_regression import RegionRegression
from models.objectives.word_region_alignment import transport
from models.protocols import Capability, Context
from tests.models.memory_corpus import (
    MemoryCaptions,
    PlainTokenizer,
    random_captions,
    random_corpus,
)
from tests.models.scripted_chance import ScriptedChance

SEES = frozenset({Capability.REGIONS, Capability.BIDIRECTIONAL, Capability.POOLED_OUTPUT})
CONTEXT = Context(PlainTokenizer(100), sequence_length=12, network=SEES)
RNG = np.random.default_rng(5)


def value(tensor: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(tensor)


def with_regions() -> dict[str, np.ndarray]:
    """Rows of 4, 2 and no regions, of two numbers each."""
    features = np.arange(24, dtype=np.float32).reshape(3, 4, 2) + 1
    there = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], np.int32)
    return {"region_features": features * there[:, :, None], "region_mask": there}


def test_regions_are_hidden_by_hand():
    # Below the rate of 0.4: two of the first row, none of the second, whose lowest is taken.
    order = [[0.1, 0.9, 0.3, 0.5], [0.8, 0.7, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    dice = [[0.85, 0.0, 0.2, 0.0], [0.95, 0.95, 0.0, 0.0], [0.0] * 4]  # random, mask, keep
    chance = ScriptedChance(order, dice, [4])  # the fifth region of the batch
    before = with_regions()
    batch = RegionRegression(CONTEXT, rate=0.4).examples(before, chance)
    assert batch["region_weights"].tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert batch["masked_regions"].tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    expected = before["region_features"].copy()
    expected[0, 0], expected[0, 2] = expected[1, 0], 0
    assert np.array_equal(batch["region_features"], expected)
    assert np.array_equal(batch["region_labels"], before["region_features"])


def test_two_objectives_predict_the_same_hidden_regions():
    before = with_regions()
    before["region_features"][..., :2] = [0.25, 0.75]
    batch = RegionRegression(CONTEXT).examples(before, np.random.default_rng(1))
    both = RegionClass(CONTEXT, groups=(2,)).examples(batch, np.random.default_rng(2))
    assert both is batch


@pytest.mark.parametrize("wrong", [[0.25, 0.7], [1.25, -0.25]])
def test_features_that_begin_with_no_shares_of_classes_are_refused(wrong: list[float]):
    batch = with_regions()
    batch["region_features"][..., :2] = [0.25, 0.75]
    there = np.argwhere(batch["region_mask"])[-1]
    batch["region_features"][*there, :2] = wrong  # padding may be anything
    with pytest.raises(ContractViolation, match="numbers 0 to 1 of a region are shares"):
        RegionClass(CONTEXT, groups=(2,)).examples(batch, np.random.default_rng(2))
    batch["region_mask"][*there] = 0
    RegionClass(CONTEXT, groups=(2,)).examples(batch, np.random.default_rng(2))


def test_half_of_all_rows_show_another_captions_picture_never_one_that_looks_the_same():
    captions = random_captions(30, 100, 26, seed=1)
    pictures = [captions.regions(i) for i in range(30)]
    pictures[1] = pictures[0]  # looks the same
    texts = [captions.document(i)[0].tolist() for i in range(30)]
    texts[2] = texts[0]  # says the same
    data = MemoryCaptions(texts, pictures)
    objective = ImageTextMatch(CONTEXT)
    shares, others = [], set()
    for seed in range(20):
        index = objective.index(data, np.random.default_rng(seed))
        entries = index.entries
        other = entries["picture"] != entries["document"]
        shares.append(other.mean())
        assert index.details["mismatched_pairs"] == other.mean()
        others |= set(entries["picture"][entries["document"] == 0].tolist())
    assert not others & {1, 2}
    assert len(others) > 5
    assert abs(np.mean(shares) - 0.5) < 0.08
    batch = objective.segments(data, entries, np.random.default_rng(0))
    assert np.array_equal(batch["image_text_match_labels"], 1 - other)
    for row, entry in enumerate(entries):
        _, features = pictures[entry["picture"]]
        there = batch["region_mask"][row] > 0
        assert np.array_equal(batch["region_features"][row][there], features)


def test_of_several_candidates_the_most_similar_picture_is_taken():
    values = [0.0, 1.0, 1.1, 5.0, 5.2, 9.0]
    boxes = np.zeros((1, 4), np.float32)
    pictures = [(boxes, np.full((1, 3), each, np.float32)) for each in values]
    data = MemoryCaptions([[10 + i] for i in range(6)], pictures)
    hard = ImageTextMatch(CONTEXT, negatives=0.99, candidates=200)
    entries = hard.index(data, np.random.default_rng(0)).entries
    assert entries["picture"].tolist() == [1, 2, 1, 4, 3, 4]


def several_captions(seed: int = 0) -> tuple[MemoryCaptions, list[tuple[int, str]]]:
    """Forty captions of a few words about eight pictures; (picture, text) each.

    Some are the same, of one picture or of several; the last picture has one caption alone.
    """
    rng = np.random.default_rng(seed)
    pictures = [random_captions(1, 100, 26, seed=10 + i).regions(0) for i in range(8)]
    table = [(int(rng.integers(0, 7)), rng.integers(5, 8, rng.integers(1, 4))) for _ in range(39)]
    table.append((7, np.array([40, 41])))
    data = MemoryCaptions([text.tolist() for _, text in table], [pictures[i] for i, _ in table])
    return data, [(picture, str(text.tolist())) for picture, text in table]


@pytest.mark.parametrize("candidates", [1, 5])
def test_two_captions_of_a_picture_are_both_its_own_or_the_second_is_of_another(candidates: int):
    data, table = several_captions()
    said = {picture: {text for seen, text in table if seen == picture} for picture, _ in table}
    objective = ImageTextMatch(CONTEXT, captions=2, candidates=candidates)
    shares, seconds = [], set()
    for seed in range(100 if candidates == 1 else 10):
        index = objective.index(data, np.random.default_rng(seed))
        entries = index.entries
        firsts = entries["first"]["document"].tolist()
        # Each caption is once the first, but those whose picture has no second one.
        assert firsts == [i for i, (seen, _) in enumerate(table) if len(said[seen]) > 1]
        assert index.details["captions_alone"] == len(table) - len(firsts) > 0
        for first, second, matched in zip(
            firsts, entries["second"]["document"], entries["matched"], strict=True
        ):
            (picture, text), (other, told) = table[first], table[second]
            assert matched == (told in said[picture])
            assert text != told
            assert matched or other != picture
            seconds.add((first, bool(matched), told))
        shares.append(1 - entries["matched"].mean())
        assert index.details["mismatched_pairs"] == pytest.approx(shares[-1])
    assert abs(np.mean(shares) - 0.5) < 0.06
    if candidates == 1:  # every other text of the picture is drawn at some time
        for first in firsts:
            picture, text = table[first]
            drawn = {told for number, matched, told in seconds if number == first and matched}
            assert drawn == said[picture] - {text}
    again = objective.index(data, np.random.default_rng(seed))
    assert np.array_equal(again.entries, entries)


def test_rows_with_two_captions_have_the_picture_of_the_first():
    data, _ = several_captions()
    objectives = [MaskedLM(CONTEXT), ImageTextMatch(CONTEXT, captions=2)]
    made = batches({"captions": (data, 1.0)}, objectives, CONTEXT, 8, seed=1)
    batch = made.batch(2)
    entries = made.feeds[0].entries(np.array([example for _, example in made.members(2)]))
    assert np.array_equal(batch["image_text_match_labels"], entries["matched"])
    ids = batch["token_ids"].copy()
    places = np.where(batch["mask_weights"] > 0, batch["mask_positions"], 0)  # 0 is [CLS]
    np.put_along_axis(ids, places, np.where(places > 0, batch["mask_labels"], 2), axis=1)
    for row, entry in enumerate(entries):
        first, second = (data.document(int(entry[of]["document"]))[0] for of in ("first", "second"))
        text = [2, *first, 3, *second, 3]
        assert ids[row].tolist() == text + [0] * (12 - len(text))
        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        assert batch["segment_ids"][row].tolist() == segments + [0] * (12 - len(text))
        there = batch["region_mask"][row] > 0
        assert np.array_equal(
            batch["region_features"][row][there], data.regions(int(entry["picture"]))[1]
        )
    short = replace(CONTEXT, sequence_length=6)  # a row has room for three tokens
    index = ImageTextMatch(short, captions=2).index(data, np.random.default_rng(0))
    assert index.lengths.max() == 6
    assert all(
        (index.entries[of]["end"] > index.entries[of]["start"]).all() for of in ("first", "second")
    )


def test_no_caption_gets_a_picture_of_which_the_same_words_are_a_caption():
    data, table = several_captions()
    true, drawn = set(table), set()
    for seed in range(20):
        entries = ImageTextMatch(CONTEXT).index(data, np.random.default_rng(seed)).entries
        for document, picture in entries[entries["picture"] != entries["document"]][
            ["document", "picture"]
        ].tolist():
            assert (table[picture][0], table[document][1]) not in true
            drawn.add((document, table[picture][0]))
    assert len(drawn) > 100


def test_captions_that_are_alone_cannot_be_paired():
    alone = random_captions(12, 100, 26, seed=3)
    with pytest.raises(ContractViolation, match="each of the 12 captions is the only one"):
        ImageTextMatch(CONTEXT, captions=2).index(alone, np.random.default_rng(0))


def test_captions_without_another_picture_are_refused():
    one = random_captions(1, 100, 26).regions(0)
    alike = MemoryCaptions([[10, 11], [12, 13], [14]], [one] * 3)
    with pytest.raises(ContractViolation, match="found no other caption with another picture"):
        ImageTextMatch(CONTEXT, negatives=0.99).index(alike, np.random.default_rng(0))
    with pytest.raises(ContractViolation, match="needs captions with pictures"):
        ImageTextMatch(CONTEXT).index(random_corpus(4, 100), np.random.default_rng(0))
    with pytest.raises(ContractViolation, match="region_class: its rows have no regions"):
        RegionClass(CONTEXT).examples({}, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("objective", "settings", "match"),
    [
        ("image_text_match", {"negatives": 1.0}, "negatives in"),
        ("image_text_match", {"candidates": 0}, "candidates from 1"),
        ("image_text_match", {"captions": 3}, "captions 1 or 2"),
        ("region_regression", {"rate": 0.0}, r"rate: .* got 0\.0"),
        ("region_class", {"mask_share": 0.9, "random_share": 0.2}, r"got 0\.9 and 0\.2"),
        ("region_class", {"groups": [8, 1]}, "numbers of classes from 2"),
        ("region_class", {"detected": [1600, 1]}, "each from 2, got .1600, 1"),
        ("region_class", {"detected": [3, 3, 3]}, "each from 2"),
        ("word_region_alignment", {"beta": 0.0}, "beta above 0"),
        ("word_region_alignment", {"steps": 0}, "steps from 1"),
    ],
)
def test_settings_out_of_range_are_refused(objective, settings, match):
    with pytest.raises(RecipeError, match=match):
        catalogue.find("objectives", objective)(CONTEXT, **settings)


def test_an_unknown_error_and_too_many_classes_are_refused():
    with pytest.raises(UnknownNameError, match=r"region_regression\.error"):
        RegionRegression(CONTEXT, error="cubed")
    network = catalogue.find("families", "uniter")(vocabulary_size=100, **TINY)
    with pytest.raises(RecipeError, match="24 classes, but a region has 6 features"):
        RegionClass(CONTEXT).attach(network)


TINY = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 8, "region_dim": 6}


def predictions(
    objective: Any, **more: np.ndarray
) -> tuple[Any, dict[str, np.ndarray], np.ndarray]:
    """A scorer, a batch of hidden regions with shares and more, and what it predicts by NumPy."""
    network = catalogue.find("families", "unicoder_vl")(vocabulary_size=100, **TINY)
    scorer = objective.attach(network)
    for variable in scorer.trainable_variables:
        variable.assign(RNG.normal(0, 0.7, variable.shape))
    labels = RNG.dirichlet(np.ones(3), (2, 4, 2)).reshape(2, 4, 6).astype(np.float32)
    batch = {
        "region_labels": labels,
        "region_weights": np.array([[1, 0, 1, 0], [0, 1, 0, 0]], np.float32),
        "row_weights": np.array([1, 1], np.float32),
        **more,
    }
    hidden = RNG.normal(size=(2, 4, 8)).astype(np.float32)
    _, own = scorer(batch, {"region_output": hidden})
    ((_, predicted),) = own.items()
    return scorer, batch | {"hidden": hidden}, value(predicted)


def test_a_tied_head_predicts_by_the_matrix_that_reads_features_transposed():
    network = catalogue.find("families", "uniter")(vocabulary_size=100, **TINY)
    kernel = network.region_embedding.feature_embedding.kernel
    kernel.assign(RNG.normal(size=(6, 8)))
    scorer = RegionRegression(CONTEXT, tied=True).attach(network)
    scorer.output_bias.assign(RNG.normal(size=6))
    assert all(variable is not kernel for variable in scorer.variables)
    hidden = RNG.normal(size=(2, 4, 8)).astype(np.float32)
    inner = value(scorer.norm(scorer.transform(hidden)))
    expected = inner @ value(kernel).T + value(scorer.output_bias)
    _, own = scorer({}, {"region_output": hidden})
    assert np.abs(value(own["region_predictions"]) - expected).max() < 1e-5
    other = catalogue.find("families", "vl_bert")(vocabulary_size=100, **TINY)
    with pytest.raises(RecipeError, match=r"region_regression\.tied: vlbert has no matrix"):
        RegionRegression(CONTEXT, tied=True).attach(other)


@pytest.mark.parametrize("error", ["smooth_absolute", "squared"])
def test_the_error_of_hidden_regions_is_numpys(error):
    scorer, batch, predicted = predictions(RegionRegression(CONTEXT, error=error))
    scores, _ = scorer(batch, {"region_output": batch["hidden"]})
    gap = (predicted - batch["region_labels"])[batch["region_weights"] > 0]
    small = np.abs(gap) < 1
    smooth = np.where(small, gap**2 / 2, np.abs(gap) - 0.5)
    assert small.any()
    assert not small.all()
    expected = (gap**2 if error == "squared" else smooth).mean(axis=-1).sum()
    total, weight = scores["loss"]
    assert float(total) == pytest.approx(expected, rel=1e-5)
    assert float(weight) == 3


@pytest.mark.parametrize("likeliest", [False, True])
def test_the_cross_entropy_of_each_group_of_classes_is_numpys(likeliest):
    objective = RegionClass(CONTEXT, groups=(3, 2), likeliest=likeliest)
    scorer, batch, logs = predictions(objective)
    scores, _ = scorer(batch, {"region_output": batch["hidden"]})
    assert np.allclose(np.exp(logs[..., :3]).sum(-1), 1, atol=1e-5)
    assert np.allclose(np.exp(logs[..., 3:]).sum(-1), 1, atol=1e-5)
    nats = hits = 0.0
    for row, region in zip(*np.nonzero(batch["region_weights"]), strict=True):
        for group in (slice(0, 3), slice(3, 5)):
            right, found = batch["region_labels"][row, region, group], logs[row, region, group]
            if likeliest:
                right = np.eye(len(right))[right.argmax()]
            nats -= right @ found
            hits += right.argmax() == found.argmax()
    assert float(scores["loss"][0]) == pytest.approx(nats, rel=1e-5)
    assert float(scores["accuracy"][0]) == pytest.approx(hits / 2)


@pytest.mark.parametrize("groups", [(5, 4), (5,)])  # more than the six features of a region
def test_what_a_detector_tells_counts_by_its_confidence_as_numpy_has_it(groups: tuple[int, ...]):
    objective = RegionClass(CONTEXT, detected=groups)
    sure = RNG.random((2, 4, 2)).astype(np.float32)
    sure[1, 1, 0] = 0  # told nothing
    told = RNG.integers(0, 4, (2, 4, 2)).astype(np.int32)
    scorer, batch, logs = predictions(objective, detected_classes=told, detected_confidences=sure)
    scores, _ = scorer(batch, {"region_output": batch["hidden"]})
    nats = hits = asked = 0.0
    for row, region in zip(*np.nonzero(batch["region_weights"]), strict=True):
        for column, group in enumerate((slice(0, 5), slice(5, 9))[: len(groups)]):
            found = logs[row, region, group]
            right = batch["detected_classes"][row, region, column]
            sure = batch["detected_confidences"][row, region, column]
            nats -= sure * found[right]
            hits += sure * (found.argmax() == right)
            asked += sure
    assert float(scores["loss"][0]) == pytest.approx(nats, rel=1e-5)
    assert float(scores["loss"][1]) == 3  # regions, however sure it is of them
    assert float(scores["accuracy"][0]) == pytest.approx(hits / len(groups), rel=1e-5)
    assert float(scores["accuracy"][1]) == pytest.approx(asked / len(groups), rel=1e-5)


def detected_captions(number: int, most: tuple[int, int]) -> MemoryCaptions:
    """Captions whose regions have classes below these numbers."""
    drawn = random_captions(number, 100, 26, seed=4)
    pictures = [drawn.regions(i) for i in range(number)]
    told = [
        (RNG.integers(0, most, (len(boxes), 2)), RNG.uniform(0.2, 1.0, (len(boxes), 2)))
        for boxes, _ in pictures
    ]
    texts = [drawn.document(i)[0].tolist() for i in range(number)]
    return MemoryCaptions(texts, pictures, classes=told)


def test_the_classes_of_the_shown_picture_are_learned_beside_text_without_any():
    data, text = detected_captions(30, (5, 3)), random_corpus(10, 100, seed=2)
    objectives = [MaskedLM(CONTEXT), RegionClass(CONTEXT, detected=(5, 3))]
    made = batches({"seen": (data, 1.0), "read": (text, 1.0)}, objectives, CONTEXT, 16, seed=1)
    batch = made.batch(1)
    kinds = set()
    for row, (feed, example) in enumerate(made.members(1)):
        kinds.add(made.feeds[feed].name)
        sure = batch["detected_confidences"][row]
        if made.feeds[feed].name == "read":
            assert not sure.any()
            continue
        (entry,) = made.feeds[feed].entries(np.array([example]))
        classes, expected = data.classes(int(entry["document"]))
        assert np.array_equal(batch["detected_classes"][row, : len(classes)], classes)
        assert np.array_equal(sure[: len(classes)], expected.astype(np.float32))
        assert not sure[len(classes) :].any()
    assert kinds == {"seen", "read"}
    pair = [ImageTextMatch(CONTEXT, negatives=0.9), RegionClass(CONTEXT, detected=(5, 3))]
    made = batches({"seen": (data, 1.0)}, pair, CONTEXT, 16, seed=1)
    batch = made.batch(0)
    examples = np.array([example for _, example in made.members(0)])
    for row, entry in enumerate(made.feeds[0].entries(examples)):
        classes, _ = data.classes(int(entry["picture"]))
        assert np.array_equal(batch["detected_classes"][row, : len(classes)], classes)


def test_classes_that_are_not_told_or_not_learned_are_refused():
    few = {"seen": (detected_captions(20, (5, 3)), 1.0)}
    fed = batches(few, [RegionClass(CONTEXT, detected=(4, 3))], CONTEXT, 16, seed=1)
    with pytest.raises(ContractViolation, match="expected classes below 4, got 0 to 4"):
        fed.batch(0)
    none = {"seen": (random_captions(20, 100, 26), 1.0)}
    fed = batches(none, [RegionClass(CONTEXT, detected=(5, 3))], CONTEXT, 16, seed=1)
    with pytest.raises(ContractViolation, match="regions have no classes of a detector"):
        fed.batch(0)


def ipot(cost: np.ndarray, beta: float, steps: int) -> np.ndarray:
    """The plan of one row without padding, as in the paper: algorithm 1, in float64."""
    n, m = cost.shape
    kernel, plan, b = np.exp(-cost / beta), np.ones((n, m)), np.ones(m) / m
    for _ in range(steps):
        q = kernel * plan
        a = 1.0 / (n * (q @ b))
        b = 1.0 / (m * (q.T @ a))
        plan = a[:, None] * q * b
    return plan


def test_the_plan_is_ipots_and_padding_is_no_part_of_it():
    cost = RNG.uniform(0, 2, (2, 5, 4)).astype(np.float32)
    first = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.float32)
    second = np.array([[1, 1, 1, 1], [1, 0, 1, 0]], np.float32)
    plan = value(transport(cost, first, second, 0.5, 50))
    for row in range(2):
        there = np.ix_(first[row] > 0, second[row] > 0)
        # Ours scales columns first, the paper rows.
        expected = ipot(cost[row][there].T.astype(np.float64), 0.5, 50).T
        assert np.abs(plan[row][there] - expected).max() < 1e-5
        assert np.abs(plan[row].sum() - 1) < 1e-5
        rest = plan[row].copy()
        rest[there] = 0
        assert not rest.any()
    # At the optimum: the costs of assignment, each token and region having one fifth of the mass.
    square = RNG.uniform(0, 2, (1, 5, 5)).astype(np.float32)
    ones = np.ones((1, 5), np.float32)
    from scipy.optimize import linear_sum_assignment

    best = square[0][linear_sum_assignment(square[0])].mean()
    found = value(transport(square, ones, ones, 0.1, 300))
    assert float((found * square).sum()) == pytest.approx(best, abs=1e-3)


def test_all_tokens_go_to_the_only_region_and_nowhere_if_there_is_none():
    cost = RNG.uniform(0, 2, (2, 5, 4)).astype(np.float32)
    first = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.float32)
    second = np.array([[0, 0, 1, 0], [0, 0, 0, 0]], np.float32)
    expected = np.zeros((2, 5, 4))
    expected[0, :3, 2] = 1 / 3
    assert np.abs(value(transport(cost, first, second, 0.5, 50)) - expected).max() < 1e-6


def test_only_rows_with_their_own_picture_are_aligned():
    network = catalogue.find("families", "unicoder_vl")(vocabulary_size=100, **TINY)
    scorer = catalogue.find("objectives", "word_region_alignment")(CONTEXT).attach(network)
    text, regions = RNG.normal(size=(3, 5, 8)), RNG.normal(size=(3, 4, 8))
    outputs = {
        "sequence_output": text.astype(np.float32),
        "region_output": regions.astype(np.float32),
    }
    batch = {
        "padding_mask": np.ones((3, 5), np.int32),
        "region_mask": np.ones((3, 4), np.int32),
        "image_text_match_labels": np.array([1, 0, 1], np.int32),
        "row_weights": np.array([1, 1, 0], np.float32),
    }
    scores, own = scorer(batch, outputs)
    unit = [each[0] / np.linalg.norm(each[0], axis=-1, keepdims=True) for each in (text, regions)]
    cost = 1 - unit[0] @ unit[1].T
    expected = (ipot(cost.T, 0.5, 50).T * cost).sum()
    assert float(scores["loss"][0]) == pytest.approx(expected, rel=1e-4)
    assert float(scores["loss"][1]) == 1
    assert own["word_region_plan"].shape == (3, 5, 4)


def test_captions_and_plain_text_come_in_one_batch_and_no_row_joins_two_captions():
    captions = random_captions(30, 100, 26, seed=1)
    text = random_corpus(10, 100, seed=2)
    objectives = [MaskedLM(CONTEXT), RegionRegression(CONTEXT)]
    made = batches({"seen": (captions, 1.0), "read": (text, 1.0)}, objectives, CONTEXT, 16, seed=1)
    batch = made.batch(3)
    assert batch["region_features"].shape == (16, captions.most_regions, 26)
    for (feed, _), mask, weights in zip(
        made.members(3), batch["region_mask"], batch["region_weights"], strict=True
    ):
        assert mask.any() == weights.any() == (made.feeds[feed].name == "seen")
    inner = batch["token_ids"][:, 1:-1] * (batch["padding_mask"][:, 2:] > 0)
    seen = batch["region_mask"].any(axis=1)
    assert not (inner[seen] == 3).any()
    blind = replace(CONTEXT, network=SEES - {Capability.REGIONS})
    (alone,) = [MaskedLM(blind)]
    batch = batches({"seen": (captions, 1.0)}, [alone], blind, 8, seed=1).batch(0)
    assert not any("region" in key for key in batch)
