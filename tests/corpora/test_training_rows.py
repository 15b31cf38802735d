"""Draws of training rows: nested, by label, from the same beginning whatever the order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.training_rows import training_order
from fourstage.errors import RecipeError
from tests.corpora.conftest import Prepare, Prepared
from tests.corpora.made_up import rows, write


def webster(counts: Counter[str], house: int) -> list[Counter[str]]:
    """All ways to give out seats one after another, each party having one; by largest quotient."""
    ways = [Counter(dict.fromkeys(counts, 1))]
    for _ in range(house - len(counts)):
        found = []
        for way in ways:
            left = [name for name in counts if way[name] < counts[name]]
            most = max(counts[name] / (2 * way[name] + 1) for name in left)
            found += [
                way + Counter([name]) for name in left if counts[name] / (2 * way[name] + 1) == most
            ]
        ways = [Counter(dict(of)) for of in {frozenset(way.items()) for way in found}]
    return ways


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)
def test_a_draw_gives_each_label_its_seats(counts: dict[str, int], seed: int, random):
    names = [(label,) for label, count in counts.items() for _ in range(count)]
    random.shuffle(names)
    ids = [f"r{i}" for i in range(len(names))]
    order, least = training_order(ids, names, seed)
    assert least == len(counts)
    assert sorted(order) == list(range(len(ids)))
    for house in range(least, len(ids) + 1):
        drawn = Counter(names[i][0] for i in order[:house])
        assert drawn in webster(Counter(counts), house)


@given(st.lists(st.sets(st.sampled_from("abcde")).map(tuple), min_size=1, max_size=20))
def test_rows_of_several_names_have_all_of_them_first(names: list[tuple[str, ...]]):
    order, least = training_order([f"r{i}" for i in range(len(names))], names, 1)
    assert {n for i in order[:least] for n in names[i]} == {n for of in names for n in of}
    assert sorted(order) == list(range(len(names)))


def test_the_order_of_the_file_counts_for_nothing_and_the_seed_does():
    ids = [f"r{i}" for i in range(40)]
    names = [("ab"[i % 3 == 0],) for i in range(40)]
    drawn = [ids[i] for i in training_order(ids, names, 4)[0]]
    again = training_order(ids[::-1], names[::-1], 4)[0]
    assert [ids[::-1][i] for i in again] == drawn
    assert [ids[i] for i in training_order(ids, names, 5)[0]] != drawn


def split(prepared: Prepared, *names: str) -> list[dict[str, object]]:
    return [row for row in prepared.table() if row["split"] in names]


def test_draws_are_nested_and_leave_dev_and_test_rows_alone(tmp_path: Path, dataset: Prepare):
    train = write(tmp_path / "t.jsonl", rows(200))
    test = write(tmp_path / "e.jsonl", rows(60, 9))
    whole = dataset(train, test)
    small, large = (dataset(train, test, training_rows=(n, 0)) for n in (16, 64))
    for drawn, number in ((small, 16), (large, 64)):
        assert split(drawn, "dev", "test") == split(whole, "dev", "test")
        assert drawn.counts.details["splits"]["train"] == number
        assert drawn.counts.details["training_rows"]["drawn"] == number
        assert drawn.labels() == whole.labels()
        profiled = {row["id"] for row in drawn.profile()}
        assert profiled == {row["id"] for row in drawn.table()}
    ids = [{row["id"] for row in split(each, "train")} for each in (small, large, whole)]
    assert ids[0] < ids[1] < ids[2]
    labels = Counter(row["label"] for row in split(small, "train"))
    assert labels == {"pos": 8, "neg": 8}  # as in all rows
    gone = Counter(row["reason"] for row in small.rejected())
    assert gone["beyond training_rows"] == len(ids[2]) - 16


def test_overlap_that_is_reported_is_that_of_the_rows_drawn(tmp_path: Path, dataset: Prepare):
    train, test = rows(40), rows(10, 9)
    test[3]["text"] = train[3]["text"]
    test[3]["label"] = train[3]["label"]
    paths = write(tmp_path / "t.jsonl", train), write(tmp_path / "e.jsonl", test)
    for number in (2, 32):
        drawn = dataset(*paths, overlap="report", training_rows=(number, 0))
        there = train[3]["id"] in {row["id"] for row in split(drawn, "train")}
        said = [row["duplicate_of_train"] for row in drawn.profile() if row["split"] == "test"]
        assert there == (number == 32)
        assert [name for name in said if name] == ([train[3]["id"]] if there else [])


def test_more_rows_than_there_are_and_fewer_than_labels_are_refused(
    tmp_path: Path, dataset: Prepare
):
    train = write(tmp_path / "t.jsonl", rows(40))
    test = write(tmp_path / "e.jsonl", rows(10, 9))
    for number in (1, 41):
        with pytest.raises(RecipeError, match=rf"training rows, and 2 are needed.*got {number}"):
            dataset(train, test, training_rows=(number, 0))
