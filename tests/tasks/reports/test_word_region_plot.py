"""Words and the regions of their picture, as a plot on a stage's card."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from tasks.reports.cards import stage_card
from tasks.reports.plots import LARGEST
from tasks.reports.word_region_plot import MOST_TOKENS, word_region_plot
from tests.tasks.lifecycle import Lifecycle


def row(tokens: list[str], regions: int, *names: str) -> dict:
    tables = {name: np.eye(len(tokens), regions).tolist() for name in names}
    return {"id": "dev/$1", "tokens": tokens, **tables}


def size(plot: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(plot)) as picture:
        return picture.size


def test_each_table_of_each_row_is_drawn_and_long_texts_are_cut():
    short = row(["[CLS]", "a", "红", "$x", "[SEP]"], 3, "attention")
    assert size(word_region_plot([short, short]))[1] > size(word_region_plot([short]))[1]
    both = row(["a", "b"], 36, "attention", "plan")
    assert size(word_region_plot([both]))[0] > size(word_region_plot([short]))[0]
    longer = [row(["a"] * count, 2, "attention") for count in (MOST_TOKENS, 500)]
    assert size(word_region_plot(longer[:1])) == size(word_region_plot(longer[1:]))
    assert word_region_plot([short]) == word_region_plot([short])


def test_a_stages_card_shows_it(lifecycle: Lifecycle):
    plot = word_region_plot([row(["w"] * MOST_TOKENS, 36, "attention", "plan")] * 3)
    card = stage_card(lifecycle["stage domain"], reused=False, word_regions=plot)
    address = card.split("![Words and the regions of their picture](data:image/png;base64,")[1]
    assert base64.b64decode(address.split(")")[0]) == plot
    assert len(card) < LARGEST
