"""Gradients against finite differences, questions against the pairs they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from models.vectors.huffman import paths
from models.vectors.logistic import Questions, answered
from models.vectors.outputs import NOISE_WORDS, HierarchicalSoftmax, NegativeSampling
from models.vectors.tables import MOST_AT_ONCE, Table

RNG = np.random.default_rng


def loss_by_hand(inputs: np.ndarray, outputs: np.ndarray, asked: np.ndarray, yes: np.ndarray):
    """The sum of -log σ(x·y) for each yes and of -log σ(-x·y) for each no, one by one."""
    total = 0.0
    for c, t, r in np.ndindex(asked.shape):
        logit = float(inputs[c, t] @ outputs[c, r])
        yeses = yes[c, t, r] if r < yes.shape[2] else 0.0
        total += yeses * np.log1p(np.exp(-logit))
        total += (asked[c, t, r] - yeses) * np.log1p(np.exp(logit))
    return total


def test_loss_and_gradients_are_those_of_the_equations() -> None:
    rng = RNG(0)
    inputs, outputs = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4))
    yes = rng.integers(0, 2, (2, 3, 3)).astype(float)
    asked = np.concatenate([yes + rng.integers(0, 2, yes.shape), rng.random((2, 3, 2))], axis=2)
    questions = Questions(np.zeros((2, 5), int), asked, yes)
    score, for_inputs, for_outputs = answered(inputs, outputs, questions, 1.0)
    assert score.loss == pytest.approx(loss_by_hand(inputs, outputs, asked, yes), rel=1e-12)
    step = 1e-6
    for array, gradient in ((inputs, for_inputs), (outputs, for_outputs)):
        for place in np.ndindex(array.shape):
            kept = array[place]
            array[place] = kept + step
            more = loss_by_hand(inputs, outputs, asked, yes)
            array[place] = kept - step
            less = loss_by_hand(inputs, outputs, asked, yes)
            array[place] = kept
            assert gradient[place] == pytest.approx((more - less) / (2 * step), abs=1e-7)


def test_right_answers_are_counted() -> None:
    inputs, outputs = np.ones((1, 1, 1)), np.array([[[2.0], [-3.0], [1.0], [-1.0]]])
    questions = Questions(np.zeros((1, 4), int), np.array([[[1.0, 1, 1, 2]]]), np.ones((1, 1, 2)))
    score, _, _ = answered(inputs, outputs, questions, 2.0)
    assert (score.right, score.questions) == (3.0, 5.0)


def test_large_logits_do_not_overflow() -> None:
    inputs, outputs = np.full((1, 1, 1), 500.0, np.float32), np.array([[[1.0], [-1.0]]], np.float32)
    asked = np.ones((1, 1, 2), np.float32)
    questions = Questions(np.zeros((1, 2), int), asked, asked[..., 1:] * 0)
    score, for_inputs, _ = answered(inputs, outputs, questions, 1.0)
    assert score.loss == pytest.approx(500.0)
    assert for_inputs[0, 0, 0] == pytest.approx(1.0)


def test_noise_is_drawn_by_a_power_of_the_frequency_and_never_a_special_token() -> None:
    frequencies = np.array([0.0, 0.5, 0.3, 0.0, 0.2, 0.0])
    noise = NegativeSampling(frequencies, 5, 0.75).draw((200_000,), RNG(1))
    expected = frequencies**0.75 / (frequencies**0.75).sum()
    shares = np.bincount(noise, minlength=6) / len(noise)
    assert np.abs(shares - expected).max() < 4 * np.sqrt(0.25 / len(noise))
    assert not shares[[0, 3, 5]].any()


def test_each_pair_is_asked_as_often_as_k_noise_words_that_are_not_its_own_word() -> None:
    rng = RNG(2)
    words = rng.integers(0, 6, (2, 7))
    pairs = rng.integers(0, 2, (2, 3, 7)).astype(np.float32)
    made = NegativeSampling(np.full(6, 1 / 6), 4, 0.75).questions(words, pairs, RNG(3))
    assert np.array_equal(made.rows[:, :7], words)
    assert np.array_equal(made.yes, pairs)
    assert np.array_equal(made.asked[..., :7], pairs)
    for c, t, k in np.ndindex(2, 3, NOISE_WORDS):
        noise = made.rows[c, 7 + k]
        counted = sum(pairs[c, t, j] for j in range(7) if words[c, j] != noise)
        assert made.asked[c, t, 7 + k] == pytest.approx(counted * 4 / NOISE_WORDS)


def test_huffmans_paths_are_shortest_and_no_word_begins_another() -> None:
    frequencies = np.array([0.4, 0.05, 0.2, 0.1, 0.25])
    nodes, left = paths(frequencies)
    lengths = (nodes >= 0).sum(axis=1)
    # By hand: 0.05 and 0.1; 0.15 and 0.2; 0.25 and 0.35; 0.4 and 0.6.
    assert lengths.tolist() == [1, 4, 3, 4, 2]
    codes = ["".join(str(int(turn)) for turn in left[w, : lengths[w]]) for w in range(5)]
    assert not any(a != b and b.startswith(a) for a in codes for b in codes)
    assert len({nodes[w, 0] for w in range(5)}) == 1
    assert nodes.max() == 3


def test_probabilities_of_hierarchical_softmax_sum_to_one() -> None:
    rng = RNG(4)
    number = 9
    output = HierarchicalSoftmax(rng.dirichlet(np.ones(number)))
    inputs, table = rng.normal(size=(1, 1, 4)), rng.normal(size=(number, 4))
    total = 0.0
    for word in range(number):
        made = output.questions(np.array([[word]]), np.ones((1, 1, 1), np.float32), rng)
        score, _, _ = answered(inputs, table[made.rows], made, 1.0)
        total += np.exp(-score.loss)
    assert total == pytest.approx(1.0, abs=1e-6)


def test_a_stretch_asks_about_each_path_as_often_as_it_is_predicted() -> None:
    rng = RNG(5)
    frequencies = rng.dirichlet(np.ones(12))
    nodes, left = paths(frequencies)
    words = rng.integers(0, 12, (3, 6))
    pairs = rng.integers(0, 3, (3, 4, 6)).astype(np.float32)
    made = HierarchicalSoftmax(frequencies).questions(words, pairs, rng)
    for c, t in np.ndindex(3, 4):
        asked, yes = np.zeros(12), np.zeros(12)
        for j in range(6):
            for node, turn in zip(nodes[words[c, j]], left[words[c, j]], strict=True):
                if node >= 0:
                    asked[node] += pairs[c, t, j]
                    yes[node] += pairs[c, t, j] * turn
        found = np.zeros((2, 12))
        np.add.at(found[0], made.rows[c], made.asked[c, t])
        np.add.at(found[1], made.rows[c], made.yes[c, t])
        assert np.array_equal(found, [asked, yes])


def test_a_row_gets_the_sum_of_its_gradients_and_no_more_than_is_stable() -> None:
    rng = RNG(6)
    before = rng.normal(size=(5, 3)).astype(np.float32)
    words, gradients = np.array([[3, 1], [3, 0]]), rng.normal(size=(2, 2, 3)).astype(np.float32)
    table = Table(before.copy())
    table.descend(words, gradients, np.ones((2, 2), np.float32), 0.1)
    expected = before.copy()
    np.subtract.at(expected, words, np.float32(0.1) * gradients)
    assert np.abs(table.array - expected).max() < 1e-6
    assert np.array_equal(table.array[[2, 4]], before[[2, 4]])
    many = Table(before.copy())
    many.descend(words, gradients, np.full((2, 2), 1000.0, np.float32), 0.1)
    step = before[3] - many.array[3]
    total = gradients[0, 0] + gradients[1, 0]
    assert np.abs(step - total * MOST_AT_ONCE / 2000).max() < 1e-6
