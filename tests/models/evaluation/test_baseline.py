"""The cheap rivals: what they can see, how they are chosen, in English and Chinese."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from models.evaluation.baseline import Texts, cheap_baseline, majority


def rows(texts: list[str], labels: list[int], second: list[str] | None = None) -> Texts:
    return Texts((texts, *([second] if second else [])), np.array(labels))


def said(train: Texts, asked: Texts, dev: Texts | None = None, **settings) -> list[int]:
    (found,), _ = cheap_baseline(train, dev, [asked], metric="accuracy", **settings)
    return found.tolist()


def test_words_that_tell_the_label_are_learned_in_english_and_chinese():
    good = ["a lovely film", "lovely acting and plot", "这部电影真好看", "好看极了"] * 5
    bad = ["an awful film", "awful acting and plot", "这部电影太难看", "难看极了"] * 5
    train = rows(good + bad, [1] * len(good) + [0] * len(bad))
    assert said(train, rows(["lovely", "awful", "真好看", "太难看"], [0] * 4)) == [1, 0, 1, 0]


def test_the_second_text_of_a_pair_is_a_feature_of_its_own():
    train = rows(["one text here"] * 20, [1, 0] * 10, ["agrees with it", "denies all that"] * 10)
    asked = rows(["one text here"] * 2, [-1, -1], ["it agrees", "who denies"])
    assert said(train, asked) == [1, 0]


def _marked(seed: int, count: int) -> Texts:
    """Which of two substances is the marked one? The words are the same in every row."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    texts = [
        "the effect of ## A ## on B" if label else "the effect of A on ## B ##" for label in labels
    ]
    return rows(texts, labels.tolist())


def test_markings_are_words():
    train, dev, asked = _marked(0, 40), _marked(1, 20), _marked(2, 20)
    (found,), choice = cheap_baseline(train, dev, [asked], metric="accuracy", markings=["##"])
    assert found.tolist() == asked.labels.tolist()
    assert choice.features == "words"


def test_what_does_best_on_the_dev_rows_is_chosen_and_the_cheapest_of_equals():
    rng = np.random.default_rng(0)
    endings = {0: "ing", 1: "est"}

    def made(count: int) -> Texts:
        labels = rng.integers(0, 2, count).tolist()
        stems = ("".join(rng.choice(list("bcdfg"), 6)) for _ in range(count))
        return rows([f"{stem}{endings[i]}" for stem, i in zip(stems, labels, strict=True)], labels)

    train, dev, asked = made(60), made(40), made(40)
    (found,), choice = cheap_baseline(train, dev, [asked], metric="accuracy")
    assert choice.features == "characters", "each word occurs once"
    assert choice.cost == 0.1
    assert choice.score == pytest.approx(1.0)
    assert found.tolist() == asked.labels.tolist()
    _, unasked = cheap_baseline(train, None, [asked], metric="accuracy")
    assert (unasked.features, unasked.score) == ("both", None)


def test_training_rows_of_one_label_give_that_label():
    train, asked = rows(["a", "b"], [1, 1]), rows(["c"], [0])
    assert said(train, asked, dev=rows(["d", "e"], [0, 1])) == [1]


def test_the_majority_class_is_the_most_frequent_label_of_training():
    assert majority([2, 1, 2, 0], 3).tolist() == [2, 2, 2]
    assert majority(np.array([1, 0]), 2).tolist() == [0, 0]


@pytest.mark.realdata
def test_with_its_marks_as_words_the_rival_gets_more_of_chemprot_than_without(shared_data):
    folder = shared_data / "tasks" / "chemprot"
    texts = {
        split: [json.loads(line) for line in gzip.open(folder / f"{split}.txt.gz", "rt")]
        for split in ("train", "dev", "test")
    }
    names = sorted({row["label"] for row in texts["train"]})
    train, dev, test = (
        rows([row["text"] for row in of], [names.index(row["label"]) for row in of])
        for of in texts.values()
    )
    (found,), choice = cheap_baseline(
        train, dev, [test], metric="micro_f1", markings=["<<", ">>", "[[", "]]"]
    )
    assert choice.features == "both"
    assert (found == test.labels).mean() > 0.66  # without marks among the words .647
