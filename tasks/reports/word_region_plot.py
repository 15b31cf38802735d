"""Words and the regions of their picture as a plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.reports.fonts import drawable, families
from tasks.reports.plots import figure, png
from tasks.store.artifacts import Artifact
from tasks.store.predictions import WORD_REGIONS

MOST_TOKENS = 24
TITLES = {"attention": "attention", "plan": "what is carried"}
# Even attention is pale. All of a plan adds up to 1, so that there the largest is darkest.
DARKEST = {"attention": 1.0, "plan": None}


def word_regions_of(measured: Artifact) -> bytes | None:
    """The plot of a measured stage; None for a network that sees no pictures."""
    if WORD_REGIONS not in measured.outputs:
        return None
    return word_region_plot(json.loads(measured.path(WORD_REGIONS).read_text(encoding="utf-8")))


def word_region_plot(found: Sequence[Mapping[str, Any]]) -> bytes:
    """Tables of tokens by regions, side by side for each row, as a PNG.

    Regions are numbered as `fourstage show` does.

    Args:
        found: Rows, as `models.evaluation.word_regions` gives them.
    """
    names = [name for name in TITLES if name in found[0]]
    tallest = min(max(len(row["tokens"]) for row in found), MOST_TOKENS)
    drawn = figure(3.4 * len(names), (0.9 + 0.16 * tallest) * len(found))
    for number, row in enumerate(found):
        tokens = [
            drawable(token, f"token {i}") for i, token in enumerate(row["tokens"][:MOST_TOKENS], 1)
        ]
        for place, name in enumerate(names):
            axes = drawn.add_subplot(len(found), len(names), number * len(names) + place + 1)
            axes.imshow(
                row[name][:MOST_TOKENS], cmap="Blues", vmin=0, vmax=DARKEST[name], aspect="auto"
            )
            regions = range(len(row[name][0]))
            axes.set_xticks(regions, [str(region + 1) for region in regions], fontsize=6)
            font = {"family": families(), "size": 7}
            axes.set_yticks(range(len(tokens)), tokens, fontdict=font)
            most = max(map(max, row[name]))
            told = f"{drawable(row['id'], f'row {number + 1}')}, {TITLES[name]} up to {most:.2f}"
            axes.set_title(told, fontsize=7)
    drawn.tight_layout()
    return png(drawn)
