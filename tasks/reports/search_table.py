"""The table of a search, as Markdown and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fourstage.recipe.search import told
from models.metrics import rank
from tasks.reports.tables import markdown_table, mean_of


def search_card(table: Mapping[str, Any]) -> str:
    """Every combination with its score, the best first."""
    best = table["points"][table["chosen"]]
    places = list(best["settings"])
    metric = table["metric"]
    ranked = sorted(
        table["points"], key=lambda point: (point is not best, -rank(metric, point["mean"]))
    )
    rows = [
        (
            *(_value(point["settings"][place]) for place in places),
            mean_of(point),
            *(f"{score:.4f}" for score in point["scores"] if len(point["scores"]) > 1),
        )
        for point in ranked
    ]
    turns = [f"seed {seed}" for seed in table["seeds"]]
    if table["folds"]:
        turns = [f"{seed}, fold {i}" for seed in turns for i in range(1, table["folds"] + 1)]
    head = (*places, metric, *(turns if len(turns) > 1 else ()))
    parts = [
        "## Search",
        f"Of{found(table)[2:]}." if len(table["points"]) > 1 else f"{found(table)}.",
        markdown_table(head, rows),
        "The chosen score is the best of several and therefore too good an estimate; the test rows,"
        " which chose nothing, give the fair one.",
    ]
    if said := widen(table):
        parts.insert(2, f"**{said}.**")
    if diverged := table["diverged"]:
        named = "; ".join(told(settings) for settings in diverged)
        parts.append(f"Left out, since a training diverged: {named}.")
    return "\n\n".join(parts)


def found(table: Mapping[str, Any]) -> str:
    """What was chosen, in one sentence without its full stop."""
    points, best = table["points"], table["points"][table["chosen"]]
    others = [point["mean"] for point in points if point is not best]
    said = f"{table['metric']} {mean_of(best)} on the {table['rows']}"
    if not others:
        return said
    span = f"{min(others):.4f}" + (f" to {max(others):.4f}" if len(others) > 1 else "")
    chosen = told(best["settings"])
    return f"of {len(points)} settings, {chosen} is best: {said}; the others {span}"


def widen(table: Mapping[str, Any]) -> str:
    """Which values were best at the end of their range; empty for none."""
    edges = [
        f"the {edge} {place.rpartition('.')[2]}" for place, edge in table["at_the_edge"].items()
    ]
    return f"Best with {' and '.join(edges)} tried: try values beyond" if edges else ""


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
