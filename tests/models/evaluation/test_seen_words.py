"""The cheap baseline that sees: it relates what is told to what is there."""

from __future__ import annotations

import numpy as np

from models.evaluation.rivals import RawRows, fit
from models.evaluation.seen_words import _products, statistics
from models.evaluation.seen_words import fit as fit_seeing

COLOURS = ("black", "blue", "yellow")


def made(seed: int, count: int, width: int = 3) -> RawRows:
    """Is there an item of the colour that is named? Neither the colour nor the picture tells."""
    rng = np.random.default_rng(seed)
    texts, answers, pictures = [], [], []
    for n in range(count):
        named, there = rng.integers(3), rng.permutation(3)[:2]
        if (named in there) != bool(n % 2):
            there = np.array([named, (named + 1) % 3]) if n % 2 else np.delete(np.arange(3), named)
        texts.append(f"there is a {COLOURS[named]} item")
        answers.append("true" if named in there else "false")
        features = np.zeros((2, width), np.float32)
        features[[0, 1], there] = 1.0
        pictures.append(statistics(rng.random((2, 4), np.float32), features))
    return RawRows((texts,), answers, None, np.array(pictures))


def right(rows: RawRows, said: list[str]) -> float:
    return float(np.mean([a == b for a, b in zip(rows.answers, said, strict=True)]))


def test_it_relates_a_word_to_what_is_seen_which_words_alone_do_not():
    train, dev, asked = made(0, 300), made(1, 60), made(2, 200)
    sees = fit_seeing(train, dev, "accuracy", ())
    assert right(asked, sees.answer(asked)) > 0.95
    assert sees.facts["score"] > 0.95
    blind = fit("label", train, dev, metric="accuracy")
    assert right(asked, blind.answer(asked)) < 0.7
    assert asked.pictures is not None
    other = RawRows(asked.columns, asked.answers, None, asked.pictures[::-1])
    assert right(asked, sees.answer(other)) < 0.8  # another row's picture


def test_numbers_of_a_detector_are_mixed_into_fewer():
    train, asked = made(3, 300, width=120), made(4, 100, width=120)
    assert train.pictures is not None
    assert train.pictures.shape[1] == 3 * 124 + 1
    assert right(asked, fit_seeing(train, None, "accuracy", ()).answer(asked)) > 0.7


def test_statistics_are_those_of_numpy_by_hand():
    boxes = np.array([[0, 0, 1, 1], [0, 0.5, 1, 1]], np.float32)
    features = np.array([[1, 4], [3, 2]], np.float32)
    wanted = [2, 3, 0, 0.25, 1, 1, 3, 4, 0, 0.5, 1, 1, 4, 6, 0, 0.5, 2, 2, 2]
    assert statistics(boxes, features).tolist() == wanted


def test_products_are_those_of_each_word_and_number():
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    words = rng.random((5, 4)) * (rng.random((5, 4)) < 0.5)
    numbers = rng.standard_normal((5, 3))
    wanted = np.einsum("rv,rs->rvs", words, numbers).reshape(5, -1)
    assert np.allclose(_products(csr_matrix(words), numbers).toarray(), wanted, rtol=0, atol=1e-12)


def test_one_label_and_rows_without_answers_are_no_fault():
    train = made(5, 30)
    train.answers[:10] = [""] * 10
    assert set(fit_seeing(train, None, "accuracy", ()).answer(train)) <= {"true", "false"}
    one = RawRows(train.columns, ["true"] * 30, None, train.pictures)
    assert fit_seeing(one, None, "accuracy", ()).answer(train) == ["true"] * 30
    assert fit_seeing(train, train, "accuracy", ()).answer(train.only([])) == []
