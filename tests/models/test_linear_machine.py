"""The linear machine: scikit-learn's TF-IDF and SVM, rows it has not seen, odd training sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from models import linear_machine
from models.linear_machine import learned

BUCKETS = 300


def rows(number: int, labels: int, seed: int = 0) -> tuple[csr_matrix, np.ndarray]:
    """Rows of 30 n-grams, half of them from their label's part of the buckets."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, labels, number)
    counts = np.zeros((number, BUCKETS))
    for row, label in enumerate(answers):
        own = label * 20 + rng.integers(0, 40, 15)
        np.add.at(counts[row], np.concatenate([own, rng.integers(0, BUCKETS, 15)]), 1)
    return csr_matrix(counts), answers


def parts_of(kinds: int) -> list[np.ndarray]:
    """The buckets of each kind of n-grams."""
    return np.split(np.arange(BUCKETS), kinds)


def said(machine, counts, kinds: int) -> np.ndarray:
    """The logits of rows, by the module's formula in dense numbers."""
    dense = counts.toarray()
    values = np.where(dense > 0, 1 + np.log(np.maximum(dense, 1)), 0) * machine.idf
    parts = np.split(values, kinds, axis=1)
    parts = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
    return np.concatenate(parts, axis=1) @ machine.kernel + machine.bias


@pytest.mark.parametrize("labels", [2, 4])
@pytest.mark.parametrize("kinds", [1, 2])
def test_it_is_scikit_learns_tfidf_and_two_linear_svms_times_one_factor(labels, kinds):
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    counts, answers = rows(200, labels)
    others, _ = rows(50, labels, seed=1)
    machine = learned(counts, answers, labels, range(200), kinds)
    seen = np.bincount(counts.indices, minlength=BUCKETS) >= 2
    learn, ask = [], []
    for part in parts_of(kinds):
        kept = part[seen[part]]
        weights = TfidfTransformer(sublinear_tf=True).fit(counts[:, kept])
        learn.append(weights.transform(counts[:, kept]))
        ask.append(weights.transform(others[:, kept]))
    learn, ask = hstack(learn).tocsr(), hstack(ask).tocsr()
    settings = {"tol": 1e-2, "class_weight": "balanced", "random_state": 0}
    svm = LinearSVC(C=0.3, **settings).fit(learn, answers)
    margins = svm.decision_function(ask).reshape(50, -1)
    has = counts.toarray()[:, np.concatenate([p[seen[p]] for p in parts_of(kinds)])] > 0
    for label in range(labels) if labels > 2 else [1]:
        right = answers == label
        # Buckets of rows that occur in one row alone are smoothed and counted, too.
        often = [1 + counts.toarray()[rows_of].astype(bool).sum() for rows_of in (right, ~right)]
        own, rest = (1 + has[rows_of].sum(axis=0) for rows_of in (right, ~right))
        shares = [n + BUCKETS - 1 for n in often]
        ratios = np.log(own / shares[0]) - np.log(rest / shares[1])
        scaled = LinearSVC(C=1.0, **settings).fit(learn.multiply(ratios).tocsr(), right)
        margins[:, label if labels > 2 else 0] += scaled.decision_function(
            ask.multiply(ratios).tocsr()
        )
    if labels == 2:
        margins = np.concatenate([-margins, margins], axis=1)
    found = said(machine, others, kinds)
    assert np.array_equal(found.argmax(axis=1), margins.argmax(axis=1))
    factors = found / margins
    assert factors.min() > 0
    assert factors.std() < 0.02 * factors.mean(), "another order of features moves liblinear a bit"


def test_training_rows_are_judged_by_machines_that_have_not_seen_their_text():
    # Answers are drawn by chance, so that there is nothing to know of a row one has not seen. Each
    # text stands there five times, with the same answer: a machine that saw one copy knows all.
    rng = np.random.default_rng(3)
    counts = csr_matrix(np.repeat((rng.random((60, BUCKETS)) < 0.1).astype(float), 5, axis=0))
    answers = np.repeat(rng.integers(0, 2, 60), 5)
    text = np.repeat(np.arange(60), 5)
    by_text = learned(counts, answers, 2, text)
    by_row = learned(counts, answers, 2, range(300))
    assert (by_text.unseen.argmax(axis=1) == answers).mean() < 0.65
    assert (by_row.unseen.argmax(axis=1) == answers).mean() > 0.95


