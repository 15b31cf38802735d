"""Captions of other pictures, where few captions have one."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.inputs.caption_table import CaptionTable
from tests.models.memory_corpus import MemoryCaptions

BOXES = np.zeros((1, 4), np.float32)
SHOWN = [0] * 90 + [1] * 5 + [2] * 5  # the picture of each of 100 captions


def captions(shown: list[int]) -> MemoryCaptions:
    """Each with a text of its own."""
    pictures = [(BOXES, np.full((1, 3), picture, np.float32)) for picture in shown]
    return MemoryCaptions([[5 + i // 10, 5 + i % 10] for i in range(len(shown))], pictures)


@pytest.mark.parametrize("candidates", [1, 3])
@pytest.mark.parametrize("method", ["another_picture", "another_caption"])
def test_a_caption_of_another_picture_is_found_however_few_there_are(method: str, candidates: int):
    another = getattr(CaptionTable(captions(SHOWN)), method)
    every = np.arange(len(SHOWN))
    pairs: set[tuple[int, int]] = set()
    for seed in range(10):
        found = another(every, candidates, np.random.default_rng(seed))
        assert np.array_equal(found, another(every, candidates, np.random.default_rng(seed)))
        pairs |= {(own, SHOWN[other]) for own, other in zip(SHOWN, found.tolist(), strict=True)}
    possible = {(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)}
    assert pairs <= possible
    assert {(0, 1), (1, 0), (2, 0)} <= pairs


def test_a_caption_is_refused_only_where_every_other_has_its_picture():
    table = CaptionTable(captions([0] * 60 + [1]))
    found = table.another_picture(np.arange(61), 1, np.random.default_rng(0))
    assert found[:60].tolist() == [60] * 60
    alike = CaptionTable(captions([0] * 3))
    with pytest.raises(ContractViolation, match=r"document 1 of 3 .* found no other caption with"):
        alike.another_picture(np.array([1]), 1, np.random.default_rng(0))
