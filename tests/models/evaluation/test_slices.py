"""Which rows are scored apart."""

from __future__ import annotations

import numpy as np
import pytest

from models.evaluation.slices import SMALLEST, slices_of


def test_thirds_by_length_are_all_rows_once_and_the_short_are_shorter():
    lengths = np.random.default_rng(0).permutation(100)
    found = slices_of(["length"], lengths, np.array(["a"] * 100), ["a"])
    assert list(found) == ["length/short", "length/middle", "length/long"]
    assert sorted(np.concatenate(list(found.values()))) == list(range(100))
    assert lengths[found["length/short"]].max() < lengths[found["length/middle"]].min()
    assert lengths[found["length/middle"]].max() < lengths[found["length/long"]].min()


@pytest.mark.parametrize(("rows", "there"), [(SMALLEST - 1, False), (SMALLEST, True)])
def test_a_label_of_few_rows_has_no_slice(rows, there):
    answers = np.array(["often"] * 30 + ["rare"] * rows)
    found = slices_of(["label"], np.ones(len(answers)), answers, ["often", "rare"])
    assert found["label/often"].tolist() == list(range(30))
    assert ("label/rare" in found) == there


def test_nothing_is_scored_apart_unasked():
    assert slices_of([], np.arange(90), np.array(["a"] * 90), ["a"]) == {}
