"""A cheap baseline for each kind of answer, under the kind's name: what does reading buy?

A baseline's module has ``NAME`` and ``MAJORITY``, what it and the most frequent answer are called,
and ``fit``. A kind without a file, such as a project's own, has no baseline.

The class `Rival` keeps its old name: a class's name is part of the keys of what uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.label_order import in_order

if TYPE_CHECKING:
    import numpy as np

SEES = "words × regions + linear SVM"  # what labels of rows with pictures have beside
KINDS = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py")))


@dataclass(frozen=True)
class RawRows:
    """Rows as raw texts.

    Attributes:
        columns: The rows' first texts and, for pairs, their second texts.
        answers: Correct answers, "" for none.
        choices: The choices of each row, if rows have some.
        pictures: (rows, S) numbers of each row's picture, if rows have some.
    """

    columns: tuple[list[str], ...]
    answers: list[str]
    choices: Sequence[Sequence[str]] | None = None
    pictures: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.answers)

    def only(self, rows: Sequence[int] | np.ndarray) -> RawRows:
        """The rows with the given numbers."""
        return RawRows(
            tuple([texts[i] for i in rows] for texts in self.columns),
            [self.answers[i] for i in rows],
            self.choices and [self.choices[i] for i in rows],
            None if self.pictures is None else self.pictures[list(rows)],
        )

    def answered(self) -> RawRows:
        """The rows that have an answer."""
        return self.only([i for i, answer in enumerate(self.answers) if answer])


@dataclass(frozen=True)
class Rival:
    """A cheap baseline that has learned from the training rows.

    Attributes:
        answer: Rows → an answer for each.
        majority: The answer that is most frequent in training, or for a number their mean.
        facts: What was chosen on the dev rows, and its score there, as plain JSON.
    """

    answer: Callable[[RawRows], list[str]]
    majority: str
    facts: Mapping[str, Any]


def fit(
    kind: str, train: RawRows, dev: RawRows | None, *, metric: str, markings: Sequence[str] = ()
) -> Rival:
    """Fit the cheap baseline of a kind of answer.

    Args:
        kind: One of `KINDS`.
        train: Training rows, of which one or more has an answer.
        dev: Rows to choose settings on; None or without answers for defaults.
        metric: The metric for the choice, one of the kind's.
        markings: Marker strings in the texts, such as those around entities.
    """
    dev = dev.answered() if dev is not None else None
    module = import_module(f"{__name__}.{kind}")
    return module.fit(
        train.answered(), dev if dev is not None and len(dev) else None, metric, markings
    )


def names(kind: str) -> tuple[str, str]:
    """What a kind's baseline and its most frequent answer are called; both "" without one."""
    if kind not in KINDS:
        return "", ""
    module = import_module(f"{__name__}.{kind}")
    return module.NAME, module.MAJORITY


def names_of(kinds: Iterable[str]) -> tuple[str, str]:
    """What the baselines and the most frequent answers of several kinds are called together."""
    called = {names(kind) for kind in kinds} - {("", "")}
    return called.pop() if len(called) == 1 else ("cheap baseline", "most frequent answer")


def most_frequent(answers: Sequence[str]) -> str:
    """The most frequent answer; of several, the first in order."""
    counts = Counter(answers)
    return max(in_order(counts), key=lambda answer: counts[answer])
