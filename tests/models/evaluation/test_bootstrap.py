"""Non-inferiority: what it must accept, what it must refuse, what it can't decide."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.answers.label import Label
from models.answers.text import Text, written
from models.evaluation.bootstrap import compare

LABEL = Label()


def rows(n: int, shares: tuple[float, float], seed: int = 0):
    """Labels and two models with the given accuracies, erring apart from each other."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    said = [np.where(rng.random(n) < share, labels, (labels + 1) % 3) for share in shares]
    return labels, *said


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1"])
def test_a_clearly_better_model_passes_and_a_clearly_worse_one_does_not(metric):
    labels, better, worse = rows(1000, (0.9, 0.7))
    found = compare(LABEL, labels, better, worse, metric=metric, margin=0.01, resamples=500)
    assert found.non_inferior
    assert found.low > 0.1
    found = compare(LABEL, labels, worse, better, metric=metric, margin=0.01, resamples=500)
    assert not found.non_inferior
    assert found.difference == pytest.approx(-0.2, abs=0.05)


def test_a_model_is_not_worse_than_itself_whatever_the_margin():
    labels, model, _ = rows(50, (0.8, 0.5))
    found = compare(LABEL, labels, model, model, metric="macro_f1", margin=0.0, resamples=100)
    assert found.non_inferior
    assert found.disagreements == 0
    assert found.smallest_margin == 0.0
    assert found.decidable


def test_without_a_margin_a_lead_that_a_resample_may_miss_is_not_sure():
    """An interval that ends at the margin is not within it: two rows are too few to be sure."""
    labels = np.zeros(100, int)
    two, five = (
        compare(LABEL, labels, labels, (np.arange(100) < lead).astype(int), metric="accuracy")
        for lead in (2, 5)
    )
    assert (two.low, two.non_inferior) == (0.0, False)
    assert five.low > 0.0
    assert five.non_inferior


@pytest.mark.parametrize(("texts", "sure"), [(3, False), (4, False), (5, True)])
def test_a_few_texts_are_never_sure_even_if_all_agree(texts: int, sure: bool):
    labels = np.zeros(40, int)
    found = compare(
        LABEL, labels, labels, labels + 1, metric="accuracy", groups=np.arange(40) % texts
    )
    assert (found.low, found.groups) == (1.0, texts)
    assert found.enough is found.non_inferior is sure


def test_the_smallest_margin_shrinks_with_more_rows_and_says_what_is_too_fine():
    small = compare(LABEL, *rows(100, (0.8, 0.8)), metric="accuracy", margin=0.01, resamples=500)
    large = compare(LABEL, *rows(10_000, (0.8, 0.8)), metric="accuracy", margin=0.02, resamples=500)
    assert not small.decidable
    assert large.decidable
    # Normal approximation: 1.645 standard errors of a mean of paired differences.
    expected = 1.645 * np.sqrt(2 * 0.8 * 0.2 / 10_000)
    assert large.smallest_margin == pytest.approx(expected, rel=0.15)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    outside = sum(
        compare(LABEL, *rows(200, (0.8, 0.8), seed), metric="accuracy", resamples=300).low > 0
        for seed in range(200)
    )
    assert 2 <= outside <= 20  # 5 % of 200 are 10


def test_rows_of_one_text_stand_and_fall_together():
    rng = np.random.default_rng(0)
    texts = np.repeat(np.arange(60), 10)
    labels = np.zeros(600, int)
    wrong = 0
    for _ in range(200):
        ours, theirs = (np.repeat(rng.random(60) < 0.8, 10).astype(int) for _ in range(2))
        found = compare(LABEL, labels, 1 - ours, 1 - theirs, metric="accuracy", resamples=200)
        together = compare(
            LABEL, labels, 1 - ours, 1 - theirs, metric="accuracy", groups=texts, resamples=200
        )
        assert together.smallest_margin > 2 * found.smallest_margin
        wrong += together.low > 0
    assert 2 <= wrong <= 20  # 5 % of 200 are 10; row by row it is 30 %


def test_the_same_seed_gives_the_same_numbers():
    data = rows(200, (0.8, 0.75))
    one, two = (compare(LABEL, *data, metric="macro_f1", resamples=200, seed=4) for _ in range(2))
    assert one == two
    other = compare(LABEL, *data, metric="macro_f1", resamples=200, seed=5)
    assert other.low != one.low


def likelihoods(rng: np.random.Generator, nats: float, rows: int = 300) -> np.ndarray:
    """(rows, 3) nats, tokens and words, of about so many nats a token."""
    tokens = np.random.default_rng(9).integers(2, 12, rows)
    return np.stack([tokens * rng.gamma(20, nats / 20, rows), tokens, tokens - 1], axis=1)


@pytest.mark.parametrize(("metric", "unit"), [("perplexity", 1), ("perplexity_a_word", 2)])
def test_of_a_perplexity_the_lower_one_is_not_worse_by_the_rows_drawn(metric: str, unit: int):
    rng = np.random.default_rng(3)
    tables = [likelihoods(rng, nats) for nats in (2.0, 2.3)]
    low, high = ([written(None, tuple(row)) for row in table.tolist()] for table in tables)
    true = ['["a"]'] * 300
    asked = {"metric": metric, "margin": 0.1, "resamples": 200, "seed": 4}
    better, worse = (
        compare(Text(), true, low, high, **asked),
        compare(Text(), true, high, low, **asked),
    )
    assert better.non_inferior
    assert not worse.non_inferior
    assert worse.difference == -better.difference > 1.0

    draws = np.random.default_rng([4, 300, 200])
    picks = [draws.integers(300, size=300) for _ in range(200)]
    ours, theirs = (
        [np.exp(table[pick, 0].sum() / table[pick, unit].sum()) for pick in picks]
        for table in tables
    )
    apart = np.subtract(ours, theirs)
    assert (better.low, better.high) == pytest.approx(np.quantile(apart, [0.05, 0.95]))
    assert better.smallest_margin == pytest.approx(better.high - apart.mean())


def test_the_same_texts_are_equal_by_a_metric_of_texts_whatever_their_likelihood():
    texts = ["a cat sat here", "a dog ran far"]
    true = [json.dumps([text]) for text in texts]
    ours, theirs = ([written(text, (nats, 5, 4)) for text in texts] for nats in (7.0, 9.0))
    found = compare(Text(), true, ours, theirs, metric="bleu", margin=0.0, resamples=100)
    assert found.non_inferior
    assert found.disagreements == 2
    worse = compare(Text(), true, theirs, ours, metric="perplexity", margin=0.0, resamples=100)
    assert not worse.non_inferior


def test_predictions_for_other_rows_are_refused():
    with pytest.raises(ContractViolation, match="expected predictions for the same rows"):
        compare(LABEL, np.zeros(3, int), np.zeros(3, int), np.zeros(2, int), metric="accuracy")
