"""The cheap rivals, in English and Chinese."""

from __future__ import annotations

import numpy as np

from models.evaluation.baseline import majority_predictions, tfidf_predictions


def test_words_that_tell_the_label_are_learned_in_english_and_chinese():
    good = ["a lovely film", "lovely acting and plot", "这部电影真好看", "好看极了"] * 5
    bad = ["an awful film", "awful acting and plot", "这部电影太难看", "难看极了"] * 5
    labels = [1] * len(good) + [0] * len(bad)
    found = tfidf_predictions(good + bad, labels, ["lovely", "awful", "真好", "太难"])
    assert found.tolist() == [1, 0, 1, 0]


def test_the_second_text_of_a_pair_is_a_feature_of_its_own():
    first = ["one text here"] * 20
    second = ["agrees with it", "denies all that"] * 10
    found = tfidf_predictions(
        first, [1, 0] * 10, first[:2], pairs=(second, ["it agrees", "who denies"])
    )
    assert found.tolist() == [1, 0]


def test_the_majority_class_is_the_most_frequent_label_of_training():
    assert majority_predictions([2, 1, 2, 0], 3).tolist() == [2, 2, 2]
    assert majority_predictions(np.array([1, 0]), 2).tolist() == [0, 0]
