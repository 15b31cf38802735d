"""Gradients against finite differences, questions against the pairs they stand for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from models.vectors.huffman import paths
from models.vectors.logistic import OwnQuestions, Questions, SharedQuestions
from models.vectors.outputs import NOISE_WORDS, HierarchicalSoftmax, NegativeSampling
from models.vectors.tables import MOST_AT_ONCE, Table

RNG = np.random.default_rng


def loss_by_hand(inputs: np.ndarray, outputs: np.ndarray, asked: np.ndarray, yes: np.ndarray):
    """The sum of -log σ(x·y) for each yes and of -log σ(-x·y) for each no, one by one."""
    total = 0.0
    for c, r, t in np.ndindex(asked.shape):
        logit = float(inputs[c, t] @ outputs[c, r])
        yeses = yes[c, r, t] if r < yes.shape[1] else 0.0
        total += yeses * np.log1p(np.exp(-logit))
        total += (asked[c, r, t] - yeses) * np.log1p(np.exp(logit))
    return total


def check_gradients(questions: Questions, inputs: np.ndarray, table: np.ndarray, loss) -> None:
    """The loss against one by hand, the gradients against finite differences of it."""
    score, gradient = questions.answered(inputs, table[questions.rows], 1.0)
    assert score.loss == pytest.approx(loss(), rel=1e-12)
    for_inputs = questions.for_inputs(gradient, table[questions.rows])
    rows, of_rows, _ = questions.for_outputs(gradient, inputs)
    for_table = np.zeros_like(table)
    for_table[rows] = of_rows
    step = 1e-6
    for array, slopes in ((inputs, for_inputs), (table, for_table)):
        assert slopes.shape == array.shape
        for place in np.ndindex(array.shape):
            kept = array[place]
            array[place] = kept + step
            more = loss()
            array[place] = kept - step
            less = loss()
            array[place] = kept
            assert slopes[place] == pytest.approx((more - less) / (2 * step), abs=1e-7)


def test_loss_and_gradients_are_those_of_the_equations() -> None:
    rng = RNG(0)
    inputs, table = rng.normal(size=(2, 3, 4)), rng.normal(size=(6, 4))
    yes = rng.integers(0, 2, (2, 3, 3)).astype(float)
    asked = np.concatenate([yes + rng.integers(0, 2, yes.shape), rng.random((2, 2, 3))], axis=1)
    rows = rng.integers(0, 6, (2, 5))
    questions = SharedQuestions(rows, asked, yes)
    check_gradients(questions, inputs, table, lambda: loss_by_hand(inputs, table[rows], asked, yes))


def test_loss_and_gradients_of_own_questions_are_those_of_the_equations() -> None:
    rng = RNG(7)
    number = np.array([[2, 0, 1], [3, 1, 0]])
    inputs, table = rng.normal(size=(2, 3, 4)), rng.normal(size=(6, 4))
    rows, yes = rng.integers(0, 6, 7), rng.integers(0, 2, 7).astype(float)
    of = [(0, 0), (0, 0), (0, 2), (1, 0), (1, 0), (1, 0), (1, 1)]

    def loss() -> float:
        logits = [inputs[place] @ table[row] for place, row in zip(of, rows, strict=True)]
        return float(np.log1p(np.exp(np.where(yes, -1, 1) * logits)).sum())

    check_gradients(OwnQuestions(rows, number, yes), inputs, table, loss)


def test_right_answers_are_counted() -> None:
    inputs, outputs = np.ones((1, 1, 1)), np.array([[[2.0], [-3.0], [1.0], [-1.0]]])
    asked = np.array([[[1.0], [1], [1], [2]]])
    questions = SharedQuestions(np.zeros((1, 4), int), asked, np.ones((1, 2, 1)))
    score, _ = questions.answered(inputs, outputs, 2.0)
    assert (score.right, score.questions) == (3.0, 5.0)


def test_large_logits_do_not_overflow() -> None:
    inputs, outputs = np.full((1, 1, 1), 500.0, np.float32), np.array([[[1.0], [-1.0]]], np.float32)
    asked = np.ones((1, 2, 1), np.float32)
    questions = SharedQuestions(np.zeros((1, 2), int), asked, asked[:, 1:] * 0)
    score, gradient = questions.answered(inputs, outputs, 1.0)
    assert score.loss == pytest.approx(500.0)
    assert questions.for_inputs(gradient, outputs)[0, 0, 0] == pytest.approx(1.0)


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
    assert np.array_equal(made.yes, pairs.swapaxes(1, 2))
    assert np.array_equal(made.asked[:, :7], pairs.swapaxes(1, 2))
    for c, t, k in np.ndindex(2, 3, NOISE_WORDS):
        noise = made.rows[c, 7 + k]
        counted = sum(pairs[c, t, j] for j in range(7) if words[c, j] != noise)
        assert made.asked[c, 7 + k, t] == pytest.approx(counted * 4 / NOISE_WORDS)


def path_of(frequencies: np.ndarray) -> list[list[tuple[int, int]]]:
    """The nodes of each word's path, and whether it goes left there."""
    nodes, left, ends = paths(frequencies)
    steps = list(zip(nodes.tolist(), left.astype(int).tolist(), strict=True))
    return [steps[start:end] for start, end in pairwise([0, *ends])]


