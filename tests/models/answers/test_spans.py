"""Entity scores against those of seqeval 1.2.2, whose plain installation fails today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.tags import spans_of_tags
from models.answers.spans import Spans
from models.served.tags import spans_of

GOLDEN = json.loads((Path(__file__).parent / "golden" / "seqeval.json").read_text("utf-8"))
RIGHT = ["O B-A I-A O B-B", "B-A B-A I-A", "B-B I-B I-B O", "O O", "B-C O O"]
SAID = ["O B-A I-A O B-A", "B-A I-A I-A", "B-B I-B I-B B-A", "O I-B", "B-C O O"]


def answers(rows: list[str]) -> list[str]:
    return [json.dumps(spans_of(row.split())) for row in rows]


def scores(right: list[str], said: list[str]) -> dict[str, float]:
    (table,) = Spans.statistics(right, [said])
    sums = np.asarray(table.sum(0))
    return {name: float(metric(sums)) for name, metric in Spans.metrics.items()}


def test_the_scores_are_those_of_seqeval():
    # f1_score, precision_score, recall_score, and f1_score with average="macro"
    expected = {
        "entity_f1": 0.46153846153846156,
        "entity_precision": 0.42857142857142855,
        "entity_recall": 0.5,
        "entity_macro_f1": 0.5952380952380952,
    }
    assert scores(answers(RIGHT), answers(SAID)) == pytest.approx(expected)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["scheme"])
def test_tags_of_every_scheme_get_the_scores_of_seqeval(case: dict[str, Any]):
    right, said = (
        [json.dumps(spans_of_tags(row.split(), case["scheme"])) for row in case[side]]
        for side in ("right", "said")
    )
    expected = {name: case[name] for name in Spans.metrics}
    assert scores(right, said) == pytest.approx(expected, abs=1e-12)


def test_borders_and_type_must_both_be_right_and_no_spans_score_0():
    right = '[[0, 3, "A"]]'
    assert scores([right], [right])["entity_f1"] == 1
    for wrong in ('[[0, 4, "A"]]', '[[0, 3, "B"]]', "[]"):
        assert scores([right], [wrong])["entity_f1"] == 0
    assert set(scores(["[]"], ["[]"]).values()) == {0.0}


def test_the_names_are_the_types_and_rows_without_an_answer_have_none():
    assert Spans.names(['[[0, 1, "b"], [2, 3, "a"]]', "", "[]", '[[0, 9, "b"]]']) == ("a", "b")
