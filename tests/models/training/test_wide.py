"""A wide part in training: what it begins with, its blend, and resuming to the same bits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from models.answers.label import Label
from models.blend import EQUAL, fitted
from models.evaluation.predict import RowPredictor, predict
from models.evaluation.resampling import scores
from models.heads.sequence_classification import SequenceClassification
from models.inputs import wide_rows
from models.layers.wide import WidePart
from models.linear_machine import Machine
from models.protocols import Context
from models.training.gradient import train
from models.training.stage import Budget
from models.training.trained_stage import load_stage
from tests.models.training.memory import Rows, finetuning, tokenizer
from tests.models.training.test_gradient import Killed, KillingAt, weights

TRAIN, DEV = Rows(100, 1), Rows(60, 2)
WIDE = {"head_settings": {"wide": True}, "rows": {"train": TRAIN, "dev": DEV}}
NAMES = ("high", "low")
HEAD = "heads/sequence_classification.safetensors"


def macro_f1(answers: list[str]) -> float:
    return scores(Label(), DEV.answers, answers, ["macro_f1"])["macro_f1"]


def counting() -> tuple[wide_rows.WideRows, WidePart]:
    """How rows are counted, and a wide part that has learned."""
    head = SequenceClassification(Context(tokenizer(), 32, NAMES, TRAIN), wide=True)
    assert head.wide is not None
    layer = WidePart(2)
    layer.build()
    layer.learn(head.wide.machine)
    return head.wide, layer


def counted() -> np.ndarray:
    """The scores of the dev rows by the wide part, with no network."""
    rows, layer = counting()
    return np.asarray(layer(rows.features(DEV, np.arange(len(DEV)))))


def counting_alone() -> list[str]:
    """The answers to the dev rows of the wide part, with no network."""
    return [NAMES[i] for i in counted().argmax(axis=1)]


def test_read_by_as_many_rows_as_fit_in_memory_scores_are_those_of_all_at_once(monkeypatch):
    rows, layer = counting()
    read, own = [], layer._counted
    monkeypatch.setattr(wide_rows, "_MOST", 1)  # of one row
    monkeypatch.setattr(
        layer, "_counted", lambda ids, counts: read.append(len(ids)) or own(ids, counts)
    )
    scores = rows.scores(layer, DEV)
    assert read == [1] * len(DEV)
    np.testing.assert_allclose(scores, counted(), rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wide") / "stage"
    train(finetuning(**WIDE), folder)
    return folder


def test_before_the_first_update_it_answers_as_counting_alone(trained):
    (first, *later) = json.loads((trained / "metrics.json").read_text())["selection"]["evaluations"]
    assert first["step"] == 0
    assert first["macro_f1"] == macro_f1(counting_alone())
    assert [each["step"] for each in later] == [13, 26]


def test_what_is_kept_is_not_below_counting_alone(trained):
    found = [answer.text for answer in predict(trained, tokenizer(), DEV)]
    selection = json.loads((trained / "metrics.json").read_text())["selection"]
    assert macro_f1(found) == selection["value"] >= macro_f1(counting_alone())


def test_beside_a_network_in_bfloat16_nothing_of_it_is_rounded(tmp_path):
    job = finetuning(**WIDE, precision="bfloat16", budget=Budget("steps", 2))
    train(job, tmp_path / "stage")
    (first, last) = json.loads((tmp_path / "stage/metrics.json").read_text())["selection"][
        "evaluations"
    ]
    assert first["macro_f1"] == macro_f1(counting_alone())
    found = [answer.text for answer in predict(tmp_path / "stage", tokenizer(), DEV)]
    assert macro_f1(found) == pytest.approx(max(first["macro_f1"], last["macro_f1"]))


@pytest.fixture(scope="module")
def last(tmp_path_factory) -> Path:
    """A stage that keeps its last weights."""
    folder = tmp_path_factory.mktemp("wide") / "stage"
    train(finetuning(**WIDE, select=None), folder)
    return folder


def test_the_network_learns_the_same_bits_as_with_nothing_beside_it(last, tmp_path):
    train(finetuning(**WIDE | {"head_settings": {}}, select=None), tmp_path)
    network = "network.safetensors"
    assert (last / network).read_bytes() == (tmp_path / network).read_bytes()
    output = load_file(tmp_path / HEAD)["output/kernel"]
    assert np.array_equal(load_file(last / HEAD)["output/kernel"], output)


def both_scores(stage: Path) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the dev rows by the network of a stage, and by the n-grams beside it."""
    found = []
    for factors in ((1.0, 0.0), (0.0, 1.0)):
        loaded = load_stage(stage, tokenizer())
        head = loaded.objective("sequence_classification")
        scorer = loaded.scorer("sequence_classification", head)
        scorer.wide.blend.assign(factors)
        outputs = RowPredictor(loaded.network, head, scorer, DEV, loaded.context).outputs()
        found.append(np.stack([own["logits"] for (own,) in outputs]))
    return found[0], found[1]


