"""Which weights are kept."""

import pytest

from models.training.selection import Selection


@pytest.mark.parametrize(
    ("metric", "lower"), [("perplexity", True), ("heldout_loss", True), ("chrf", False)]
)
def test_a_lower_perplexity_and_a_higher_score_are_kept(metric: str, lower: bool):
    selection = Selection(metric, lambda go_on: 0.0)
    assert selection.better(2.0, 3.0) == lower
    assert selection.better(3.0, 2.0) != lower
    assert not selection.better(2.0, 2.0)
