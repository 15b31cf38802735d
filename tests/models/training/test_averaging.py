"""The average of the weights against NumPy; it is what is measured, kept and resumed."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

from models.answers.label import Label
from models.evaluation.predict import predict
from models.evaluation.resampling import scores
from models.training import checkpoint
from models.training.averaging import WeightAverage
from models.training.gradient import train
from tests.models.training.memory import Rows, cut_off_after, finetuning, tokenizer
from tests.models.training.test_gradient import Killed, weights


def test_the_first_updates_count_alike_and_later_ones_by_the_decay() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(9, 2, 3)).astype(np.float32)
    variable = keras.Variable(values[0])
    average = WeightAverage([variable], decay=0.75)
    average.start()
    np.testing.assert_array_equal(average.variables[0].numpy(), values[0])
    for update, value in enumerate(values[1:], 1):
        variable.assign(value)
        average.add(update)
        found = average.variables[0].numpy()
        # The mean of the first four, of which each later update keeps three quarters.
        expected = values[1 : min(update, 4) + 1].astype(np.float64).mean(0)
        for later in values[5 : update + 1]:
            expected = 0.75 * expected + 0.25 * later
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_weights_are_put_back_also_when_the_measurement_is_broken_off() -> None:
    variable = keras.Variable(np.array([1.0, 2.0], np.float32))
    average = WeightAverage([variable], decay=0.5)
    average.start()
    variable.assign([3.0, 6.0])

    def measured() -> None:
        with average.in_place():
            np.testing.assert_array_equal(variable.numpy(), [1.0, 2.0])
            raise Killed

    with pytest.raises(Killed):
        measured()
    np.testing.assert_array_equal(variable.numpy(), [3.0, 6.0])


def test_the_average_is_selected_and_resumes_to_the_same_bits(tmp_path: Path) -> None:
    job = finetuning(
        rows={"train": Rows(40, 1), "dev": Rows(20, 2)},
        optimizer={"muon": {"peak_learning_rate": 3e-3, "warmup": 0.1}},
        average={"decay": 0.8},
        checkpoint_every=9,
    )
    whole = train(job, tmp_path / "whole")
    cut_off_after(9, tmp_path / "whole", tmp_path / "parts")
    parts = train(job, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    selection = whole.metrics["selection"]
    assert parts.metrics["selection"] == selection
    # What is written is what was measured.
    dev = job.rows["dev"]
    said = [answer.text for answer in predict(tmp_path / "whole", tokenizer(), dev)]
    score = scores(Label(), dev.answers, said, ["macro_f1"])["macro_f1"]
    assert score == pytest.approx(selection["value"])
    # The last update moved the average by a fifth of its distance to the weights.
    checkpoints = tmp_path / "whole" / "checkpoints"
    best = checkpoint.read(checkpoints, selection["step"], "best")
    before, after = (checkpoint.read(checkpoints, step) for step in (9, 10))
    for found in (best, before, after):
        assert isinstance(found, checkpoint.Checkpoint)
    count, moved = len(best.arrays), 0
    trained = [array for array in after.arrays if array.dtype == np.float32][:count]
    for weight, old, new in zip(
        trained, before.arrays[-count:], after.arrays[-count:], strict=True
    ):
        np.testing.assert_allclose(new, 0.8 * old + 0.2 * weight, rtol=1e-5, atol=1e-7)
        moved += int((weight != new).any())
    assert moved > count / 2
