"""The training loop: interrupted anywhere it ends with the same bits; it learns; it says no."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import ContractViolation, EnvironmentFault, Interrupted, RecipeError
from models.answers.label import Label
from models.evaluation.heldout import heldout_losses
from models.evaluation.predict import predict
from models.evaluation.resampling import scores
from models.training import checkpoint
from models.training.gradient import train
from models.training.job import TrainingJob
from models.training.stage import Budget, Phase
from tests.models.training.memory import (
    ONE_LAYER,
    Corpus,
    Recorder,
    Rows,
    cut_off_after,
    finetuning,
    pretraining,
    tokenizer,
)

STILL = {"dropout": 0.0}


class Killed(BaseException):
    """As `kill -9`: nothing is written any more."""


class KillingAt(Recorder):
    """A report in which the process dies after an update."""

    def __init__(self, step: int, how=Killed):
        super().__init__()
        self.step, self.how = step, how

    def progress(self, step, total, scalars):
        super().progress(step, total, scalars)
        if step == self.step:
            if self.how is Killed:
                raise Killed
            os.kill(os.getpid(), self.how)


def weights(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.safetensors"))
        if "checkpoints" not in path.parts
    }


def lasting(rows: list[dict]) -> list[dict]:
    """Rows without what a clock has a part in."""
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in rows]


@pytest.fixture(scope="module")
def general(tmp_path_factory) -> tuple[Path, list[dict], object]:
    folder, report = tmp_path_factory.mktemp("general"), Recorder()
    outcome = train(pretraining(), folder, report)
    return folder, report.rows, outcome


def test_a_stage_leaves_its_files_and_its_numbers(general):
    folder, rows, outcome = general
    assert {p.name for p in folder.iterdir()} == {
        "checkpoints",
        "config.json",
        "heads",
        "history.json",
        "metrics.json",
        "network.safetensors",
    }
    assert sorted(weights(folder)) == [
        "heads/masked_lm.safetensors",
        "heads/next_sentence.safetensors",
        "network.safetensors",
    ]
    config = json.loads((folder / "config.json").read_text())
    assert config["family"] == "bert"
    assert config["sequence_length"] == 32
    assert config["precision"] == "float32"
    assert config["tokenizer_digest"] == tokenizer().digest
    assert outcome.steps == 12
    assert outcome.tokens > 12 * 8 * 10
    assert outcome.passes["a"] > outcome.passes["b"] > 0
    assert [row["step"] for row in rows] == list(range(1, 13))
    assert {"loss", "masked_lm/loss", "next_sentence/accuracy", "learning_rate"} <= set(rows[0])
    names = set(load_file(folder / "network.safetensors"))
    assert "embeddings/token/embeddings" in names or any("token" in name for name in names)


def test_killed_again_and_again_it_ends_with_the_same_bits_and_logs_each_step_once(
    general, tmp_path
):
    folder, rows, _ = general
    logged: list[dict] = []
    for step in sorted(np.random.default_rng(11).choice(np.arange(1, 12), 3, replace=False)):
        report = KillingAt(int(step))
        with pytest.raises(Killed):
            train(pretraining(), tmp_path, report)
        logged += report.rows
    report = Recorder()
    train(pretraining(), tmp_path, report)
    assert weights(tmp_path) == weights(folder)
    assert lasting(logged + report.rows) == lasting(rows)
    assert (tmp_path / "config.json").read_bytes() == (folder / "config.json").read_bytes()


def test_sigterm_leaves_a_checkpoint_of_that_step_and_the_rest_is_bit_identical(general, tmp_path):
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    job = pretraining(checkpoint_every=100)
    with pytest.raises(Interrupted, match="stopped by SIGTERM at step 7 of 12") as caught:
        train(job, tmp_path, KillingAt(7, signal.SIGTERM))
    assert caught.value.exit_code == 143
    assert before == [signal.getsignal(number) for number in numbers]
    assert checkpoint.written_steps(tmp_path / "checkpoints") == [7]
    train(job, tmp_path)
    assert weights(tmp_path) == weights(general[0])


def test_a_damaged_checkpoint_gives_way_to_the_one_before(general, tmp_path):
    folder = shutil.copytree(general[0] / "checkpoints", tmp_path / "checkpoints")
    assert checkpoint.written_steps(folder) == [8, 12]
    path = folder / "step-000000012" / checkpoint.ARRAYS
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    report = Recorder()
    train(pretraining(), tmp_path, report)
    assert weights(tmp_path) == weights(general[0])
    assert report.calls == 4
    assert not report.rows  # they were handed on before


@pytest.mark.usefixtures("untraced")
def test_a_checkpoint_that_is_the_newest_already_is_not_written_again(
    general, tmp_path, monkeypatch
):
    written, write = [], checkpoint.write

    def counted(folder, step, *args, series="step", **more):
        written.append((series, step))
        return write(folder, step, *args, series=series, **more)

    monkeypatch.setattr(checkpoint, "write", counted)
    train(pretraining(phases=[Phase(16)], checkpoint_every=6), tmp_path / "general")
    train(finetuning(general[0]), tmp_path / "finetune")  # evaluated after its last update
    steps = [step for series, step in written if series == "step"]
    assert steps[:2] == [6, 12]
    assert len(steps) > 2
    assert len(set(steps[2:])) == len(steps[2:])


def test_a_deadline_and_ctrl_c_stop_with_a_checkpoint(tmp_path):
    job = pretraining(deadline_seconds=0.0, phases=[Phase(16)])
    with pytest.raises(Interrupted, match="the deadline at step 1 of 12") as caught:
        train(job, tmp_path)
    assert caught.value.exit_code == 1
    assert checkpoint.written_steps(tmp_path / "checkpoints") == [1]
    with pytest.raises(Interrupted, match="SIGINT at step 3") as caught:
        train(pretraining(phases=[Phase(16)]), tmp_path, KillingAt(3, signal.SIGINT))
    assert caught.value.exit_code == 130
    assert checkpoint.written_steps(tmp_path / "checkpoints") == [1, 3]


def test_files_that_take_more_than_is_left_stop_it_with_a_checkpoint(tmp_path):
    with pytest.raises(Interrupted, match=r"limits.disk_gb \(0.0 MB were left.* at step 4 of 12"):
        train(pretraining(most_bytes=1000.0, phases=[Phase(16)]), tmp_path)
    assert checkpoint.written_steps(tmp_path / "checkpoints")[-1] == 4
    train(pretraining(most_bytes=1e9, phases=[Phase(16)]), tmp_path)


def accumulating(initial: Path) -> TrainingJob:
    return finetuning(initial, micro_batches=2, checkpoint_every=20)


@pytest.fixture(scope="module")
def finetuned(general, tmp_path_factory) -> tuple[Path, object]:
    folder = tmp_path_factory.mktemp("finetune")
    return folder, train(accumulating(general[0]), folder)


def test_a_finetune_stage_with_accumulation_resumes_to_the_same_bits(general, finetuned, tmp_path):
    # Between two evaluations; in `test_wide.py` it dies before the first.
    cut_off_after(20, finetuned[0], tmp_path)
    outcome = train(accumulating(general[0]), tmp_path)
    assert weights(tmp_path) == weights(finetuned[0])
    assert outcome.metrics["selection"] == finetuned[1].metrics["selection"]


def test_the_kept_weights_are_those_of_the_best_evaluation(finetuned):
    folder, outcome = finetuned
    selection = outcome.metrics["selection"]
    dev = finetuning().rows["dev"]
    found = predict(folder, tokenizer(), dev)
    said = [answer.text for answer in found]
    score = scores(Label(), dev.answers, said, ["macro_f1"])["macro_f1"]
    assert score == pytest.approx(selection["value"])
    assert selection["value"] == max(row["macro_f1"] for row in selection["evaluations"])
    sums = [sum(answer.details.values()) for answer in found]
    np.testing.assert_allclose(sums, 1.0, rtol=1e-5)


def test_weights_are_selected_at_the_longest_length_as_they_are_measured_later(tmp_path):
    job = pretraining(
        phases=[Phase(32, 0.5), Phase(16, 0.5)],
        objectives={"masked_lm": {}},
        budget=Budget("steps", 2),
        select={"metric": "heldout_loss", "split": "heldout"},
    )
    selected = train(job, tmp_path).metrics["selection"]["value"]
    later = heldout_losses(tmp_path, tokenizer(), {"a": Corpus(10, 3)}, objective="masked_lm")
    assert selected == pytest.approx(later["a"]["loss"], rel=1e-6)


def test_heads_that_a_stage_has_no_use_for_are_handed_on(general, finetuned):
    handed, own = weights(finetuned[0]), weights(general[0])
    for name in ("heads/masked_lm.safetensors", "heads/next_sentence.safetensors"):
        assert handed[name] == own[name]
    losses = heldout_losses(finetuned[0], tokenizer(), {"a": Corpus(10, 3)}, objective="masked_lm")
    assert losses["a"]["loss"] > 0


def test_patience_stops_early(general, tmp_path):
    job = pretraining(
        kind="task",
        initial=general[0],
        phases=[Phase(32)],
        objectives={"masked_lm": {}},
        budget=Budget("steps", 100),
        optimizer={"adamw": {"peak_learning_rate": 1e-12, "warmup": 0.0}},
        stop={"patience": 2, "metric": None},
    )
    outcome = train(job, tmp_path)
    selection = outcome.metrics["selection"]
    assert selection["stopped_early"]
    evaluated = [row["step"] for row in selection["evaluations"]]
    assert evaluated == list(range(10, outcome.steps + 1, 10))
    assert outcome.steps == selection["step"] + 20 < 100  # two evaluations that were no better
    assert selection["value"] == min(row["heldout_loss"] for row in selection["evaluations"])


def test_it_learns(tmp_path):
    job = pretraining(
        budget=Budget("steps", 250),
        phases=[Phase(32)],
        objectives={"masked_lm": {}},
        batch_size=16,
        network=ONE_LAYER | STILL,
        corpora={"a": (Corpus(300, 1), 1.0)},
        optimizer={"adamw": {"peak_learning_rate": 1e-2, "warmup": 0.1, "beta_2": 0.98}},
    )
    outcome = train(job, tmp_path)
    assert outcome.steps == 250
    heldout = heldout_losses(tmp_path, tokenizer(), {"a": Corpus(10, 3)}, objective="masked_lm")[
        "a"
    ]
    assert heldout["loss"] < np.log(205) - 0.5  # a random network's is about the logarithm of V


@pytest.mark.parametrize(
    ("family", "objectives", "divided"),
    [
        ("bert", {"masked_lm": {}, "next_sentence": {}}, (2, 4)),
        # A loss that is the sum of two means: some parts have no pair to classify.
        ("unilm", {"unified_lm": {}}, (4,)),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, dict) else None,
)
def test_parts_of_a_batch_add_up_to_the_batch(tmp_path, family, objectives, divided):
    """However uneven: windows with separators have fewer positions to predict, NSP one a row."""
    outcomes = []
    for parts in (1, *divided):
        job = pretraining(
            family=family,
            objectives=objectives,
            micro_batches=parts,
            network=ONE_LAYER | STILL,
            phases=[Phase(32)],
            budget=Budget("steps", 6),
        )
        report = Recorder()
        outcome = train(job, tmp_path / str(parts), report)
        outcomes.append((outcome, report.rows))
    for outcome, rows in outcomes[1:]:
        assert outcome.steps == 6
        assert outcome.tokens == outcomes[0][0].tokens
        for row, whole in zip(rows, outcomes[0][1], strict=True):
            assert row["loss"] == pytest.approx(whole["loss"], rel=1e-5)
            assert row["gradient_norm"] == pytest.approx(whole["gradient_norm"], rel=1e-3)


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    job = pretraining(
        phases=[Phase(32)],
        checkpoint_every=1,
        budget=Budget("steps", 50),
        optimizer={"adamw": {"peak_learning_rate": 1e30, "warmup": 0.9, "clip_norm": 0.0}},
    )
    with pytest.raises(EnvironmentFault, match="expected finite numbers; the checkpoint of step"):
        train(job, tmp_path)
    found = checkpoint.newest(tmp_path / "checkpoints")
    assert found is not None
    assert all(np.isfinite(array).all() for array in found.arrays)
    assert not (tmp_path / "network.safetensors").exists()


def test_a_last_update_that_ruins_the_weights_is_no_finished_stage(tmp_path):
    job = pretraining(
        phases=[Phase(32)],
        budget=Budget("steps", 1),
        optimizer={"adamw": {"peak_learning_rate": 1e40, "warmup": 0.0}},
    )
    with pytest.raises(EnvironmentFault, match=r"not finite at step 1, .*; no checkpoint was due"):
        train(job, tmp_path)
    assert not (tmp_path / "network.safetensors").exists()


def test_python_and_numpy_draw_on_as_if_nothing_had_been_trained(tmp_path):
    import random

    random.seed(3)
    np.random.seed(3)
    expected = random.Random(3).random()
    train(pretraining(budget=Budget("steps", 1), phases=[Phase(16)]), tmp_path)
    assert random.random() == expected
    assert np.random.random() == np.random.RandomState(3).random_sample()


@pytest.mark.parametrize(
    ("job", "error", "message"),
    [
        (lambda: pretraining(phases=[Phase(64)]), RecipeError, "64 tokens, but .* ends at 32"),
        (
            lambda: pretraining(corpora={"a": (Corpus(1), 1.0)}, objectives={"masked_lm": {}}),
            ContractViolation,
            "fewer than",
        ),
        (lambda: pretraining(micro_batches=3), RecipeError, "8 rows cannot be split into 3"),
        (lambda: pretraining(corpora={}), RecipeError, "no corpora"),
        (lambda: finetuning(rows={"dev": Rows(9)}), ContractViolation, "no training rows"),
        (lambda: finetuning(rows={"train": Rows(50)}), RecipeError, "has no dev rows"),
        (
            lambda: finetuning(select={"metric": "micro_f2"}),
            RecipeError,
            "expected one of accuracy",
        ),
        (lambda: pretraining(budget=Budget("tokens", 3)), RecipeError, "less than one update"),
    ],
)
def test_what_cannot_be_trained_is_refused(job, error, message, tmp_path):
    with pytest.raises(error, match=message):
        train(job(), tmp_path)
