"""Some of many rows: as many as asked, with two labels at least."""

from __future__ import annotations

import numpy as np

from models.evaluation.rivals import RawRows, fit
from models.evaluation.rivals.label import CHOSEN_ON
from models.evaluation.row_sample import drawn


def test_rows_are_those_of_a_permutation_and_a_rare_label_is_not_missed():
    every = np.array(["a"] * 500 + ["b"] * 500)
    wanted = np.sort(np.random.default_rng(7).permutation(1000)[:100])
    np.testing.assert_array_equal(drawn(every, 100, np.random.default_rng(7)), wanted)
    for place in (0, 500, 999):
        rare = ["common"] * 1000
        rare[place] = "rare"
        for seed in range(20):
            rows = drawn(rare, 10, np.random.default_rng(seed))
            assert len(set(rows.tolist())) == 10
            assert place in rows
    assert len(drawn(["one"] * 20, 5, np.random.default_rng(0))) == 5


def test_a_label_too_rare_for_a_draw_is_no_fault_of_the_baseline():
    count = CHOSEN_ON + 2000
    rows = np.random.default_rng(count).permutation(count)
    answers = np.full(count, "no", object)
    answers[rows[-1]] = "yes"  # the last to be drawn
    train = RawRows((["word"] * count,), answers.tolist())
    dev = RawRows((["word"] * 4,), ["no"] * 4)
    assert fit("label", train, dev, metric="accuracy").answer(dev) == dev.answers
