"""What is said and drawn of words and of words in sentences."""

from __future__ import annotations

import io
from functools import partial

import numpy as np
import pytest
from PIL import Image

from tasks.reports.polysemy import senses_card, senses_line, senses_plot
from tasks.reports.word_in_context import contexts_card, contexts_line, layers_plot
from tasks.reports.word_map import map_card, map_line, map_plot

LAYERS = [
    {"layer": "0", "threshold": 0.91, "chosen": 0.52, "accuracy": 0.51},
    {"layer": "1", "threshold": 0.72, "chosen": 0.61, "accuracy": 0.6},
]
JUDGED = {
    "split": "test",
    "rows": 1000,
    "chosen_on": "dev",
    "chosen_by": 998,
    "skipped": 2,
    "static": False,
    "layer": "1",
    "layers": LAYERS,
    "metrics": {"accuracy": 0.6},
    "constant": 0.5,
    "form": 0.55,
}


def told(layer: str, same: int, points: list[list[float]]) -> dict:
    nearest = [1, 0, 3, 2]
    cosines = {"within": 0.9, "between": 0.3}
    return {"layer": layer, "nearest": nearest, "same_sense": same, "points": points, **cosines}


SENSES = {
    "senses": ["fruit", "fruit", "公司", "公司"],
    "layers": [
        told("0", 2, [[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [0.1, 0.1]]),
        told("1", 3, [[0.0, 0.0], [0.1, 0.0], [0.5, 0.1], [0.6, 0.1]]),
        told("2", 4, [[0.0, 0.0], [0.1, 0.0], [2.0, 2.1], [2.1, 2.1]]),
    ],
}


def test_the_chosen_layer_is_said_beside_a_constant_and_every_layer_is_in_the_table():
    line = contexts_line(JUDGED)
    assert "accuracy 0.6000 on 1,000 test rows by layer 1" in line
    assert "chosen on 998 dev rows (constant 0.5000, whether written alike 0.5500)" in line
    assert "2 rows without one marked word a sentence are left out" in line
    assert "one vector a word" not in line
    assert "one vector a word" in contexts_line(JUDGED | {"static": True})
    card = contexts_card("mcl_wic", JUDGED)
    assert "| 0 | 0.9100 | 0.5200 | 0.5100 |" in card
    assert "![accuracy by layer](data:image/png;base64," in card


def test_the_first_and_the_last_layer_are_said_and_each_nearest_is_named():
    line = senses_line(SENSES)
    assert line.startswith("layer 0 0.900 within a sense, 0.300 between")
    assert line.endswith("nearest of the same sense 4 of 4")
    card = senses_card("apple", SENSES)
    assert "| 1 | 0.9000 | 0.3000 | 3 of 4 |" in card
    assert "| fruit 1 | fruit 2 | fruit 2 |" in card


MAP = {
    "words": ["king", "苹果"],
    "points": [[0.5, 0.0], [-0.5, 0.1]],
    "nearest": {"king": [["queen", 0.71]], "苹果": [["梨", 0.6]]},
    "unknown": ["zzz"],
}


def test_words_are_numbered_beside_their_neighbours_and_those_left_out_are_counted():
    assert map_line(MAP) == "2 of 3 words; the others have no vector"
    assert "| 2 | 苹果 | 梨 0.60 |" in map_card(MAP)


@pytest.mark.parametrize(
    ("draw", "facts", "key"),
    [
        (layers_plot, JUDGED, "layers"),
        (partial(senses_plot, "apple"), SENSES, "layers"),
        (map_plot, MAP, "points"),
    ],
)
def test_pictures_are_the_same_each_time_and_show_the_numbers(draw, facts, key):
    picture = draw(facts)
    other = draw(facts | {key: facts[key][::-1]})
    assert picture == draw(facts) != other
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 5