def test_the_factor_makes_the_unseen_logits_the_best_probabilities():
    counts, answers = rows(300, 3)
    machine = learned(counts, answers, 3, range(300))
    # As if each row were there 300 times with its label, and once with every label.
    softened = (300 * np.eye(3)[answers] + 1) / 303

    def loss(factor: float) -> float:
        logits = factor * machine.unseen.astype(np.float64)
        log_shares = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return -(softened * log_shares).sum(axis=1).mean()

    assert all(loss(1.0) < loss(factor) for factor in (0.8, 0.95, 1.05, 1.25))


@pytest.mark.parametrize("of_sets", [False, True])
def test_few_rows_that_are_all_right_do_not_make_it_sure(of_sets: bool):
    for number, surest in ((12, 0.94), (200, 0.996)):
        answers = np.arange(number) % 2
        counts = csr_matrix(np.where(np.arange(BUCKETS) % 2 == answers[:, None], 1.0, 0.0))
        labels = np.eye(2, dtype=int)[answers] if of_sets else answers
        unseen = learned(counts, labels, 2, range(number)).unseen.astype(np.float64)
        assert np.array_equal(unseen.argmax(axis=1), answers)
        shares = np.exp(unseen) / np.exp(unseen).sum(axis=1, keepdims=True)
        if of_sets:
            shares = 1 / (1 + np.exp(-unseen))
        assert 0.85 < shares.max() < surest


def test_a_label_that_a_row_cannot_have_does_not_count():
    margins = np.random.default_rng(0).normal(size=(50, 3))
    labels = margins[:, :2].argmax(axis=1)
    labels[::4] = 1 - labels[::4]
    margins[:, 2] = -np.inf
    factor, _ = linear_machine.factor_of(margins, labels)
    assert factor == linear_machine.factor_of(margins[:, :2], labels)[0]
    assert 0.2 < factor < 5


