"""Parts of the training rows for cross-validation."""

from __future__ import annotations

from corpora.folds import fold_rows
from corpora.prepared import PreparedRow

ROWS = [
    *(
        PreparedRow(f"t{i}", f"Text number {i // 2}" + "!" * (i % 2), None, "a", "train")
        for i in range(400)
    ),
    PreparedRow("d", "A dev row", None, "a", "dev"),
    PreparedRow("e", "A test row", None, "a", "test"),
]


def test_every_training_row_is_predicted_once_and_no_other_is_read():
    parts = [fold_rows(ROWS, number, 4) for number in range(1, 5)]
    for rows in parts:
        assert [row.id for row in rows] == [f"t{i}" for i in range(400)]
    predicted = [row.id for rows in parts for row in rows if row.split == "dev"]
    assert sorted(predicted) == sorted(f"t{i}" for i in range(400))
    assert all(60 < sum(row.split == "dev" for row in rows) < 140 for rows in parts)


def test_rows_of_one_text_are_in_one_part():
    for row, twin in zip(*(iter(fold_rows(ROWS, 2, 4)),) * 2, strict=True):
        assert row.split == twin.split


def test_rows_that_differ_in_markings_alone_are_one_text():
    marked = [
        PreparedRow(f"{i}{mark}", f"Sentence {i} says {mark}x{mark}", None, "a", "train")
        for i in range(50)
        for mark in ("", "<<")
    ]
    for row, twin in zip(*(iter(fold_rows(marked, 1, 2, ["<<"])),) * 2, strict=True):
        assert row.split == twin.split
