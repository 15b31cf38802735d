"""Which evaluation rows were in the training text: planted overlaps."""

from __future__ import annotations

import random

import numpy as np
import pytest

from corpora.contamination import contaminated

LONG = " ".join(f"word{i}" for i in range(40))


def found(rows: list[list[str]], documents: list[str], **settings: int) -> list[bool]:
    return contaminated(rows, documents, **settings).tolist()


@pytest.mark.parametrize("words", [13, 8, 1])
def test_as_many_words_in_a_row_count_and_one_less_does_not(words):
    part = LONG.split()[5 : 5 + words]
    assert found([[LONG]], [f"Before, {', '.join(part).upper()}! After."], words=words) == [True]
    assert found([[LONG]], [" ".join(["before", *part[:-1], "after"])], words=words) == [False]


def test_thirteen_words_are_the_default():
    words = LONG.split()
    assert found([[LONG]], [" ".join(words[3:16])]) == [True]
    assert found([[LONG]], [" ".join(words[3:15])]) == [False]


def test_of_a_shorter_text_all_must_be_there_anywhere():
    short = "A fine film, they said."
    assert found([[short]], ["It was a FINE film they said, and left."]) == [True]
    assert found([[short]], ["A fine film, he said.", "they said a fine film"]) == [False]
    assert found([["***"], [""]], ["*** anything"]) == [False, False]


def test_scripts_without_spaces_count_two_characters_for_a_word():
    rng = random.Random(1)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(60))
    assert found([[text]], ["前" + text[10:36] + "后"]) == [True]
    assert found([[text]], ["前" + text[10:35] + "后"]) == [False]
    assert found([[text]], [text[10:26]], words=8) == [True]


def test_planted_rows_are_found_and_no_others():
    rng = np.random.default_rng(0)
    made = lambda n: " ".join(f"w{i}" for i in rng.integers(0, 5000, n))  # noqa: E731
    rows = [[made(int(rng.integers(3, 60))), made(20)] for _ in range(300)]
    documents = [made(400) for _ in range(50)]
    planted = set(rng.choice(300, 25, replace=False).tolist())
    for number, row in enumerate(sorted(planted)):
        words = rows[row][number % 2].split()
        start = int(rng.integers(0, max(1, len(words) - 13)))
        held = documents[number].split()
        held[100:100] = words[start : start + 13]
        documents[number] = " ".join(held)
    dirty = contaminated(rows, documents)
    assert set(np.flatnonzero(dirty).tolist()) == planted
    assert not contaminated(rows, []).any()
