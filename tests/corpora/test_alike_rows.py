"""Rows with near-duplicate texts, and passages that many rows share."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from corpora.alike_rows import AlikeRows
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import write

FOOTERS = [" ".join(f"{name}{i}" for i in range(57)) for name in ("footer", "other")]


def bodies(count: int) -> list[str]:
    rng = random.Random(4)
    return [" ".join(f"w{rng.randrange(5000)}" for _ in range(20)) for _ in range(count)]


def groups(texts: list[str]) -> list[list[str]]:
    rows = [(str(number), text) for number, text in enumerate(texts)]
    alike = AlikeRows(largest=0.1)
    for key, text in rows:
        alike.add(key, text)
    return list(alike.groups(lambda: rows))


@pytest.mark.parametrize("footers", [1, 2])
def test_rows_that_share_a_footer_are_divided_all_the_same(
    tmp_path: Path, dataset: Prepare, footers: int
):
    records = [
        {"id": str(i), "text": f"{body} {FOOTERS[i % footers]}", "label": "pos" if i % 3 else "neg"}
        for i, body in enumerate(bodies(400))
    ]
    splits = dataset(write(tmp_path / "t.jsonl", records)).counts.details["splits"]
    assert 20 <= splits["dev"] <= 60
    assert 20 <= splits["test"] <= 60


def test_near_duplicates_that_share_a_footer_with_all_rows_are_still_one_group():
    texts = [f"{body} {FOOTERS[0]}" for body in bodies(200)]
    words = texts[7].split()
    texts += [" ".join(["changed", *words[1:]]), texts[9], FOOTERS[0]]
    assert groups(texts) == [["200", "7"], ["201", "9"]]


def test_without_a_large_group_what_many_rows_share_counts():
    """Copies with changes of one text, which are a twentieth of the rows and more."""
    texts = bodies(150)
    words = texts[7].split()
    texts += [" ".join([*words[:place], "changed", *words[place + 1 :]]) for place in range(10)]
    assert groups(texts) == [sorted(["7", *map(str, range(150, 160))])]


def test_few_rows_are_grouped_by_all_that_they_share():
    assert len(groups([f"{body} {FOOTERS[0]}" for body in bodies(99)])[0]) == 99
