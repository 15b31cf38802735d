"""The loss of frequencies alone, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.evaluation.unigram import unigram_loss
from tests.models.memory_corpus import MemoryCorpus, random_corpus


def test_it_is_the_mean_surprise_of_the_smoothed_frequencies() -> None:
    train = MemoryCorpus([[[5, 5, 6]], [[5]]])  # 5 three times, 6 once, 7 never; 8 pieces
    heldout = MemoryCorpus([[[5, 7]], [[6]]])
    by_hand = -(math.log(4 / 12) + math.log(1 / 12) + math.log(2 / 12)) / 3
    assert unigram_loss(train, heldout, 8) == pytest.approx(by_hand, rel=1e-12)


def test_tokens_drawn_alike_cost_as_much_as_there_are_to_choose_from() -> None:
    train, heldout = (random_corpus(400, 55, seed) for seed in (1, 2))
    assert unigram_loss(train, heldout, 55) == pytest.approx(np.log(50), abs=0.01)


def test_without_held_out_text_there_is_no_loss() -> None:
    assert unigram_loss(MemoryCorpus([[[5]]]), MemoryCorpus([]), 8) is None
