"""Chosen words: their neighbours in a table, and a picture of them in the plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.reports.fonts import drawable, families
from tasks.reports.plots import data_address, figure, png
from tasks.reports.tables import markdown_table


def map_line(facts: Mapping[str, Any]) -> str:
    """How many words are drawn."""
    drawn = len(facts["words"])
    told = f"{drawn:,} of {drawn + len(facts['unknown']):,} words"
    return f"{told}; the others have no vector" if facts["unknown"] else told


def map_card(facts: Mapping[str, Any]) -> str:
    """The picture and each word's neighbours, in Markdown."""
    rows = [
        (
            str(number),
            word,
            ", ".join(f"{name} {cosine:.2f}" for name, cosine in facts["nearest"][word]),
        )
        for number, word in enumerate(facts["words"], 1)
    ]
    parts = [f"{map_line(facts)}.", markdown_table(("number", "word", "nearest, cosine"), rows)]
    if address := data_address(map_plot(facts)):
        parts.insert(1, f"![words in the plane]({address})")
    return "\n\n".join(parts)


def map_plot(facts: Mapping[str, Any]) -> bytes:
    """The words by the first two principal components of their vectors, as a PNG."""
    drawn = figure(6, 4.5)
    axes = drawn.add_subplot()
    pairs = zip(facts["words"], facts["points"], strict=True)
    for number, (word, point) in enumerate(pairs, 1):
        axes.scatter(*point, s=10, color="C0")
        axes.annotate(
            drawable(word, str(number)),
            point,
            (3, 3),
            textcoords="offset points",
            fontsize=8,
            family=families(),
        )
    axes.margins(0.15)  # room for the words at the edge
    axes.set_xticks([])
    axes.set_yticks([])
    drawn.tight_layout()
    return png(drawn)