def test_answers_are_by_the_blend_that_fits_the_dev_rows_best(last):
    network, counted = both_scores(last)
    labels = np.array([("high", "low").index(answer) for answer in DEV.answers])
    factors = fitted(network, counted, labels)
    kept = load_file(last / HEAD)["wide/blend"]
    assert kept == pytest.approx(factors, abs=1e-3)
    said = json.loads((last / "metrics.json").read_text())["blend"]
    assert [said["network"], said["counted"]] == kept.tolist()
    blended = kept[0] * network + kept[1] * counted
    powers = np.exp(blended - blended.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    for own, answer in zip(shares, predict(last, tokenizer(), DEV), strict=True):
        assert list(answer.details.values()) == pytest.approx(own, abs=1e-5)


@pytest.mark.usefixtures("untraced")
def test_without_dev_rows_both_count_alike(tmp_path):
    job = finetuning(
        head_settings={"wide": True},
        rows={"train": TRAIN},
        budget=Budget("steps", 2),
        select=None,
    )
    outcome = train(job, tmp_path)
    assert load_file(tmp_path / HEAD)["wide/blend"].tolist() == list(EQUAL)
    assert "blend" not in outcome.metrics


def test_its_own_weights_stay_as_they_were_learned(trained):
    head = SequenceClassification(Context(tokenizer(), 32, ("high", "low"), TRAIN), wide=True)
    assert head.wide is not None
    kept = load_file(trained / HEAD)
    for name in ("idf", "kernel", "bias"):
        assert np.array_equal(kept[f"wide/{name}"], getattr(head.wide.machine, name)), name


def test_learned_before_killed_and_resumed_it_ends_with_the_same_bits(last, tmp_path):
    head = SequenceClassification(Context(tokenizer(), 32, ("high", "low"), TRAIN), wide=True)
    assert head.wide is not None
    head.wide.machine.write(tmp_path)
    job = replace(finetuning(**WIDE, select=None), machine=Machine.read(tmp_path))
    with pytest.raises(Killed):
        train(job, tmp_path / "stage", KillingAt(7))
    train(job, tmp_path / "stage")
    assert weights(tmp_path / "stage") == weights(last)


@pytest.mark.usefixtures("untraced")
def test_a_head_that_begins_or_ceases_to_have_one_is_otherwise_the_one_before(last, tmp_path):
    still = {
        "rows": WIDE["rows"],
        "budget": Budget("steps", 1),
        "optimizer": {"adamw": {"peak_learning_rate": 1e-9, "warmup": 0}},
        "select": None,
    }
    train(finetuning(last, **still, head_settings={}), tmp_path / "ceases")
    job = finetuning(tmp_path / "ceases", **still, head_settings={"wide": True})
    outcome = train(job, tmp_path / "begins")
    assert outcome.weights == outcome.trained_weights
    before = load_file(last / HEAD)["output/kernel"]
    for folder in (tmp_path / "ceases", tmp_path / "begins"):
        np.testing.assert_allclose(load_file(folder / HEAD)["output/kernel"], before, atol=1e-6)
    assert load_file(tmp_path / "begins" / HEAD)["wide/kernel"].any()


@pytest.mark.usefixtures("untraced")
def test_a_later_stage_counts_its_own_rows(trained, tmp_path):
    other = {"train": Rows(100, 8), "dev": DEV}
    job = finetuning(trained, **(WIDE | {"rows": other}), budget=Budget("steps", 2), select=None)
    train(job, tmp_path / "stage")
    before, now = load_file(trained / HEAD), load_file(tmp_path / "stage" / HEAD)
    assert not np.array_equal(before["wide/kernel"], now["wide/kernel"])
    context = Context(tokenizer(), 32, ("high", "low"), other["train"])
    head = SequenceClassification(context, wide=True)
    assert head.wide is not None
    assert np.array_equal(now["wide/kernel"], head.wide.machine.kernel)
