"""Parts of the training rows for cross-validation."""

from __future__ import annotations

import pytest

from corpora.folds import fold_rows
from corpora.prepared import PreparedRow
from fourstage.errors import ContractViolation

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


def test_chinese_rows_that_differ_only_in_markings_are_in_one_part():
    marked = [
        PreparedRow(f"{i}{text}", f"第{i}句{text}", None, "a", "train")
        for i in range(50)
        for text in ("天气很好", "<<天气>>很好", "天气<<很好>>")
    ]
    found = iter(fold_rows(marked, 1, 2, ["<<", ">>"]))
    for row, second, third in zip(found, found, found, strict=True):
        assert row.split == second.split == third.split


def test_rows_of_one_group_are_in_one_part_and_each_part_has_some():
    groups = {f"t{i}": f"group {i % 6}" for i in range(400)}
    sides: dict[str, set[int]] = {}
    for number in range(1, 6):
        held = [row.id for row in fold_rows(ROWS, number, 5, groups=groups) if row.split == "dev"]
        assert held
        for row in held:
            sides.setdefault(groups[row], set()).add(number)
    assert sorted(sides) == [f"group {i}" for i in range(6)]
    assert all(len(parts) == 1 for parts in sides.values())


def test_fewer_groups_than_parts_are_cut_by_text():
    groups = {f"t{i}": f"group {i % 3}" for i in range(400)}
    assert fold_rows(ROWS, 2, 4, groups=groups) == fold_rows(ROWS, 2, 4)


@pytest.mark.parametrize("folds", [2, 5, 10])
def test_each_part_has_some_of_few_rows(folds: int):
    few = ROWS[:20]  # ten texts, each twice
    held = [
        {row.text.rstrip("!") for row in fold_rows(few, number, folds) if row.split == "dev"}
        for number in range(1, folds + 1)
    ]
    assert all(held)
    assert sum(map(len, held)) == 10


def test_more_parts_than_texts_are_refused():
    with pytest.raises(ContractViolation, match=r"search.folds: expected at most 10, .* got 11"):
        fold_rows(ROWS[:20], 1, 11)