def test_huffmans_paths_are_shortest_and_no_word_begins_another() -> None:
    frequencies = np.array([0.4, 0.05, 0.2, 0.1, 0.25])
    found = path_of(frequencies)
    # By hand: 0.05 and 0.1; 0.15 and 0.2; 0.25 and 0.35; 0.4 and 0.6.
    assert list(map(len, found)) == [1, 4, 3, 4, 2]
    codes = ["".join(str(turn) for _, turn in path) for path in found]
    assert codes == ["1", "0011", "000", "0010", "01"]
    assert not any(a != b and b.startswith(a) for a in codes for b in codes)
    # The last node that was made is the root.
    assert [[node for node, _ in path] for path in found] == [
        [3],
        [3, 2, 1, 0],
        [3, 2, 1],
        [3, 2, 1, 0],
        [3, 2],
    ]


def test_probabilities_of_hierarchical_softmax_sum_to_one() -> None:
    rng = RNG(4)
    number = 9
    output = HierarchicalSoftmax(rng.dirichlet(np.ones(number)))
    inputs, table = rng.normal(size=(1, 1, 4)), rng.normal(size=(number, 4))
    total = 0.0
    for word in range(number):
        made = output.questions(np.array([[word]]), np.ones((1, 1, 1), np.float32), rng)
        score, _ = made.answered(inputs, table[made.rows], 1.0)
        total += np.exp(-score.loss)
    assert total == pytest.approx(1.0, abs=1e-6)


def test_a_stretch_asks_about_each_path_as_often_as_it_is_predicted() -> None:
    rng = RNG(5)
    frequencies = rng.dirichlet(np.ones(12))
    found_paths = path_of(frequencies)
    words = rng.integers(0, 12, (3, 6))
    pairs = rng.integers(0, 3, (3, 4, 6)).astype(np.float32)
    made = HierarchicalSoftmax(frequencies).questions(words, pairs, rng)
    for c, t in np.ndindex(3, 4):
        asked, yes = np.zeros(12), np.zeros(12)
        for j in range(6):
            for node, turn in found_paths[words[c, j]]:
                asked[node] += pairs[c, t, j]
                yes[node] += pairs[c, t, j] * turn
        found = np.zeros((2, 12))
        np.add.at(found[0], made.rows[c], made.asked[c, :, t])
        np.add.at(found[1], made.rows[c], made.yes[c, :, t])
        assert np.array_equal(found, [asked, yes])


@pytest.mark.parametrize("some", [True, False])  # whether a word has another one near it
@pytest.mark.parametrize("kind", ["tree", "noise"])
def test_a_word_of_ones_own_is_asked_as_a_stretch_would_ask_about_it(kind: str, some: bool) -> None:
    """The same score, gradients and numbers of questions as with a diagonal of pairs."""
    rng = RNG(8)
    frequencies = rng.dirichlet(np.ones(12))
    tree, noise = HierarchicalSoftmax(frequencies), NegativeSampling(frequencies, 5, 0.75)
    output = tree if kind == "tree" else noise
    words, inputs = rng.integers(0, 12, (3, 6)), rng.normal(size=(3, 6, 4))
    there = (rng.random((3, 6)) < 0.7) & some
    table = rng.normal(size=(12, 4))
    own = output.own_questions(words, there, RNG(9))
    shared = output.questions(words, np.eye(6) * there[..., None], RNG(9))
    score, gradient = own.answered(inputs, table[own.rows], 1.0)
    same, slopes = shared.answered(inputs, table[shared.rows], 1.0)
    for name in ("loss", "right", "questions", "pairs"):
        assert getattr(score, name) == pytest.approx(getattr(same, name), rel=1e-12), name
    of_inputs = shared.for_inputs(slopes, table[shared.rows])
    assert own.for_inputs(gradient, table[own.rows]) == pytest.approx(of_inputs, abs=1e-12)
    assert np.array_equal(own.of_inputs(), shared.of_inputs())
    rows, total, asked = own.for_outputs(gradient, inputs)
    all_rows, totals, all_asked = shared.for_outputs(slopes, inputs)
    some = np.isin(all_rows, rows)  # a stretch has rows that none of its inputs is asked about
    assert np.array_equal(all_rows[some], rows)
    assert totals[some] == pytest.approx(total, abs=1e-12)
    assert np.array_equal(all_asked[some], asked)
    assert not all_asked[~some].any()


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
