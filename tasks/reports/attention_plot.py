"""What tokens attend to: a line, a card, and pictures of every layer and head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.reports.fonts import drawable, families
from tasks.reports.plots import data_address, figure, png
from tasks.store.artifacts import Artifact
from tasks.store.attention_file import ATTENTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL = 0.14  # inches of a pair of tokens; of a single table `LARGE_CELL`
LARGE_CELL = 0.24
MOST_CELLS = 160_000  # of a picture with all layers, 16 million pixels; beyond it one a layer
MOST_HEADS = 4  # beside one another in the picture of one layer
COLOURS = "magma_r"  # evenly darker to the eye
TICKS = (0, 0.05, 0.2, 0.5, 1)
TOLD = {
    "self-attention": ("token", "attends to"),
    "encoder self-attention": ("token of the text", "attends to"),
    "decoder self-attention": ("token of the target", "attends to"),
    "cross-attention": ("token of the target", "attends to the text"),
    "alignment": ("token of the target", "attends to the text"),
}  # by kind: what rows and columns are


@dataclass(frozen=True)
class Tables:
    """What is attended to in a text, of one kind.

    Attributes:
        title: The kind and the text.
        kind: One of `TOLD`.
        layers: Their numbers, (L,).
        asking: T tokens, as they are spelled.
        seen: S tokens.
        weights: (L, H, T, S).
    """

    title: str
    kind: str
    layers: Sequence[int]
    asking: Sequence[str]
    seen: Sequence[str]
    weights: np.ndarray

    def of_layer(self, place: int) -> Tables:
        """One of its layers, by its place."""
        own = slice(place, place + 1)
        return Tables(
            self.title, self.kind, self.layers[own], self.asking, self.seen, self.weights[own]
        )


def attention_line(facts: Mapping[str, Any]) -> str:
    """How many texts are read, with how many layers and heads, and how many are cut."""
    texts = facts["texts"]
    if not texts:
        return "no text; there are no dev rows"
    parts = [
        f"{kind}" + (f" of {own['layers']} × {own['heads']} heads" if kind != "alignment" else "")
        for kind, own in texts[0]["kinds"].items()
    ]
    count = "one text" if len(texts) == 1 else f"{len(texts):,} texts"
    told = f"{count}: {', '.join(parts)}"
    cut = sum(1 for text in texts if text["left_out"])
    return f"{told}; {cut:,} read in part" if cut else told


def attention_card(made: Artifact) -> str:
    """Pictures of each text, in Markdown; of one that is too large, the last layer alone."""
    parts = [f"{attention_line(made.facts)}."]
    for name, tables in _drawn(made):
        head = f"### {tables.title}"
        whole = data_address(attention_plot(tables))
        if whole:
            parts += [head, f"![{name}]({whole})"]
            continue
        where = f"All layers are in MLflow, in the run's `evaluation/attention_{name}….png`."
        last = data_address(attention_plot(tables.of_layer(len(tables.layers) - 1)))
        parts += [head, where]
        if last and len(tables.layers) > 1:
            parts.append(f"![{name}, layer {tables.layers[-1]}]({last})")
    return "\n\n".join(parts)


def attention_pictures(made: Artifact) -> Iterator[tuple[str, bytes]]:
    """Pictures of each text and kind, with their names; of many large tables one a layer."""
    for name, tables in _drawn(made):
        if tables.weights.size <= MOST_CELLS or len(tables.layers) == 1:
            yield name, attention_plot(tables)
            continue
        for place, layer in enumerate(tables.layers):
            yield f"{name}_layer_{layer}", attention_plot(tables.of_layer(place))


def attention_plot(tables: Tables) -> bytes:
    """A table of each layer and head, as a PNG; layers below one another, heads side by side.

    All have one scale, from 0 to 1, by the square root, so that small weights are seen and even
    ones are pale. What is hidden, such as later tokens, is white.
    """
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import Rectangle

    layers, heads, rows, columns = tables.weights.shape
    single = layers == heads == 1
    wide = heads if layers > 1 else min(heads, MOST_HEADS)
    panels = tables.weights.reshape(layers * heads, rows, columns)
    high = -(-len(panels) // wide)
    cell, gap = (LARGE_CELL, 0) if single else (CELL, 2)
    image = np.full((high * (rows + gap) - gap, wide * (columns + gap) - gap), np.nan)
    places = [
        (place // wide * (rows + gap), place % wide * (columns + gap))
        for place in range(len(panels))
    ]
    for (top, left), panel in zip(places, panels, strict=True):
        image[top : top + rows, left : left + columns] = np.where(panel > 0, panel, np.nan)

    size = 9 if single else 6.5
    before, above = 0.1 + _widest(tables.asking, size), 0.1 + _widest(tables.seen, size)
    margins = {"left": before + 0.45, "right": 0.75, "top": 0.6, "bottom": above + 0.35}
    if single:
        margins |= {"top": above + 0.65, "bottom": 0.15}
    width = max(image.shape[1] * cell + margins["left"] + margins["right"], 3.6)
    height = image.shape[0] * cell + margins["top"] + margins["bottom"]
    drawn = figure(width, height)
    inner = (image.shape[1] * cell / width, image.shape[0] * cell / height)
    axes = drawn.add_axes((margins["left"] / width, margins["bottom"] / height, *inner))
    norm = PowerNorm(0.5, vmin=0, vmax=1)
    shown = axes.imshow(image, COLOURS, norm, aspect="auto", interpolation="nearest")
    for (top, left), number in zip(places, range(len(panels)), strict=True):
        frame = Rectangle(
            (left - 0.5, top - 0.5), columns, rows, fill=False, edgecolor="0.6", linewidth=0.6
        )
        axes.add_patch(frame)
        frame.set_clip_on(False)
        if not single:
            told = f"layer {tables.layers[number // heads]}, head {number % heads + 1}"
            axes.text(left - 0.5, top - 0.8, told, fontsize=7, va="bottom")
    _label(axes, tables, places, size, single)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=2)
    bar_height = min(1.4, image.shape[0] * cell)
    bar = drawn.add_axes(
        (
            (margins["left"] + image.shape[1] * cell + 0.15) / width,
            (margins["bottom"] + image.shape[0] * cell - bar_height) / height,
            0.1 / width,
            bar_height / height,
        )
    )
    drawn.colorbar(shown, cax=bar, ticks=TICKS, format="%g")
    bar.tick_params(labelsize=6.5, length=2)
    bar.spines[:].set_linewidth(0.4)
    said = tables.title
    if single and tables.kind != "alignment":
        said += f", layer {tables.layers[0]}, head 1"
    drawn.text(0.1 / width, 1 - 0.1 / height, said, fontsize=9, va="top", family=families())
    return png(drawn, scale=True)


def _label(
    axes: Axes,
    tables: Tables,
    places: Sequence[tuple[int, int]],
    size: float,
    single: bool,
) -> None:
    """Write the tokens beside the first table of each line and below the last of each column."""
    _, _, rows, columns = tables.weights.shape
    font = {"family": families(), "size": size}
    asking = [drawable(token, str(i)) for i, token in enumerate(tables.asking, 1)]
    seen = [drawable(token, str(i)) for i, token in enumerate(tables.seen, 1)]
    tops = sorted({top for top, _ in places})
    lefts = sorted({left for _, left in places})
    axes.set_yticks([t + i for t in tops for i in range(rows)], asking * len(tops), fontdict=font)
    axes.set_xticks(
        [left + i for left in lefts for i in range(columns)], seen * len(lefts), fontdict=font
    )
    axes.tick_params(axis="x", rotation=90)
    if single:
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
    row, column = TOLD[tables.kind]
    axes.set_xlabel(column, fontsize=7.5, color="0.35")
    axes.set_ylabel(row, fontsize=7.5, color="0.35")


def _widest(tokens: Sequence[str], size: float) -> float:
    """Inches that the longest of some labels may take; a Chinese character is twice as wide."""
    from models.inputs.display import display_width

    shown = [drawable(token, str(i)) for i, token in enumerate(tokens, 1)]
    return max(map(display_width, shown)) * size * 0.62 / 72


def _drawn(made: Artifact) -> Iterator[tuple[str, Tables]]:
    """The tables of each text and kind, with a name for a file."""
    if ATTENTION not in made.outputs:
        return
    import pandas

    found = pandas.read_parquet(made.path(ATTENTION))
    for number, text in enumerate(made.facts["texts"], 1):
        own = found[found["text"] == number]
        for kind in text["kinds"]:
            tables = _tables(own[own["kind"] == kind], _title(number, text, kind), kind)
            yield f"{number}_{kind.replace(' ', '_')}", tables


def _title(number: int, text: Mapping[str, Any], kind: str) -> str:
    """The kind, and the text by its number and, of a row, its id."""
    said = f"{kind[0].upper()}{kind[1:]}, text {number}"
    if text["id"] != str(number):
        said += f" (row {drawable(text['id'], 'of the dataset')})"
    if text["left_out"]:
        said += f", first {text['tokens']} of {text['tokens'] + text['left_out']:,} tokens"
    return said


def _tables(found: Any, title: str, kind: str) -> Tables:
    """The tables of a data frame with the lines of one text and kind."""
    layers = sorted(found["layer"].unique().tolist())
    one = found[(found["layer"] == layers[0]) & (found["head"] == 1)]
    asking = one[one["seen"] == 1]["asking_token"].tolist()
    seen = one[one["asking"] == 1]["seen_token"].tolist()
    weights = found["weight"].to_numpy().reshape(len(layers), -1, len(asking), len(seen))
    return Tables(title, kind, layers, asking, seen, weights)
