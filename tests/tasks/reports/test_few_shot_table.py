"""Scores over the number of examples, as lines, a table and a plot."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tasks.reports.few_shot_table import curve, few_shot_card, few_shot_plot, seen_before


def point(shots: int, score: float, **changes: Any) -> dict[str, Any]:
    own = {"low": score - 0.1, "high": score + 0.1, "clean": score, "examples": float(shots)}
    return {"shots": shots, "score": score, **own, "fewer": 0, "cut": 0, **changes}


@pytest.fixture
def facts() -> dict[str, Any]:
    return {
        "split": "test",
        "rows": 200,
        "metric": "accuracy",
        "score": "per_token",
        "curve": [
            point(0, 0.25),
            point(4, 0.5),
            point(16, 0.75, examples=9.5, fewer=120, cut=3, clean=None),
        ],
        "chance": 0.25,
        "majority": 0.3,
        "overlap_words": 13,
        "seen_before": 0.05,
        "clean_rows": 190,
        "texts": ["notes", "letters"],
        "from_elsewhere": False,
    }


def test_what_did_not_fit_is_told(facts):
    assert curve(facts) == (
        "0-shot 0.2500, 4-shot 0.5000, 16-shot 0.7500 (9.5 fit, 3 rows cut);"
        " chance 0.2500, most frequent answer 0.3000"
    )
    card = few_shot_card("rows", facts)
    assert "| 16 | 0.7500 | 0.6500 to 0.8500 | – | 9.5 | 120 | 3 |" in card
    assert "accuracy on 200 test rows of rows, by per token. chance 0.2500" in card


def test_rows_that_were_trained_on_are_told_with_the_texts_that_are_known(facts):
    assert seen_before(facts).endswith("trained on: 10 of 200 (in notes, letters)")
    told = seen_before(facts | {"from_elsewhere": True, "texts": []})
    assert told.endswith("10 of 200 (the text of its pre-training elsewhere is not known)")


def test_the_plot_is_a_picture_of_these_numbers(facts):
    picture = few_shot_plot(facts)
    assert picture == few_shot_plot(facts)
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 5
    higher = [point(p["shots"], p["score"] + 0.1) for p in facts["curve"]]
    assert picture != few_shot_plot(facts | {"curve": higher})
