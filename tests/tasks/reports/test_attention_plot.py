"""What is said and drawn of attention: every layer and head, and tokens that fonts have."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from models.evaluation.attention_maps import AttentionMap
from tasks.reports import attention_plot as plots
from tasks.reports.attention_plot import (
    Tables,
    attention_card,
    attention_line,
    attention_pictures,
    attention_plot,
)
from tasks.steps.map_attention import lines
from tasks.store.artifacts import Artifact, Findings, store
from tasks.store.attention_file import ATTENTION


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


def tables(weights: np.ndarray, kind: str = "self-attention") -> Tables:
    layers, _, rows, columns = weights.shape
    asking, seen = ([f"w{i}" for i in range(count)] for count in (rows, columns))
    return Tables("Attention", kind, range(1, layers + 1), asking, seen, weights)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    rng = np.random.default_rng(0)
    tokens = ["[CLS]", "苹果", "$", "a", "[SEP]"]
    found = [
        AttentionMap(
            "self-attention", layer, tokens, tokens, rng.dirichlet(np.ones(5), (2, 5)).astype("f4")
        )
        for layer in (1, 2)
    ]
    told = {"id": "r7", "tokens": 5, "left_out": 3}
    told["kinds"] = {"self-attention": {"layers": 2, "heads": 2, "asking": 5, "seen": 5}}

    def write(folder: Path) -> Findings:
        written = pyarrow.concat_tables([lines(1, "r7", each) for each in found])
        pyarrow.parquet.write_table(written, folder / ATTENTION)
        return Findings({"texts": [told]})

    artifact, _ = store().make("attention", "attention", {}, write, {})
    drawn = list(plots._drawn(artifact))
    ((_, read),) = drawn
    np.testing.assert_array_equal(read.weights, np.stack([each.weights for each in found]))
    assert (read.layers, read.asking, read.seen) == ([1, 2], tokens, tokens)
    return artifact


def test_a_card_says_what_was_read_and_has_the_picture(made: Artifact):
    assert attention_line(made.facts) == ("one text: self-attention of 2 × 2 heads; 1 read in part")
    card = attention_card(made)
    assert "### Self-attention, text 1 (row r7), first 5 of 8 tokens" in card
    assert "![1_self-attention](data:image/png;base64," in card
    ((name, picture),) = attention_pictures(made)
    assert (name, picture) == ("1_self-attention", attention_plot(next(plots._drawn(made))[1]))


def test_many_large_tables_have_a_picture_a_layer(made: Artifact, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plots, "MOST_CELLS", 99)
    names = [name for name, _ in attention_pictures(made)]
    assert names == ["1_self-attention_layer_1", "1_self-attention_layer_2"]
    monkeypatch.setattr("tasks.reports.plots.LARGEST", 1000)
    assert "All layers are in MLflow" in attention_card(made)


def test_what_is_hidden_is_white_and_a_layer_or_a_head_takes_room():
    even = np.full((1, 1, 4, 4), 0.25)
    causal = even * np.tri(4)
    whole, half = (pixels(attention_plot(tables(each))) for each in (even, causal))
    assert whole.shape == half.shape
    white = (half == 255).all(axis=-1) & ~(whole == 255).all(axis=-1)
    colour = np.median(whole[white], axis=0)  # of a quarter; 6 of 16 cells have lost it
    same = [(each == colour).all(axis=-1).sum() for each in (half, whole)]
    assert same[0] / same[1] == pytest.approx(10 / 16, abs=0.03)
    both = pixels(attention_plot(tables(np.concatenate([even, even]))))
    more = pixels(attention_plot(tables(np.concatenate([even, even], axis=1).repeat(2, axis=0))))
    assert more.shape[0] == both.shape[0]
    assert more.shape[1] > both.shape[1] - 1
    wrapped: Any = even.repeat(6, axis=1).repeat(4, axis=2).repeat(4, axis=3) / 4
    high, wide, _ = pixels(attention_plot(tables(wrapped))).shape  # heads in two lines
    assert wide > high
