"""What is counted of a dataset's answers, and how a report shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from corpora.answer_counts import answer_counts, answer_table, check_learnable
from fourstage.errors import ContractViolation
from tests.corpora.conftest import source_of


@dataclass
class Known:
    answer: str = ""
    names: tuple[str, ...] = ()
    num_answers: int = 1


SPANS = [Known(names=("person", "place", "person"), num_answers=3), Known(num_answers=0)]


@pytest.mark.parametrize(
    ("kind", "rows", "table"),
    [
        (
            "spans",
            SPANS,
            {"person": "2", "place": "1", "all answers": "3", "rows without an answer": "1"},
        ),
        ("extract", SPANS, {"all answers": "3", "rows without an answer": "1"}),
        (
            "text",
            [Known(num_answers=2), Known()],
            {"all answers": "3", "rows without an answer": "0"},
        ),
        ("label", [Known(names=("a",))] * 1200, {"a": "1,200"}),
        (
            "number",
            [Known("1.0"), Known("2.5"), Known("5.0")],
            {"minimum": "1", "maximum": "5", "mean": "2.833"},
        ),
        (
            "choice",
            [Known("10"), Known("2"), Known("2")],
            {"choice 2 is right": "2", "choice 10 is right": "1"},
        ),
        ("mine", [Known("x")], {}),
    ],
)
def test_each_kind_is_counted_in_its_own_terms(kind: str, rows: list[Known], table: dict[str, str]):
    counts = answer_counts(kind, {"train": rows, "test": []})
    shown = {name: numbers["train"] for name, numbers in answer_table(counts).items()}
    assert shown == table


def test_rare_names_are_counted_together():
    rows = [Known(names=tuple(f"n{i}" for i in range(n))) for n in range(1, 61)]
    counts: dict[str, Any] = answer_counts("label_set", {"train": rows, "dev": rows[:1]})
    table = answer_table(counts)
    assert list(table)[:2] == ["n0", "n1"]
    assert table["20 others"] == {"train": str(sum(range(1, 21))), "dev": "0"}
    assert table["n0"] == {"train": "60", "dev": "1"}
    assert table["all answers"]["train"] == "60"


@pytest.mark.parametrize(
    ("kind", "rows", "said"),
    [
        ("label_set", [Known('["a"]')] * 3, "all 3 training rows have the same set of labels"),
        ("label_set", [Known("[]", num_answers=0)] * 3, "none of 3 training rows has a label"),
        ("number", [Known("1.0")] * 3, "all 3 training rows have the same number"),
        ("label_set", [Known("[]", num_answers=0), Known('["a"]')], ""),
    ],
)
def test_training_rows_that_all_have_the_same_answer_are_refused(kind, rows, said):
    fields = {"text": "text", "label": "label"}
    source = source_of(files="x", fields=fields, answers=kind)
    if not said:
        check_learnable(source, rows)
        return
    with pytest.raises(ContractViolation, match=said):
        check_learnable(source, rows)
