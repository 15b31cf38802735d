"""Senses of a word, layer by layer: a line, a card, and a picture of its vectors in the plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.reports.fonts import drawable, families
from tasks.reports.plots import data_address, figure, png
from tasks.reports.tables import markdown_table

COLOURS = 10  # of Matplotlib's cycle; further senses begin it again


def senses_line(facts: Mapping[str, Any]) -> str:
    """The first layer's and the last one's cosines, and how often the nearest has the sense."""
    told = [
        f"layer {layer['layer']} {layer['within']:.3f} within a sense, {layer['between']:.3f}"
        f" between, nearest of the same sense {layer['same_sense']} of {len(facts['senses'])}"
        for layer in _ends(facts)
    ]
    return "; ".join(told)


def senses_card(word: str, facts: Mapping[str, Any]) -> str:
    """The layers of a word and the nearest occurrence of each one, in Markdown."""
    layers, names = facts["layers"], _numbered(facts["senses"])
    rows = [
        (
            layer["layer"],
            f"{layer['within']:.4f}",
            f"{layer['between']:.4f}",
            f"{layer['same_sense']} of {len(names)}",
        )
        for layer in layers
    ]
    head = ("layer", "cosine within a sense", "between senses", "nearest of the same sense")
    parts = [f"### {word}", markdown_table(head, rows)]
    if address := data_address(senses_plot(word, facts)):
        parts.append(f"![{word} in the plane]({address})")
    nearest = [
        (name, *(names[layer["nearest"][number]] for layer in _ends(facts)))
        for number, name in enumerate(names)
    ]
    head = ("sentence", *(f"nearest in layer {layer['layer']}" for layer in _ends(facts)))
    return "\n\n".join([*parts, markdown_table(head, nearest)])


def senses_plot(word: str, facts: Mapping[str, Any]) -> bytes:
    """The occurrences by their first layer and by the last one, in the plane, as a PNG."""
    senses = list(dict.fromkeys(facts["senses"]))
    ends = _ends(facts)
    drawn = figure(4 * len(ends), 3.6)
    for place, layer in enumerate(ends, 1):
        axes = drawn.add_subplot(1, len(ends), place)
        for number, sense in enumerate(senses):
            own = [i for i, each in enumerate(facts["senses"]) if each == sense]
            points = [layer["points"][i] for i in own]
            label = drawable(sense, f"sense {number + 1}")
            colour = f"C{number % COLOURS}"
            axes.scatter(*zip(*points, strict=True), s=14, color=colour, label=label)
            for nth, point in enumerate(points, 1):
                axes.annotate(str(nth), point, (3, 3), textcoords="offset points", fontsize=7)
        axes.set_title(f"layer {layer['layer']}", fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    drawn.axes[0].legend(prop={"family": families(), "size": 7}, frameon=False)
    drawn.tight_layout()
    return png(drawn)


def _ends(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The first layer and the last one; the layer, if there is one alone."""
    layers = facts["layers"]
    return [layers[0], layers[-1]] if len(layers) > 1 else [layers[0]]


def _numbered(senses: list[str]) -> list[str]:
    """Names of sentences: ``fruit 1``, ``fruit 2``, ``company 1`` and so on."""
    return [f"{sense} {senses[: i + 1].count(sense)}" for i, sense in enumerate(senses)]
