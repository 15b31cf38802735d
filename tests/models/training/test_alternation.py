"""Objectives that take turns: what each update trains, counted, reported and resumed exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.evaluation.heldout import heldout_losses
from models.training.gradient import train
from models.training.job import TrainingJob
from models.training.stage import Budget, Phase
from tests.models.training.memory import NETWORK, Corpus, Recorder, pretraining, tokenizer
from tests.models.training.test_gradient import Killed, KillingAt, lasting, weights

TASKS = NETWORK | {"num_tasks": 6, "num_layers": 1}
TWO: dict[str, Any] = {"masked_lm": {}, "token_document": {}}
THREE: dict[str, Any] = {"capitalization": {}, "masked_lm": {}, "sentence_distance": {}}
SIX: dict[str, Any] = {
    **THREE,
    **{"sentence_reordering": {}, "sentence_structure": {}, "token_document": {}},
}


class CasedCorpus(Corpus):
    """Each word has case; a third of the vocabulary is written with a capital."""

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ids, lengths, _ = super().document(i)
        return ids, lengths, np.where(ids % 3, 1 + 8, 1 + 8 + 16).astype(np.uint8)


def alternating(**changes: Any) -> TrainingJob:
    settings: dict[str, Any] = {
        "family": "ernie",
        "network": TASKS,
        "objectives": THREE,
        "alternate": True,
        "corpora": {"a": (CasedCorpus(60, 1), 1.0)},
        "budget": Budget("steps", 9),
        "phases": [Phase(16, 1 / 3), Phase(32, 2 / 3)],
    }
    return pretraining(**(settings | changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, list[dict], Any]:
    folder, report = tmp_path_factory.mktemp("alternating"), Recorder()
    outcome = train(alternating(), folder, report)
    return folder, report.rows, outcome


def test_updates_of_each_task_and_phase_are_reported(finished):
    folder, rows, outcome = finished
    expected = [dict.fromkeys(THREE, 1), dict.fromkeys(THREE, 2)]
    assert list(outcome.turns) == outcome.metrics["turns"] == expected
    assert json.loads((folder / "metrics.json").read_text())["turns"] == expected
    assert {name: rows[-1][f"{name}/updates"] for name in THREE} == dict.fromkeys(THREE, 3.0)
    config = json.loads((folder / "config.json").read_text())
    assert config["tasks"] == {name: number for number, name in enumerate(THREE)}
    assert outcome.passes["a"] > 0


def test_a_row_has_the_losses_of_the_turn_and_no_other(finished):
    _, rows, _ = finished
    assert [row["step"] for row in rows] == list(range(1, 10))
    for row in rows:
        (told,) = [name for name in THREE if f"{name}/loss" in row]
        assert row["loss"] == row[f"{told}/loss"], "an absent loss is not averaged in as 0"
        assert told == list(THREE)[(row["step"] - 1) % 3]


def test_a_row_of_several_updates_has_the_mean_of_their_losses(tmp_path):
    job = {"phases": [Phase(16)], "objectives": TWO, "network": TASKS | {"dropout": 0.0}}
    report = Recorder()
    train(alternating(**job, budget=Budget("steps", 300), batch_size=4), tmp_path, report)
    for row in report.rows:  # of three updates each
        turns = (row["step"] // 3) % 2
        counts = {"masked_lm": 2 - (turns == 0), "token_document": 1 + (turns == 0)}
        mean = sum(counts[name] * row[f"{name}/loss"] for name in TWO) / 3
        assert row["loss"] == pytest.approx(mean, rel=1e-9)


def test_killed_again_and_again_it_ends_with_the_same_bits(finished, tmp_path):
    folder, rows, _ = finished
    logged: list[dict] = []
    for step in (2, 7):
        report = KillingAt(step)
        with pytest.raises(Killed):
            train(alternating(), tmp_path, report)
        logged += report.rows
    report = Recorder()
    outcome = train(alternating(), tmp_path, report)
    assert weights(tmp_path) == weights(folder)
    assert lasting(logged + report.rows) == lasting(rows)
    assert outcome.metrics == finished[2].metrics | {"last": outcome.metrics["last"]}
    assert (tmp_path / "config.json").read_bytes() == (folder / "config.json").read_bytes()


@pytest.mark.usefixtures("untraced")
def test_heads_that_are_not_on_turn_stay_as_they_are(finished, tmp_path):
    # Weight decay and what Adam remembers would move them, if 0 counted as their gradient.
    updates = 2
    job = alternating(initial=finished[0], budget=Budget("steps", updates), phases=[Phase(16)])
    train(job, tmp_path)
    before, after = weights(finished[0]), weights(tmp_path)
    for number, name in enumerate(THREE):
        changed = before[f"heads/{name}.safetensors"] != after[f"heads/{name}.safetensors"]
        assert changed == (number < updates), name
    assert before["network.safetensors"] != after["network.safetensors"]


def test_weights_are_shares_of_the_updates_and_riders_keep_theirs_as_factors(tmp_path):
    objectives = TWO | {"span_boundary": {}}
    objectives["masked_lm"] = {"unit": "span"}
    shares = {"masked_lm": 3.0, "token_document": 1.0, "span_boundary": 0.5}
    report = Recorder()
    job = alternating(
        objectives=objectives, weights=shares, budget=Budget("steps", 8), phases=[Phase(16)]
    )
    outcome = train(job, tmp_path, report)
    assert outcome.metrics["turns"] == [{"masked_lm": 6, "token_document": 2}]
    for row in report.rows:
        assert ("masked_lm/loss" in row) == ("span_boundary/loss" in row)
        if "masked_lm/loss" in row:
            total = row["masked_lm/loss"] + 0.5 * row["span_boundary/loss"]
            assert row["loss"] == pytest.approx(total, rel=1e-9)
        else:
            assert row["loss"] == row["token_document/loss"]


def test_parts_of_a_batch_add_up_to_the_batch(tmp_path):
    told = []
    for parts in (1, 4):
        report = Recorder()
        job = alternating(micro_batches=parts, network=TASKS | {"dropout": 0.0}, phases=[Phase(16)])
        train(job, tmp_path / str(parts), report)
        told.append(report.rows)
    for row, whole in zip(told[1], told[0], strict=True):
        assert row["loss"] == pytest.approx(whole["loss"], rel=1e-4)
        assert row["gradient_norm"] == pytest.approx(whole["gradient_norm"], rel=1e-3)


@pytest.mark.usefixtures("untraced")
def test_three_continual_stages_each_with_more_tasks(tmp_path):
    # ERNIE 2.0's schedule: a new task joins those before it, and all go on.
    stages = [
        {"masked_lm": {}},
        {"masked_lm": {}, "capitalization": {}, "token_document": {}},
        SIX,
    ]
    before: Path | None = None
    for number, objectives in enumerate(stages):
        folder = tmp_path / str(number)
        outcome = train(
            alternating(
                objectives=objectives,
                initial=before,
                budget=Budget("steps", 2 * len(objectives)),
                phases=[Phase(16)],
            ),
            folder,
        )
        assert outcome.metrics["turns"] == [dict.fromkeys(objectives, 2)]
        before = folder
    config = json.loads((tmp_path / "2" / "config.json").read_text())
    assert config["tasks"] == {
        "masked_lm": 0,  # each keeps the number under which it was first learned
        "capitalization": 1,
        "token_document": 2,
        "sentence_distance": 3,
        "sentence_reordering": 4,
        "sentence_structure": 5,
    }
    # A stage after them goes on under the task's own number, though nothing alternates there.
    job = alternating(
        objectives={"token_document": {}}, alternate=False, initial=before, phases=[Phase(16)]
    )
    train(job, tmp_path / "after")
    assert json.loads((tmp_path / "after" / "config.json").read_text())["tasks"] == config["tasks"]


def test_held_out_text_is_measured_as_the_task_that_was_trained(finished, tmp_path):
    folder, _, _ = finished
    heldout = {"a": CasedCorpus(20, 3)}
    right = heldout_losses(folder, tokenizer(), heldout, objective="masked_lm")["a"]["loss"]
    for path in folder.rglob("*.safetensors"):
        if "checkpoints" not in path.parts:
            target = tmp_path / path.relative_to(folder)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"tasks": {}}))
    assert (
        heldout_losses(tmp_path, tokenizer(), heldout, objective="masked_lm")["a"]["loss"] != right
    )


@pytest.mark.slow
def test_it_learns_every_task(tmp_path):
    job = alternating(
        objectives=SIX,
        budget=Budget("steps", 2400),
        precision="float32",
        phases=[Phase(32)],
        batch_size=16,
        network=TASKS | {"dropout": 0.0},
        corpora={"a": (CasedCorpus(60, 1), 1.0)},
        optimizer={"adamw": {"peak_learning_rate": 5e-3, "warmup": 0.1, "beta_2": 0.98}},
    )
    report = Recorder()
    train(job, tmp_path, report)
    for name in SIX:
        losses = [row[f"{name}/loss"] for row in report.rows if f"{name}/loss" in row]
        assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.1, name


def test_what_cannot_alternate_is_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"3 tasks .* but the table of tasks .* has 2 rows"):
        train(alternating(network=TASKS | {"num_tasks": 2}), tmp_path)


BACKENDS = """
import json, sys
from pathlib import Path
from models.training.gradient import train
from tests.models.training.memory import Recorder
from tests.models.training.test_alternation import TASKS, alternating
report = Recorder()
job = alternating(network=TASKS | {"dropout": 0.0}, initial=Path(sys.argv[1]))
train(job, Path(sys.argv[2]), report)
print(json.dumps([row["loss"] for row in report.rows]))
"""


@pytest.mark.slow
def test_on_tensorflow_and_on_jax_losses_are_equal(finished, tmp_path):
    losses = {}
    for backend in ("tensorflow", "jax"):
        ran = subprocess.run(
            [sys.executable, "-c", BACKENDS, str(finished[0]), str(tmp_path / backend)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"KERAS_BACKEND": backend},
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        losses[backend] = json.loads(ran.stdout.splitlines()[-1])
    np.testing.assert_allclose(losses["jax"], losses["tensorflow"], rtol=1e-4)
