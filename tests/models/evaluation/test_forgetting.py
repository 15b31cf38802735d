"""What was lost of each corpus since it was known best."""

from __future__ import annotations

import pytest

from models.evaluation.forgetting import forgetting


def test_the_last_loss_is_compared_with_the_best_before_it_and_not_with_the_one_before_it():
    losses = [{"news": 3.0}, {"news": 2.0}, {"news": 2.5}, {"news": 2.75}]
    assert forgetting(losses) == {"news": 0.75}
    assert forgetting(losses[:2]) == {"news": -1.0}


def test_a_corpus_that_only_some_stages_measured_is_compared_with_those():
    losses = [{"news": 3.0, "law": 4.0}, {"news": 2.0}, {"news": 3.5, "law": 4.25, "new": 1.0}]
    assert forgetting(losses) == {"news": 1.5, "law": 0.25}


def test_corpora_can_be_chosen_and_one_that_is_not_measured_is_left_out():
    losses = [{"news": 3.0, "law": 4.0}, {"news": 2.0, "law": 5.0}]
    assert forgetting(losses, ["law", "none"]) == {"law": 1.0}


@pytest.mark.parametrize("losses", [[], [{"news": 3.0}]])
def test_one_stage_has_nothing_to_forget(losses):
    assert forgetting(losses) == {}
