"""TransE's loss and its descent, against the equations triple by triple."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import RecipeError, UnknownNameError
from models.vectors.tables import Table
from models.vectors.translation import (
    DISTANCES,
    Translation,
    TripleSums,
    compare,
    corrupted,
    lengths,
    slopes,
    unit,
)

ENTITIES, RELATIONS, WIDTH = 9, 2, 5


def made(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table whose entities have the length 1, triples, and corrupted ones."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(ENTITIES + RELATIONS, WIDTH))
    table[:ENTITIES] = unit(table[:ENTITIES])
    ends = rng.integers(0, ENTITIES, (12, 2))
    true = np.stack([ends[:, 0], ENTITIES + rng.integers(0, RELATIONS, 12), ends[:, 1]], axis=1)
    return table, true, corrupted(true, np.arange(ENTITIES), rng)


def one_by_one(table: np.ndarray, true: np.ndarray, false: np.ndarray, settings: Translation):
    """The sum of all losses, as the paper writes it."""
    order = 1 if settings.distance == "l1" else 2

    def apart(h: int, r: int, t: int) -> float:
        return float(np.linalg.norm(table[h] + table[r] - table[t], ord=order))

    return sum(
        max(0.0, settings.margin + apart(*one) - apart(*other))
        for one, other in zip(true.tolist(), false.tolist(), strict=True)
    )


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_loss_is_the_papers(distance):
    table, true, false = made()
    settings = Translation(1.5, distance, 0.01)
    score = compare(Table(table), true, false, settings, 0.0)
    assert score.loss == pytest.approx(one_by_one(table, true, false, settings), rel=1e-12)
    assert score.triples == len(true)
    assert 0 <= score.right <= score.triples


@pytest.mark.parametrize("distance", DISTANCES)
def test_an_update_goes_down_the_gradient_and_gives_entities_the_length_one(distance):
    table, true, false = made(1)
    settings = Translation(1.5, distance, 0.01)
    gradient, step = np.empty_like(table), 1e-6
    for place in np.ndindex(table.shape):
        losses = []
        for sign in (1, -1):
            moved = table.copy()
            moved[place] += sign * step
            losses.append(one_by_one(moved, true, false, settings))
        gradient[place] = (losses[0] - losses[1]) / (2 * step)
    expected = table - 0.01 * gradient
    touched = np.unique(np.concatenate([true, false])[:, [0, 2]])
    expected[touched] = unit(expected[touched])
    trained = Table(table.copy())
    compare(trained, true, false, settings, 0.01)
    assert np.abs(trained.array - expected).max() < 1e-7
    assert np.linalg.norm(trained.array[:ENTITIES], axis=1) == pytest.approx(1.0)


def test_triples_beyond_the_margin_move_nothing():
    table, true, false = made(2)
    near = np.linalg.norm(table[true[:, 0]] + table[true[:, 1]] - table[true[:, 2]], axis=1)
    far = np.linalg.norm(table[false[:, 0]] + table[false[:, 1]] - table[false[:, 2]], axis=1)
    done = near + 0.1 < far
    assert done.any()
    trained = Table(table.copy())
    score = compare(trained, true[done], false[done], Translation(0.1, "l2", 0.01), 0.01)
    assert score == TripleSums(0.0, float(done.sum()), float(done.sum()))
    assert (trained.array == table).all()  # also where no triple of a batch is wrong


def test_a_head_or_a_tail_is_corrupted_and_not_both():
    rng = np.random.default_rng(3)
    true = np.tile([[1, 90, 2]], (4000, 1))
    entities = np.arange(10, 60)
    false = corrupted(true, entities, rng)
    changed = false != true
    assert (changed.sum(axis=1) == 1).all()
    assert not changed[:, 1].any()
    assert 0.45 < changed[:, 0].mean() < 0.55
    drawn = np.bincount(false[changed], minlength=60)[10:]
    assert drawn.sum() == 4000
    assert 40 < drawn.min() <= drawn.max() < 130  # 80 each, ± 4.5 standard deviations


def test_slopes_are_zero_where_nothing_is_apart():
    for distance in DISTANCES:
        assert not slopes(np.zeros((2, 3)), distance).any()
        assert not lengths(np.zeros((2, 3)), distance).any()


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ((0.0, "l1", 0.01), RecipeError, "objectives.transe.margin: expected a number above 0"),
        ((1.0, "l1", -1.0), RecipeError, "objectives.transe.learning_rate"),
        ((1.0, "l3", 0.01), UnknownNameError, "'l3' is not a distance"),
    ],
)
def test_settings_out_of_range_are_refused(settings, error, told):
    with pytest.raises(error, match=told):
        Translation(*settings).check("objectives.transe")