def test_the_same_rows_give_the_same_bits_and_stay_as_they_are():
    counts, answers = rows(120, 3)
    before = counts.copy()
    first, second = (learned(counts, answers, 3, range(120)) for _ in range(2))
    for name in ("idf", "kernel", "bias", "unseen"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert (counts != before).nnz == 0
    assert counts.nnz == before.nnz


@pytest.mark.parametrize(
    "answers", [[0, 1], [0, 0, 0, 1], [0, -1, -1, -1], [1] * 7, [0, 1, 2, -1, 2, 1, 0]]
)
def test_few_rows_few_labels_and_rows_without_an_answer_are_learned_from_as_far_as_they_go(answers):
    counts, _ = rows(len(answers), 1)
    machine = learned(counts, np.array(answers), 3, range(len(answers)))
    assert machine.unseen.shape == (len(answers), 3)
    for name in ("idf", "kernel", "bias", "unseen"):
        assert np.isfinite(getattr(machine, name)).all(), name


def test_of_one_text_alone_nothing_is_known_unseen():
    counts, answers = rows(20, 2)
    assert not learned(counts, answers, 2, [b"the same"] * 20).unseen.any()


def test_an_n_gram_of_one_row_alone_counts_for_nothing():
    counts, answers = rows(100, 2)
    once = np.bincount(counts.indices, minlength=BUCKETS) < linear_machine.SEEN
    machine = learned(counts, answers, 2, range(100))
    assert not machine.idf[once].any()
    assert not machine.kernel[once].any()


def test_of_sets_each_label_has_the_machine_it_would_have_alone():
    counts, answers = rows(200, 3)
    sets = np.eye(3, dtype=int)[answers]
    sets[::7, 0] = 1
    sets[5] = -1  # a row without an answer
    machine = learned(counts, sets, 3, range(200))
    for label in range(3):
        alone = learned(counts, sets[:, label], 2, range(200))
        margins = alone.unseen[:, 1].astype(np.float64)
        design = np.stack([margins, np.ones(200)], axis=1)
        line, residual, *_ = np.linalg.lstsq(design, machine.unseen[:, label], rcond=None)
        assert residual < 1e-6
        assert line[0] > 0
        kernel = line[0] * alone.kernel[:, 1]
        np.testing.assert_allclose(machine.kernel[:, label], kernel, rtol=1e-4, atol=1e-6)
        # Calibrated: labels are foreseen as often as they are there (the score equations).
        known = sets[:, label] >= 0
        foreseen = 1 / (1 + np.exp(-machine.unseen[known, label].astype(np.float64)))
        assert foreseen.mean() == pytest.approx(sets[known, label].mean(), abs=2e-3)


def test_of_a_label_that_all_rows_have_or_none_only_that_is_known():
    counts, answers = rows(60, 2)
    sets = np.stack([answers, np.ones(60, int), np.zeros(60, int)], axis=1)
    machine = learned(counts, sets, 3, range(60))
    assert not machine.kernel[:, 1:].any()
    np.testing.assert_allclose(machine.bias[1:], [np.log(61), -np.log(61)], rtol=1e-5)
    assert np.isfinite(machine.unseen).all()


def test_a_label_of_one_text_is_not_given_away_by_the_machine_that_has_not_seen_it():
    counts, answers = rows(100, 3)
    sets = np.eye(3, dtype=int)[answers]
    sets[:, 2] = np.arange(100) == 7  # no row of its fold's machine has it
    unseen = learned(counts, sets, 3, range(100)).unseen[:, 2]
    assert unseen[7] <= np.median(unseen)
    # Its factor is at the limit; the offset fits that one.
    assert (1 / (1 + np.exp(-unseen.astype(np.float64)))).sum() == pytest.approx(1, abs=1e-3)
    answers[7] = 3
    unseen = learned(counts, answers, 4, range(100)).unseen
    assert unseen[7, 3] <= np.median(unseen[:, 3])


def test_how_alike_two_texts_are_is_seen_by_both_svms_in_deviations():
    from scipy.sparse import hstack
    from sklearn.svm import LinearSVC

    counts, answers = rows(200, 2)
    alike = np.random.default_rng(1).normal(3, 2, (200, 4)) + answers[:, None]
    alike[:, 3] = 7  # says nothing
    machine = learned(counts, answers, 2, range(200), alike=alike)
    deviation = np.array([*alike[:, :3].std(axis=0), 1])
    beside = (alike - alike.mean(axis=0)) / deviation / 2  # of length 1: there are four
    assert np.square(beside).sum(axis=1).mean() == pytest.approx(3 / 4)
    features = linear_machine.weighted(counts, machine.idf.astype(np.float64), 1)
    right, has = answers == 1, counts > 0
    share = [(1 + np.asarray(has[own].sum(axis=0))).ravel() for own in (right, ~right)]
    ratios = np.log(share[0] / share[0].sum()) - np.log(share[1] / share[1].sum())
    margins = 0.0
    for cost, own in ((0.3, features), (1.0, features.multiply(ratios))):
        both = hstack([own, beside]).tocsr()
        svm = LinearSVC(C=cost, tol=1e-2, class_weight="balanced", random_state=0)
        margins += svm.fit(both, answers).decision_function(both)
    assert machine.alike is not None
    found = features @ machine.kernel + alike @ machine.alike + machine.bias
    factor = found[:, 1] / margins
    assert factor.min() > 0
    assert factor.std() < 0.02 * factor.mean()
    assert (machine.unseen.argmax(axis=1) == answers).mean() > 0.7


def test_a_bucket_that_both_texts_have_counts_for_each_and_is_learned_from_once():
    twice = csr_matrix(([2.0, 3.0, 1.0], [5, 5, 9], [0, 3]), (1, BUCKETS))
    idf = np.ones(BUCKETS)
    found = linear_machine.weighted(twice, idf, 1)
    values = 1 + np.log([2, 3, 1])
    expected = np.array([values[:2].sum(), values[2]]) / np.linalg.norm(values)
    assert found.indices.tolist() == [5, 9]
    assert found.data == pytest.approx(expected)
    assert twice.nnz == 3
