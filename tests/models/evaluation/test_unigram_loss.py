"""The loss of frequencies alone, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.evaluation.unigram_loss import unigram_loss


def test_it_is_the_mean_surprise_of_the_smoothed_frequencies() -> None:
    seen, guessed = np.array([0, 3, 1, 0]), np.array([0, 1, 1, 1])
    by_hand = -(math.log(4 / 8) + math.log(2 / 8) + math.log(1 / 8)) / 3
    assert unigram_loss(seen, guessed) == pytest.approx(by_hand, rel=1e-12)


def test_of_many_tokens_drawn_alike_it_is_their_entropy() -> None:
    shares = np.array([0.5, 0.25, 0.125, 0.125])
    counts = (1e6 * shares).astype(int)
    assert unigram_loss(counts, counts) == pytest.approx(1.75 * math.log(2), rel=1e-5)


def test_where_a_text_is_missing_there_is_no_loss() -> None:
    some, none = np.ones(4), np.zeros(4)
    assert unigram_loss(none, some) is unigram_loss(some, none) is None
