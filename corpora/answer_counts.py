"""Counts a dataset's answers by split, and checks that there is something to learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from data_contracts.sources import Source
from fourstage.errors import ContractViolation

_SHOWN = 40  # names in a report
_WORDS = {
    "number": "all answers",
    "rows_without": "rows without an answer",
    "minimum": "minimum",
    "maximum": "maximum",
    "mean": "mean",
}


class AnswerFacts(Protocol):
    """What is known of a row's answer.

    Attributes:
        answer: The answer, or its digest.
        names: Names in it: labels, or types of spans.
        num_answers: How many labels, spans or reference answers it has.
    """

    answer: str
    names: tuple[str, ...]
    num_answers: int


def answer_counts(kind: str, rows: Mapping[str, Sequence[AnswerFacts]]) -> dict[str, Any]:
    """Counts for people and reports, by split.

    Args:
        kind: Kind of answer.
        rows: The rows of each split.

    Returns:
        ``labels``, how often each name occurs, where answers have names; and ``answers``: number,
        rows without any, or minimum, maximum and mean, or rows by the number of the right choice.
    """
    counts: dict[str, Any] = {}
    if kind in ("label", "label_set", "spans"):
        names = {
            split: Counter(n for row in some for n in row.names) for split, some in rows.items()
        }
        counts["labels"] = {split: dict(sorted(found.items())) for split, found in names.items()}
    if kind in ("label_set", "spans", "extract", "text"):
        counts["answers"] = {
            split: {
                "number": sum(row.num_answers for row in some),
                "rows_without": sum(not row.num_answers for row in some),
            }
            for split, some in rows.items()
        }
    elif kind == "number":
        counts["answers"] = {split: _range(some) for split, some in rows.items()}
    elif kind == "choice":
        chosen = {split: Counter(row.answer for row in some) for split, some in rows.items()}
        counts["answers"] = {split: dict(sorted(found.items())) for split, found in chosen.items()}
    return counts


def answer_table(counts: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The counts as a table for a report: what is counted, then the number of each split.

    Args:
        counts: Those of a preparation, with what `answer_counts` returned.

    Returns:
        Numbers written out, by split, by row: names from frequent to rare, at most `_SHOWN`.
    """
    labels, answers = counts.get("labels", {}), counts.get("answers", {})
    names = sum(map(Counter, labels.values()), Counter[str]())
    table = {
        name: {split: f"{found.get(name, 0):,}" for split, found in labels.items()}
        for name, _ in names.most_common(_SHOWN)
    }
    if len(names) > _SHOWN:
        rest = [name for name, _ in names.most_common()[_SHOWN:]]
        table[f"{len(rest):,} others"] = {
            split: f"{sum(found.get(name, 0) for name in rest):,}"
            for split, found in labels.items()
        }
    kinds = dict.fromkeys(kind for found in answers.values() for kind in found)
    for kind in sorted(kinds, key=int) if all(map(str.isdigit, kinds)) else kinds:
        table[_WORDS.get(kind, f"choice {kind} is right")] = {
            split: _written(found.get(kind)) for split, found in answers.items()
        }
    return table


def check_learnable(source: Source, train: Sequence[AnswerFacts]) -> None:
    """Check that the training rows have different answers; labels are left to the contract.

    Raises:
        ContractViolation: All numbers, texts or sets of labels are equal, or no row has a label,
            span or answer.
    """
    kind = source.answers
    if kind in ("label_set", "spans", "extract") and not any(row.num_answers for row in train):
        what = {"label_set": "a label", "spans": "a span", "extract": "an answer"}[kind]
        raise ContractViolation(
            f"source {source.name}: none of {len(train):,} training rows has {what}, so there is "
            "nothing to learn; name the right column as 'label' in the source's 'fields'."
        )
    if kind in ("number", "text", "label_set") and len({row.answer for row in train}) == 1:
        what = {"label_set": "set of labels"}.get(kind, kind)
        raise ContractViolation(
            f"source {source.name}: all {len(train):,} training rows have the same {what}, so "
            "there is nothing to learn; name the right column as 'label' in the source's 'fields'."
        )


def _written(number: float | None) -> str:
    if number is None:
        return "–"
    return f"{number:,}" if isinstance(number, int) else f"{number:.4g}"


def _range(rows: Sequence[AnswerFacts]) -> dict[str, float]:
    numbers = [float(row.answer) for row in rows]
    if not numbers:
        return {}
    mean = sum(numbers) / len(numbers)
    return {"minimum": min(numbers), "maximum": max(numbers), "mean": mean}
