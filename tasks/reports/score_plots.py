"""Errors of a classifier: confusion matrix, precision-recall curves, reliability, label scores."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.reports.fonts import drawable, families
from tasks.reports.plots import figure, png

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from models.evaluation.calibration import Calibration

MOST_DRAWN = 20  # labels in a readable confusion matrix
MOST_CURVES = 8  # labels with distinguishable curves
MOST_LISTED = 1000  # labels in a table
OTHERS = "others"


@dataclass(frozen=True)
class ClassifierAnswers:
    """A classifier's predictions on labelled rows.

    Attributes:
        names: Label names in the order of their ids.
        labels: (rows,) true label ids.
        predicted: (rows,) predicted label ids.
        probability: (rows,) probability of the predicted label.
        baseline: (rows,) label ids predicted by the cheap baseline.
        texts: (rows,) number of each row's text, as of other bootstraps; None if all differ.
    """

    names: tuple[str, ...]
    labels: np.ndarray
    predicted: np.ndarray
    probability: np.ndarray
    baseline: np.ndarray
    texts: np.ndarray | None = None


def answers_of(table: pd.DataFrame) -> ClassifierAnswers:
    """The predictions in an evaluation's stored table."""
    columns = [table[name].tolist() for name in ("label", "predicted", "baseline")]
    names = tuple(sorted({name for column in columns for name in column}))
    number = {name: i for i, name in enumerate(names)}
    labels, predicted, baseline = (np.array([number[n] for n in c], np.int64) for c in columns)
    probability = np.asarray(table["probability"], float)
    texts = np.asarray(table["text"]) if "text" in table else None
    return ClassifierAnswers(names, labels, predicted, probability, baseline, texts)


def calibration_of(answers: ClassifierAnswers) -> Calibration:
    """The calibration of the predictions."""
    from models.evaluation.calibration import calibration

    return calibration(answers.probability, answers.labels == answers.predicted)


@dataclass(frozen=True)
class LabelScore:
    """Scores of one label.

    Attributes:
        name: The label.
        rows: Number of rows with this label.
        predicted: Number of rows predicted as this label.
        precision: Share of the predictions that are correct.
        recall: Share of the label's rows that are found.
        f1: F1 score.
        baseline_f1: F1 score of the cheap baseline.
    """

    name: str
    rows: int
    predicted: int
    precision: float
    recall: float
    f1: float
    baseline_f1: float


def label_scores(answers: ClassifierAnswers) -> list[LabelScore]:
    """The scores of every label, most frequent first."""
    from models.answers.label import confusion, label_f1

    size = len(answers.names)
    counts = confusion(answers.labels, answers.predicted, size)
    ours = label_f1(counts)
    theirs = label_f1(confusion(answers.labels, answers.baseline, size))
    rows, said, right = counts.sum(1), counts.sum(0), np.diag(counts)
    found = [
        LabelScore(
            name,
            int(rows[i]),
            int(said[i]),
            float(right[i] / max(said[i], 1)),
            float(right[i] / max(rows[i], 1)),
            float(ours[i]),
            float(theirs[i]),
        )
        for i, name in enumerate(answers.names)
    ]
    return sorted(found, key=lambda score: (-score.rows, score.name))


def label_table(scores: Sequence[LabelScore]) -> str:
    """The labels' scores as CSV. Plots use the numbers for labels that no font can draw."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["number", *LabelScore.__dataclass_fields__])
    for number, score in enumerate(scores[:MOST_LISTED], 1):
        values = [f"{v:.4f}" if isinstance(v, float) else v for v in vars(score).values()]
        writer.writerow([number, *values])
    return stream.getvalue()


def confusion_plot(answers: ClassifierAnswers, scores: Sequence[LabelScore]) -> bytes:
    """The confusion matrix as a PNG, with rare labels in one row and column."""
    from models.answers.label import confusion

    drawn_labels = scores[: MOST_DRAWN - 1] if len(scores) > MOST_DRAWN else scores
    names = [drawable(score.name, f"label {n}") for n, score in enumerate(drawn_labels, 1)]
    if len(drawn_labels) < len(scores):
        names.append(OTHERS)
    place = {answers.names.index(score.name): i for i, score in enumerate(drawn_labels)}
    renumbered = np.array([place.get(i, len(names) - 1) for i in range(len(answers.names))])
    size = len(names)
    counts = confusion(renumbered[answers.labels], renumbered[answers.predicted], size)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = 2.4 + 0.42 * size
    drawn = figure(side + 0.6, side)
    axes = drawn.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row in range(size):
        for column in range(size):
            if counts[row, column]:
                colour = "white" if shares[row, column] > 0.5 else "black"
                told = f"{counts[row, column]:,}"
                axes.text(column, row, told, ha="center", va="center", color=colour, fontsize=7)
    font = {"family": families(), "size": 8}
    axes.set_xticks(range(size), names, rotation=90, fontdict=font)
    axes.set_yticks(range(size), names, fontdict=font)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true label")
    axes.set_title(f"{len(answers.labels):,} rows; colour: share of a label's rows", fontsize=9)
    drawn.tight_layout()
    return png(drawn)


def precision_recall_plot(answers: ClassifierAnswers, scores: Sequence[LabelScore]) -> bytes:
    """Precision and recall over the threshold on the probability, as a PNG.

    A label's curve ends at threshold 0, which gives the scores in the table.
    """
    right = answers.labels == answers.predicted
    drawn = figure(6.4, 4.2)
    axes = drawn.add_subplot()
    for number, score in enumerate(scores[:MOST_CURVES], 1):
        its = answers.predicted == answers.names.index(score.name)
        _curve(
            axes,
            answers.probability[its],
            right[its],
            score.rows,
            label=drawable(score.name, f"label {number}"),
            linewidth=1,
        )
    _curve(
        axes,
        answers.probability,
        right,
        len(right),
        label="all rows",
        color="black",
        linewidth=2,
    )
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("recall: share of a label's rows that are found")
    axes.set_ylabel("precision: share of answers that are right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        prop={"family": families(), "size": 8},
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    drawn.tight_layout()
    return png(drawn)


def reliability_plot(answers: ClassifierAnswers) -> bytes:
    """How often answers of each probability are right, as a PNG; ideally, as often as it says."""
    found = calibration_of(answers)
    drawn = figure(4.2, 4.2)
    axes = drawn.add_subplot()
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    axes.plot(found.confidence, found.accuracy, color="black", linewidth=1)
    # The area of a point is its share of the rows.
    axes.scatter(found.confidence, found.accuracy, 300 * found.rows / found.rows.sum(), "black")
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("probability of the answer")
    axes.set_ylabel("share of answers that are right")
    axes.set_title(f"{found.rows.sum():,} rows; calibration error {found.error:.3f}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    drawn.tight_layout()
    return png(drawn)


def _curve(axes: Axes, probability: np.ndarray, right: np.ndarray, rows: int, **look: Any) -> None:
    if not len(right) or not rows:
        return
    order = np.argsort(-probability, kind="stable")
    # Answers with equal probability pass the threshold together.
    ends = np.flatnonzero(np.diff(probability[order], append=-1.0))
    found = np.cumsum(right[order])[ends]
    marker = "." if len(ends) < 30 else ""
    axes.plot(found / rows, found / (ends + 1), marker=marker, **look)
