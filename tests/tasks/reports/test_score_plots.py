"""Pictures and table of a classifier's errors, with labels of every kind."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure

from tasks.reports import score_plots
from tasks.reports.fonts import LONGEST_NAME
from tasks.reports.score_plots import (
    MOST_DRAWN,
    MOST_LISTED,
    answers_of,
    confusion_plot,
    label_scores,
    label_table,
    precision_recall_plot,
    reliability_plot,
)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures behind the pictures."""
    figures: list[Figure] = []
    to_png = score_plots.png
    monkeypatch.setattr(score_plots, "png", lambda f: figures.append(f) or to_png(f))
    return figures


def predictions(names: list[str], rows: int = 60) -> pandas.DataFrame:
    """Every third answer is wrong, the less likely ones."""
    label = [names[i % len(names)] for i in range(rows)]
    wrong = np.arange(rows) % 3 == 0
    said = [names[(i + 1) % len(names)] if wrong[i] else label[i] for i in range(rows)]
    return pandas.DataFrame(
        {
            "label": label,
            "predicted": said,
            "probability": np.where(wrong, 0.4, 0.9),
            "baseline": [names[0]] * rows,
        }
    )


def test_a_table_of_labels_counts_what_was_found():
    answers = answers_of(
        pandas.DataFrame(
            {
                "label": ["a", "a", "a", "b"],
                "predicted": ["a", "a", "b", "b"],
                "probability": [0.9, 0.8, 0.6, 0.7],
                "baseline": ["a"] * 4,
            }
        )
    )
    rows = list(csv.DictReader(io.StringIO(label_table(label_scores(answers)))))
    assert rows[0] == {
        "number": "1",
        "name": "a",
        "rows": "3",
        "predicted": "2",
        "precision": "1.0000",
        "recall": "0.6667",
        "f1": "0.8000",
        "baseline_f1": "0.8571",
    }
    assert (rows[1]["precision"], rows[1]["recall"]) == ("0.5000", "1.0000")


def test_a_curve_ends_at_the_score_of_all_answers(drawn: list[Figure]):
    answers = answers_of(predictions(["a", "b"]))
    precision_recall_plot(answers, label_scores(answers))
    *_, all_rows = drawn[0].axes[0].lines
    assert all_rows.get_label() == "all rows"
    assert all_rows.get_ydata()[0] == 1.0  # only the sure answers, all of them right
    assert all_rows.get_ydata()[-1] == pytest.approx(2 / 3)


def test_answers_are_drawn_at_their_probability_and_the_share_that_is_right(drawn: list[Figure]):
    reliability_plot(answers_of(predictions(["a", "b"])))  # .4 and wrong, .9 and right
    axes = drawn[0].axes[0]
    *_, curve = axes.lines
    assert list(curve.get_xdata()) == pytest.approx([0.4, 0.9])
    assert list(curve.get_ydata()) == [0.0, 1.0]
    assert axes.get_title() == "60 rows; calibration error 0.200"


def test_rare_labels_of_many_share_a_line(drawn: list[Figure]):
    answers = answers_of(predictions([f"l{i:04}" for i in range(1500)], 3000))
    scores = label_scores(answers)
    confusion_plot(answers, scores)
    names = [tick.get_text() for tick in drawn[0].axes[0].get_yticklabels()]
    assert len(names) == MOST_DRAWN
    assert names[-1] == "others"
    assert len(label_table(scores).splitlines()) == 1 + MOST_LISTED


def test_names_are_drawn_or_numbered(drawn: list[Figure]):
    """Never as boxes, never over the whole picture, never as a formula."""
    answers = answers_of(predictions(["short", "名" * 100, "x" * 300, "cost $5$", "\U000f0000"]))
    scores = label_scores(answers)
    confusion_plot(answers, scores)
    names = [tick.get_text() for tick in drawn[0].axes[0].get_yticklabels()]
    assert max(map(len, names)) <= LONGEST_NAME + 2
    number = 1 + [score.name for score in scores].index("\U000f0000")
    assert f"label {number}" in names
    assert r"cost \$5\$" in names


def test_a_legend_has_every_label(drawn: list[Figure]):
    answers = answers_of(predictions(["_none_", " ", "b", "c"]))
    scores = label_scores(answers)
    precision_recall_plot(answers, scores)
    names = [text.get_text().strip() for text in drawn[0].axes[0].get_legend().get_texts()]
    blank = 1 + [score.name for score in scores].index(" ")
    assert sorted(names) == sorted(["_none_", "b", "c", f"label {blank}", "all rows"])
