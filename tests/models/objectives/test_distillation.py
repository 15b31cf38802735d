"""Distillation: its slots by hand in two languages, its losses in NumPy, where a student starts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError, UnknownNameError
from models import catalogue
from models.objectives.distillation import Distillation, layers_taken
from models.objectives.masked_lm import MaskedLM
from models.training.assembly import build_objectives
from models.weights import load_weights, named_weights
from tests.conformance.parts import CONTEXT, Stage, network, save, stage
from tests.models.objectives.twelve_tokens import VOCABULARY, ids, row
from tests.models.scripted_chance import ScriptedChance


def random_stage(seed: int, **changes: Any) -> Stage:
    """BERT with masked_lm, all weights random."""
    made = stage("bert", ("masked_lm",), None, seed=seed, **changes)
    rng = np.random.default_rng(seed)
    for layer in (made.network, made.scorers["masked_lm"]):
        named = named_weights(layer)
        load_weights(layer, {n: rng.normal(0, 0.1, v.shape).astype("f4") for n, v in named.items()})
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save(random_stage(1, num_layers=5), "bert", tmp_path_factory.mktemp("teacher"))


def numbers(value: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(value).astype("f8")


@pytest.mark.parametrize(
    "tokens",
    [
        "[CLS] un ##believ ##able news from new york city to ##day [SEP]".split(),
        ["[CLS]", *"我爱北京天安门和长城", "[SEP]"],
    ],
)
def test_slots_by_hand(folder, tokens):
    batch = row(tokens)
    batch["padding_mask"][0, 10:] = 0
    hidden = [4, 6]
    masked = batch | {
        "mask_positions": np.array([[*hidden, 0]], np.int32),
        "mask_labels": np.array([[*ids([tokens[i] for i in hidden]), 0]], np.int32),
        "mask_weights": np.array([[1.0, 1.0, 0.0]], np.float32),
    }
    masked["token_ids"][0, hidden] = VOCABULARY.index("[MASK]")
    real = Distillation(CONTEXT, teacher=str(folder)).examples(masked, ScriptedChance())
    assert real["mask_positions"].tolist() == [[4, 6, 0, *range(12)]]
    assert real["mask_weights"].tolist() == [[1, 1, 0] + [0] * 12], "masked_lm counts its own"
    assert real["distilled_slots"].tolist() == [list(range(3, 15))]
    assert real["distilled_weights"].tolist() == [[1.0] * 10 + [0.0] * 2], "no padding"
    assert (real["token_ids"] == masked["token_ids"]).all()
    chosen = Distillation(CONTEXT, teacher=str(folder), loss_on="masked")
    result = chosen.examples(masked, ScriptedChance())
    assert result["mask_positions"].tolist() == [[4, 6, 0]]
    assert result["distilled_slots"].tolist() == [[0, 1, 2]]
    assert result["distilled_weights"].tolist() == [[1.0, 1.0, 0.0]]


@pytest.mark.parametrize("loss_on", ["real", "masked"])
def test_the_losses_are_their_equations(folder, loss_on):
    student, teacher = random_stage(2), random_stage(1, num_layers=5)
    objective = Distillation(CONTEXT, teacher=str(folder), loss_on=loss_on, temperature=3.0)
    batch = objective.examples(student.batch, np.random.default_rng(0))
    outputs = dict(student.network(batch))
    _, predicted = student.scorers["masked_lm"](batch, outputs)
    scorer = objective.attach(student.network)
    scores, own = scorer(batch, outputs | predicted, training=True)
    assert not own

    taught = teacher.network(batch)
    _, theirs = teacher.scorers["masked_lm"](batch, taught)
    slots = batch["distilled_slots"]
    at = np.arange(len(slots))[:, None]

    def softened(logits: Any) -> np.ndarray:
        p = np.exp(numbers(logits)[at, slots] / 3.0)
        return p / p.sum(-1, keepdims=True)

    p, q = softened(theirs["token_logits"]), softened(predicted["token_logits"])
    weights = batch["distilled_weights"]
    soft = ((p * np.log(p / q)).sum(-1) * weights).sum() * 9.0
    assert soft > 0.01
    assert float(scores["soft_loss"][0]) == pytest.approx(soft, rel=1e-4)
    assert float(scores["soft_loss"][1]) == weights.sum()
    a, b = numbers(outputs["sequence_output"]), numbers(taught["sequence_output"])
    cosine = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    real = batch["padding_mask"]
    apart = ((1 - cosine) * real).sum()
    assert float(scores["cosine_loss"][0]) == pytest.approx(apart, rel=1e-4)
    total = float(scores["loss"][0]) / float(scores["loss"][1])
    assert total == pytest.approx(5 * soft / weights.sum() + apart / real.sum(), rel=1e-4)


def test_a_student_that_is_its_teacher_has_nothing_to_learn(folder):
    same = random_stage(1, num_layers=5)
    objective = Distillation(CONTEXT, teacher=str(folder))
    batch = objective.examples(same.batch, np.random.default_rng(0))
    outputs = dict(same.network(batch))
    _, predicted = same.scorers["masked_lm"](batch, outputs)
    scores, _ = objective.attach(same.network)(batch, outputs | predicted)
    assert abs(float(scores["loss"][0]) / float(scores["loss"][1])) < 1e-5


def test_the_teacher_is_still_and_out_of_the_students_weights(folder):
    import tensorflow as tf

    student = random_stage(2, dropout=0.5)
    objective = Distillation(CONTEXT, teacher=str(folder), cosine_weight=0.0)
    batch = objective.examples(student.batch, np.random.default_rng(0))
    scorer = objective.attach(student.network)
    assert not scorer.variables
    outputs = dict(student.network(batch))
    _, predicted = student.scorers["masked_lm"](batch, outputs)
    with tf.GradientTape() as tape:
        for variable in scorer._teacher().trainable_variables:
            tape.watch(variable.value)
        # The teacher's folder says dropout 0.1; in training it would give another loss each time.
        losses = [
            float(scorer(batch, outputs | predicted, training=True)[0]["loss"][0]) for _ in "ab"
        ]
        found = scorer(batch, outputs | predicted, training=True)[0]["loss"][0]
    assert losses[0] == losses[1]
    theirs = [variable.value for variable in scorer._teacher().trainable_variables]
    assert all(gradient is None for gradient in tape.gradient(found, theirs))


def test_of_twelve_blocks_a_student_of_six_takes_those_of_the_paper():
    assert layers_taken(6, 12) == [0, 2, 4, 7, 9, 11]
    assert layers_taken(2, 5) == [0, 4]
    assert layers_taken(1, 5) == [0]


def test_a_student_starts_from_alternate_blocks_and_the_head(folder):
    teacher, student = random_stage(1, num_layers=5), random_stage(2)
    objective = Distillation(CONTEXT, teacher=str(folder))
    objective.initialise(student.network, student.scorers)
    theirs = named_weights(teacher.network)
    for name, variable in named_weights(student.network).items():
        assert np.array_equal(variable, theirs[name.replace("block_1/", "block_4/")]), name
    head = named_weights(teacher.scorers["masked_lm"])
    for name, variable in named_weights(student.scorers["masked_lm"]).items():
        assert np.array_equal(variable, head[name])


def test_a_teacher_that_does_not_fit_is_refused(folder, tmp_path):
    objective = Distillation(CONTEXT, teacher=str(folder))
    narrow = type(network("bert"))(
        vocabulary_size=120, num_layers=2, hidden_dim=64, num_heads=2, intermediate_dim=128
    )
    with pytest.raises(RecipeError, match="widths 128 and 64"):
        objective.attach(narrow)
    with pytest.raises(RecipeError, match="give the student the teacher's width"):
        objective.initialise(narrow, {})
    with pytest.raises(RecipeError, match="expected the folder of a finished stage"):
        Distillation(CONTEXT, teacher=str(tmp_path)).attach(narrow)
    with pytest.raises(RecipeError, match="temperature"):
        Distillation(CONTEXT, teacher=str(folder), temperature=0.0)
    with pytest.raises(UnknownNameError, match="loss_on"):
        Distillation(CONTEXT, teacher=str(folder), loss_on="all")


def test_a_teacher_may_be_of_a_family_of_ones_own(tmp_path):
    for name in ("families", "teacher"):
        (tmp_path / name).mkdir()
    shutil.copyfile(catalogue.file_of("families", "bert"), tmp_path / "families" / "own.py")
    taught_by = save(random_stage(1), "own", tmp_path / "teacher")
    context = replace(CONTEXT, folders=(tmp_path,))
    scorer = Distillation(context, teacher=str(taught_by)).attach(random_stage(2).network)
    assert scorer._teacher().hidden_dim == 128
    with pytest.raises(UnknownNameError, match="'own' is not a family"):
        Distillation(CONTEXT, teacher=str(taught_by)).attach(random_stage(2).network)


def test_it_comes_after_masked_lm_whatever_the_order_of_names(folder):
    settings = {"distillation": {"teacher": str(folder)}, "masked_lm": {}, "next_sentence": {}}
    made = build_objectives(settings, None, CONTEXT)
    assert list(made) == ["masked_lm", "next_sentence", "distillation"]
    assert isinstance(made["masked_lm"], MaskedLM)
