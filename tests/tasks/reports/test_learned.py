"""A run says which pre-training taught the network nothing, and what would."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from models.answers.text import written
from tasks.reports.learned import (
    adds_nothing,
    beyond_pretraining,
    little_learned,
    tells_nothing_apart,
)
from tasks.steps.evaluate_model import _commonest, _without_likelihood


def _stage(name: str, nats: float | None, tokens: int = 400_000):
    """A stage whose main text is guessed so much worse (negative: better) than by frequency."""
    loss = {} if nats is None else {"mine": 6.0 + nats}
    told = {
        "stage": name,
        "tokens": tokens,
        "heldout_loss": {**loss, "other": 5.5},
        "unigram_loss": {**dict.fromkeys(loss, 6.0), "other": 6.0},
    }
    said = SimpleNamespace(
        corpora={"mine": 0.9, "other": 0.1},
        phases=[SimpleNamespace(sequence_length=64)],
        objectives={"masked_lm": {"rate": 0.15}},
        network={"dropout": 0.1},
        family="bert",
    )
    return told, said


def _said(*stages, pieces: int | None = 8000) -> list[str]:
    told, said = zip(*stages, strict=True)
    return little_learned(told, said, pieces)


def test_what_is_worse_than_frequencies_is_said_with_everything_that_helps():
    (note,) = _said(_stage("general", 0.923), _stage("domain", 0.4))
    assert "learned nothing" in note
    assert "stage general +0.92 nats on mine, stage domain +0.40 nats on mine" in note
    for helps in ("1,000,000 tokens", "short windows", "rate 0.3", "dropout 0.0", "4,000"):
        assert helps in note
    assert "family: roformer" in note


def test_no_family_is_advised_that_cannot_learn_the_recipes_objectives():
    told, said = _stage("general", 0.9)
    said.objectives["next_sentence"] = {}
    (note,) = _said((told, said))
    assert "short windows" in note
    assert "roformer" not in note


def test_the_text_that_is_read_most_decides():
    assert _said(_stage("general", -1.1)) == []  # of `other` it learned less
    (note,) = _said(_stage("general", 0.1), _stage("domain", -0.9))
    assert "learned little" in note
    assert "stage domain -0.90" in note
    assert _said(_stage("general", -0.6), _stage("domain", -1.1)) == []  # in the end it did learn


def test_without_held_out_text_nothing_is_said_of_it():
    assert _said(_stage("general", None)) == []


def test_a_network_from_elsewhere_keeps_its_vocabulary_and_shape():
    (note,) = _said(_stage("domain", -0.2, tokens=2_000_000), pieces=None)
    assert "a larger budget." in note
    assert "vocabulary" not in note


def _recipe(*lengths: int, init: str | None = None) -> SimpleNamespace:
    """Stages that read windows of such lengths, the last one with labels."""
    stages = [
        SimpleNamespace(name=f"stage{i}", sequence_length=length, init=init)
        for i, length in enumerate(lengths)
    ]
    return SimpleNamespace(last_network=stages, finetune=stages[-1])


def test_labels_in_longer_windows_than_were_ever_seen_are_said():
    (note,) = beyond_pretraining(_recipe(64, 32, 128))
    assert "Stage stage2 reads up to 128 tokens, no stage before it more than 64" in note
    assert "Give stage stage1 a phase of 128 tokens" in note
    assert beyond_pretraining(_recipe(64, 128, 128)) == []
    assert beyond_pretraining(_recipe(128)) == []
    assert beyond_pretraining(_recipe(64, 128, init="bert")) == []


@pytest.mark.parametrize(
    ("predicted", "right", "told"),
    [
        ({"a": 19, "b": 1}, {"a": 8, "b": 12}, "one answer to 95% of the 20 rows.*right for 40%"),
        ({"a": 19, "b": 1}, {"a": 18, "b": 2}, ""),  # they are nearly all alike
        ({"a": 17, "b": 3}, {"a": 8, "b": 12}, ""),
        ({"[]": 20}, {"[]": 11, "x": 9}, "one answer to 100%"),
    ],
)
def test_a_model_that_gives_one_answer_to_unlike_rows_is_told(predicted, right, told):
    said, true = (np.repeat(list(each), list(each.values())) for each in (predicted, right))
    notes = tells_nothing_apart({"rows": 20, "commonest": _commonest(said, np.sort(true))})
    assert bool(notes) == bool(told)
    if told:
        assert re.search(told, notes[0])


@pytest.mark.parametrize(
    ("step", "scores", "told"),
    [
        (0, [0.47, 0.45, 0.46], r"0\.4700 before the first update and 0\.4600 at best after it"),
        (20, [0.47, 0.45, 0.48], ""),
        (0, [0.47], ""),
    ],
)
def test_a_network_that_only_worsens_what_was_counted_is_told_of(step, scores, told):
    evaluations = [{"step": 10 * i, "macro_f1": score} for i, score in enumerate(scores)]
    selection = {"metric": "macro_f1", "value": max(scores), "step": step}
    notes = adds_nothing({"selection": {**selection, "evaluations": evaluations}})
    assert bool(notes) == bool(told)
    assert not told or re.search(told, notes[0])
    assert adds_nothing({}) == adds_nothing({"selection": None}) == []


def test_a_text_is_the_same_whatever_its_reference_is_worth():
    answers = [written("Ein Hund.", likelihood) for likelihood in (None, (3.0, 4, 2), (1.0, 2, 2))]
    assert len(set(answers)) == 3
    assert set(map(_without_likelihood, answers)) == {written("Ein Hund.")}
    assert _without_likelihood(written(None, (1.0, 2, 2))) == "[]"


def test_an_evaluation_without_rows_or_of_an_earlier_version_is_told_nothing_of():
    assert _commonest(np.array([], object), np.array([], object)) == {}
    assert tells_nothing_apart({"rows": 0, "commonest": {}}) == tells_nothing_apart({}) == []
