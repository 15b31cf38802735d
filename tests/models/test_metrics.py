"""Which of two values of a metric is better."""

import pytest

from models.metrics import advantage, best, is_better, of_answers, of_likelihood


@pytest.mark.parametrize("metric", ["perplexity", "perplexity_a_word", "heldout_loss"])
def test_of_a_perplexity_and_a_loss_the_lower_is_better(metric: str):
    assert is_better(metric, 2.0, 3.0)
    assert not is_better(metric, 3.0, 2.0)
    assert advantage(metric, 2.0 - 3.0) == 1.0
    assert best(metric, [3.0, 2.0, 2.0]) == 1


@pytest.mark.parametrize("metric", ["accuracy", "bleu", "a project's own"])
def test_of_any_other_metric_the_higher_is(metric: str):
    assert is_better(metric, 3.0, 2.0)
    assert not is_better(metric, 2.0, 2.0)
    assert advantage(metric, 2.0 - 3.0) == -1.0
    assert best(metric, [2.0, 3.0, 3.0]) == 1


@pytest.mark.parametrize("metric", ["perplexity", "bleu"])
def test_what_is_not_defined_is_never_the_best(metric: str):
    nan = float("nan")
    assert best(metric, [nan, 5.0, nan]) == 1
    assert is_better(metric, 5.0, nan)
    assert not is_better(metric, nan, 5.0)


def test_metrics_are_of_answers_or_of_likelihoods_in_the_order_given():
    asked = ["perplexity_a_word", "bleu", "perplexity", "chrf"]
    assert of_answers(asked) == ("bleu", "chrf")
    assert of_likelihood(asked) == ("perplexity_a_word", "perplexity")
