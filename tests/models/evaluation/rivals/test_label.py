"""The cheap baseline of labels: what it can see, how it is chosen, in English and Chinese."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from models.evaluation.rivals import RawRows, fit


def rows(texts: list[str], labels: list[str], second: list[str] | None = None) -> RawRows:
    return RawRows((texts, *([second] if second else [])), labels)


def said(train: RawRows, asked: RawRows, dev: RawRows | None = None, **settings) -> list[str]:
    return fit("label", train, dev, metric="accuracy", **settings).answer(asked)


def test_words_that_tell_the_label_are_learned_in_english_and_chinese():
    good = ["a lovely film", "lovely acting and plot", "这部电影真好看", "好看极了"] * 5
    bad = ["an awful film", "awful acting and plot", "这部电影太难看", "难看极了"] * 5
    train = rows(good + bad, ["good"] * len(good) + ["bad"] * len(bad))
    asked = rows(["lovely", "awful", "真好看", "太难看"], [""] * 4)
    assert said(train, asked) == ["good", "bad", "good", "bad"]


def test_the_second_text_of_a_pair_is_a_feature_of_its_own():
    frames = ["{} with it", "who {} here", "all that {}", "{}"]
    texts = [frame.format(verb) for frame in frames * 3 for verb in ("agrees", "denies")]
    train = rows(["one text here"] * 24, ["yes", "no"] * 12, texts)
    asked = rows(["one text here"] * 2, ["", ""], ["it agrees", "who denies"])
    assert said(train, asked) == ["yes", "no"]


def test_whether_two_texts_share_their_words_is_seen():
    rng = np.random.default_rng(0)

    def pairs(number: int) -> RawRows:
        first, second, labels = [], [], []
        for _ in range(number):
            words = rng.choice([f"{a}{b}" for a in "bcdfg" for b in "aeiou"], 8, replace=False)
            same = bool(rng.integers(2))
            first.append(" ".join(words[:4]))
            second.append(" ".join(words[:4][::-1] if same else words[4:]))
            labels.append("same" if same else "other")
        return rows(first, labels, second)

    train, dev, asked = pairs(60), pairs(20), pairs(40)
    assert said(train, asked, dev) == asked.answers
    assert said(train, asked) == asked.answers
    as_set = {"same": '["same"]', "other": "[]"}
    sets = [RawRows(own.columns, [as_set[a] for a in own.answers]) for own in (train, asked)]
    assert fit("label_set", sets[0], None, metric="micro_f1").answer(sets[1]) == sets[1].answers


def _marked(seed: int, count: int) -> RawRows:
    """Which of two substances is the marked one? The words are the same in every row."""
    labels = np.random.default_rng(seed).choice(["A", "B"], count).tolist()
    texts = {"A": "the effect of ## A ## on B", "B": "the effect of A on ## B ##"}
    return rows([texts[label] for label in labels], labels)


def test_markings_are_words():
    train, dev, asked = _marked(0, 40), _marked(1, 20), _marked(2, 20)
    rival = fit("label", train, dev, metric="accuracy", markings=["##"])
    assert rival.answer(asked) == asked.answers
    assert rival.facts["features"] == "words"


def test_what_does_best_on_the_dev_rows_is_chosen_and_the_cheapest_of_equals():
    rng = np.random.default_rng(0)
    endings = {"gerund": "ing", "superlative": "est"}

    def made(count: int) -> RawRows:
        labels = rng.choice(list(endings), count).tolist()
        stems = ("".join(rng.choice(list("bcdfg"), 6)) for _ in range(count))
        return rows([f"{stem}{endings[i]}" for stem, i in zip(stems, labels, strict=True)], labels)

    train, dev, asked = made(60), made(40), made(40)
    rival = fit("label", train, dev, metric="accuracy")
    assert rival.facts == {"features": "characters", "cost": 0.1, "score": pytest.approx(1.0)}
    assert rival.answer(asked) == asked.answers
    undecided = fit("label", train, None, metric="accuracy").facts
    assert (undecided["features"], undecided["score"]) == ("both", None)


def test_training_rows_of_one_label_give_that_label():
    train, asked = rows(["a", "b"], ["x", "x"]), rows(["c"], ["y"])
    assert said(train, asked, dev=rows(["d", "e"], ["y", "x"])) == ["x"]


def test_the_majority_class_is_the_most_frequent_label_of_training_and_the_first_of_equals():
    for labels, most in ((["2", "10", "2", "0"], "2"), (["10", "9"], "9")):
        train = rows([f"text {label}" for label in labels], labels)
        assert fit("label", train, None, metric="accuracy").majority == most


@pytest.mark.realdata
def test_with_its_marks_as_words_the_rival_gets_more_of_chemprot_than_without(shared_data):
    folder = shared_data / "tasks" / "chemprot"
    train, dev, test = (
        rows([row["text"] for row in of], [row["label"] for row in of])
        for split in ("train", "dev", "test")
        for of in [[json.loads(line) for line in gzip.open(folder / f"{split}.txt.gz", "rt")]]
    )
    rival = fit("label", train, dev, metric="micro_f1", markings=["<<", ">>", "[[", "]]"])
    assert rival.facts["features"] == "both"
    right = np.array(rival.answer(test)) == np.array(test.answers)
    assert right.mean() > 0.66  # without marks among the words .647
