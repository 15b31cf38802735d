"""Choices by a network and by n-grams: what is counted, what a stage begins with, what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from models.evaluation.predict import predict
from models.families.tfidf import TFIDF
from models.heads.multiple_choice import MultipleChoice
from models.inputs.wide_choices import LEFT_OUT
from models.layers.wide import WidePart
from models.protocols import Context
from models.training.gradient import train
from tests.models.memory_corpus import MemoryRows
from tests.models.training.memory import finetuning, tokenizer


def rows(number: int, seed: int) -> MemoryRows:
    """Two to four choices; of most rows the right one has three tokens of the text."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        text = rng.choice(np.arange(20, 60), 6, replace=False).tolist()
        choices = [rng.choice(np.arange(20, 100), 5).tolist() for _ in range(rng.integers(2, 5))]
        right = int(rng.integers(len(choices)))
        if rng.random() < 0.8:
            choices[right][:3] = text[:3]
        made.append((text, *choices, str(right)))
    return MemoryRows(made)


TRAIN, DEV = rows(80, 1), rows(40, 2)


def head_of(train: MemoryRows) -> MultipleChoice:
    return MultipleChoice(Context(tokenizer(), 32, (), train), wide=True)


def counted(head: MultipleChoice, asked: MemoryRows) -> np.ndarray:
    part = WidePart(1)
    part.build()
    part.learn(head.wide.machine)
    return np.asarray(part(head.wide.of_rows(asked, range(len(asked)))))[..., 0]


def right_of(asked: MemoryRows) -> np.ndarray:
    return np.array([int(answer) for answer in asked.answers])


def test_a_choice_that_is_like_the_text_is_chosen_by_counting_alone():
    found = counted(head_of(TRAIN), DEV)
    there = np.arange(4) < np.array([len(DEV.texts(row)) - 1 for row in range(40)])[:, None]
    best = np.where(there, found, LEFT_OUT).argmax(axis=1)
    assert (best == right_of(DEV)).mean() > 0.7


def test_the_factor_fits_the_softmax_over_each_rows_own_choices():
    unseen = head_of(TRAIN).wide.machine.unseen[..., 0].astype(np.float64)
    there, right = unseen > LEFT_OUT / 2, right_of(TRAIN)
    # As if each row were there 80 times with its choice, and once with every choice that it has.
    softened = 80 * (np.arange(unseen.shape[1]) == right[:, None]) + there
    softened = softened / softened.sum(axis=1, keepdims=True)

    def loss(factor: float) -> float:
        powers = np.where(there, np.exp(factor * unseen), 0.0)
        shares = np.where(there, powers, 1.0) / powers.sum(axis=1, keepdims=True)
        return -(softened * np.log(shares)).sum(axis=1).mean()

    assert all(loss(1.0) < loss(factor) for factor in (0.8, 0.95, 1.05, 1.25))
    assert (unseen.argmax(axis=1) == right).mean() > 0.6


def test_a_batch_has_as_many_choices_as_its_longest_row_also_in_what_is_known_of_it():
    head = head_of(TRAIN)
    two = [row for row in range(80) if len(TRAIN.texts(row)) == 3][:2]
    batch = head.segments(TRAIN, np.array(two), np.random.default_rng(0))
    assert batch["token_ids"].shape[:2] == batch["ngram_logits"].shape[:2] == (2, 2)
    assert np.array_equal(batch["ngram_logits"], head.wide.machine.unseen[two, :2])
    asked = head.segments(DEV, np.arange(3), np.random.default_rng(0))
    assert asked["ngram_counts"].shape[:2] == asked["token_ids"].shape[:2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices") / "stage"
    job = finetuning(
        head="multiple_choice",
        head_settings={"wide": True},
        rows={"train": TRAIN, "dev": DEV},
        select={"metric": "accuracy", "split": "dev"},
    )
    train(job, folder)
    return folder


def test_it_begins_with_what_counting_says_and_answers_by_the_blend_it_keeps(trained: Path):
    said = counted(head_of(TRAIN), DEV)
    there = [len(DEV.texts(row)) - 1 for row in range(40)]
    alone = [said[row, :number].argmax() for row, number in enumerate(there)]
    evaluations = json.loads((trained / "metrics.json").read_text())["selection"]["evaluations"]
    assert evaluations[0]["accuracy"] == pytest.approx((alone == right_of(DEV)).mean())
    blend = load_file(trained / "heads/multiple_choice.safetensors")["wide/blend"]
    answers = predict(trained, tokenizer(), DEV)
    assert [len(answer.details) for answer in answers] == there
    best = max(each["accuracy"] for each in evaluations)
    own = np.mean([int(a.text) for a in answers] == right_of(DEV))
    assert own == pytest.approx(best)
    assert blend.min() >= 0
    assert blend[1] > 0


def test_a_family_that_only_counts_chooses_as_its_n_grams_do():
    head = head_of(TRAIN)
    scorer = head.attach(TFIDF(vocabulary_size=100))
    head.learn(scorer)
    batch = head.segments(DEV, np.arange(40), np.random.default_rng(0))
    prepared = scorer.prepare(batch, training=False)
    outputs = {"sequence_output": np.zeros((*prepared["token_ids"].shape, 1), np.float32)}
    _, predictions = scorer(prepared, outputs, training=False)
    logits = np.asarray(predictions["logits"])
    expected = counted(head, DEV)
    here = logits > LEFT_OUT / 2
    assert logits[here] == pytest.approx(expected[here], abs=1e-4)
    assert here.sum() == sum(len(DEV.texts(row)) - 1 for row in range(40))
