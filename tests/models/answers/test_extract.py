"""Scores of extracted answers, as the official scripts of SQuAD and CMRC define them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.answers.extract import Extract


def scores(rows: list[tuple[list[str], str]]) -> dict[str, float]:
    """Scores of (references, predicted answer); an empty string is no answer."""
    right = [json.dumps([[0, text] for text in references]) for references, _ in rows]
    said = [json.dumps([[0, text]] if text else []) for _, text in rows]
    (table,) = Extract.statistics(right, [said])
    sums = np.asarray(table.sum(0))
    return {name: float(metric(sums)) for name, metric in Extract.metrics.items()}


@pytest.mark.parametrize(
    ("references", "said", "exact", "f1"),
    [
        (["the Normans"], "Normans.", 1, 1),
        (["in the 10th and 11th centuries"], "10th century", 0, 2 * (1 / 2 * 1 / 5) / (7 / 10)),
        (["a b b c", "x"], "b b d", 0, 2 * 2 / (3 + 3)),  # the article a is no word
        (["France"], "Spain", 0, 0),
        (["Spain", "France"], "france", 1, 1),
        (["France"], "", 0, 0),
        ([], "", 1, 1),
        ([], "France", 0, 0),
        (["the"], "a", 1, 1),  # nothing is left of either
    ],
)
def test_squad(references, said, exact, f1):
    found = scores([(references, said)])
    assert (found["exact_match"], found["f1"]) == pytest.approx((exact, f1))


@pytest.mark.parametrize(
    ("references", "said", "exact", "f1"),
    [
        (["北京大学"], "北京大学。", 1, 1),
        (["北京大学"], "在北京大", 0, 2 * 3 / (4 + 4)),
        (["北京大学"], "北大京学", 0, 2 * 1 / (4 + 4)),  # a common run, not common characters
        (["2008年", "08年"], "2008 年", 0, 1),  # blanks count for the exact match alone
        (["《红楼梦》"], "红楼梦", 1, 1),
        (["MS-DOS系统"], "msdos系统", 1, 1),
        (["上海"], "", 0, 0),
    ],
)
def test_cmrc(references, said, exact, f1):
    found = scores([(references, said)])
    assert (found["cmrc_exact_match"], found["cmrc_f1"]) == pytest.approx((exact, f1))


def test_questions_with_and_without_an_answer_are_also_scored_apart():
    found = scores([(["a b"], "b"), (["c d"], "c"), ([], ""), ([], "x"), ([], "y")])
    assert found["exact_match"] == pytest.approx((1 + 0 + 1) / 5)
    assert found["f1"] == pytest.approx((1 + 2 / 3 + 1) / 5)
    assert found["has_answer_exact_match"] == pytest.approx(1 / 2)
    assert found["has_answer_f1"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["no_answer_accuracy"] == pytest.approx(1 / 3)


def test_there_is_a_name_for_no_answer_if_some_question_has_none():
    assert Extract.names(['[[0, "a"]]', "[]"]) == ("no_answer",)
    assert Extract.names(['[[0, "a"]]', ""]) == ()
