"""The stage's loss and metrics against numbers done by hand."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models.training.stage_model import Means, StageModel, total_loss


class CountingNetwork(keras.layers.Layer):
    """Gives back the batch's x, and counts its calls."""

    calls = 0

    def call(self, features, training=False):
        type(self).calls += 1
        return {"x": features["x"]}


class WeightedMean(keras.layers.Layer):
    """Scores x by a weight; adds what it saw to its predictions."""

    def __init__(self, label: str, sees: str | None = None, change: float = 0.0):
        super().__init__(name=label)
        self.label, self.sees, self.change = label, sees, change
        self.built = True

    def prepare(self, batch, training):
        return batch | {"x": batch["x"] + self.change}

    def call(self, batch, outputs, training=False):
        x = outputs["x"] if self.sees is None else outputs[self.sees]
        weight = batch[f"{self.label}_weights"]
        scores = {"loss": (keras.ops.sum(x * weight), keras.ops.sum(weight))}
        return scores, {f"{self.label}_doubled": 2.0 * x}


def stage(**kwargs) -> StageModel:
    model = StageModel(CountingNetwork(dtype="float32"), **kwargs)
    model.ready()
    return model


def batch(x, first, second) -> dict[str, np.ndarray]:
    return {
        "x": np.array(x, np.float32),
        "first_weights": np.array(first, np.float32),
        "second_weights": np.array(second, np.float32),
    }


def test_the_loss_is_the_weighted_sum_of_sum_over_weight():
    model = stage(
        scorers={"first": WeightedMean("first"), "second": WeightedMean("second")},
        factors={"second": 0.5},
    )
    scores = model(batch([1, 2, 6], [1, 1, 0], [0, 0, 2]))
    # first: (1 + 2) / 2 = 1.5; second: 12 / 2 = 6, times a half
    assert float(model.compute_loss(y_pred=scores)) == pytest.approx(1.5 + 3.0)


def test_an_objective_with_nothing_to_score_adds_nothing():
    model = stage(scorers={"first": WeightedMean("first"), "second": WeightedMean("second")})
    scores = model(batch([1, 2, 6], [1, 1, 0], [0, 0, 0]))
    assert float(model.compute_loss(y_pred=scores)) == pytest.approx(1.5)


def test_the_network_runs_once_and_scorers_see_what_others_predicted():
    CountingNetwork.calls = 0
    model = stage(
        scorers={
            "first": WeightedMean("first", change=1.0),
            "second": WeightedMean("second", sees="first_doubled"),
        }
    )
    scores, predicted = model.outputs(batch([1, 2], [1, 0], [1, 1]))
    assert CountingNetwork.calls == 1
    assert float(scores["first"]["loss"][0]) == 2.0  # prepared: 1 + 1
    assert float(scores["second"]["loss"][0]) == 4.0 + 6.0
    np.testing.assert_array_equal(predicted["second_doubled"], [8.0, 12.0])


def test_means_over_uneven_batches_are_exact():
    model = stage(scorers={"first": WeightedMean("first"), "second": WeightedMean("second")})
    means = Means()
    for x, first in (([1, 2, 3], [1, 1, 1]), ([10, 20, 30], [1, 0, 0])):
        made = batch(x, first, [1, 1, 1])
        model.trace_for(made, lengths_vary=False)
        means.add(model.test_on_batch(made, return_dict=True))
    found = means.result()
    assert found["first/loss"] == pytest.approx((1 + 2 + 3 + 10) / 4)  # and not (2 + 10) / 2
    assert found["second/loss"] == pytest.approx(66 / 6)
    assert total_loss(found, {"first": 1.0, "second": 2.0}) == pytest.approx(4 + 22)


def test_means_go_on_where_they_stood():
    means, other = Means(), Means()
    means.add({"a/loss/sum": 3.0, "a/loss/weight": 2.0})
    other.restore(means.state())
    other.add({"a/loss/sum": 1.0, "a/loss/weight": 2.0})
    assert other.result() == {"a/loss": 1.0}
    assert means.result() == {"a/loss": 1.5}
