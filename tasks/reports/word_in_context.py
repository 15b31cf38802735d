"""Accuracy on a word in two sentences, layer by layer: a line, a card and a plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.reports.plots import data_address, figure, png
from tasks.reports.tables import markdown_table

ONE_VECTOR = "one vector a word, which can only tell its forms apart"


def contexts_line(facts: Mapping[str, Any]) -> str:
    """The accuracy of the layer that was chosen, of a constant, and of how words are written."""
    told = (
        f"accuracy {facts['metrics']['accuracy']:.4f} on {facts['rows']:,} {facts['split']} rows by"
        f" layer {facts['layer']} and a threshold, chosen on {facts['chosen_by']:,}"
        f" {facts['chosen_on']} rows (constant {facts['constant']:.4f},"
        f" whether written alike {facts['form']:.4f})"
    )
    if facts["skipped"]:
        told += f"; {facts['skipped']:,} rows without one marked word a sentence are left out"
    return f"{told}; {ONE_VECTOR}" if facts["static"] else told


def contexts_card(dataset: str, facts: Mapping[str, Any]) -> str:
    """Each layer's threshold and accuracies, in Markdown."""
    rows = [
        (
            layer["layer"],
            f"{layer['threshold']:.4f}",
            f"{layer['chosen']:.4f}",
            f"{layer['accuracy']:.4f}",
        )
        for layer in facts["layers"]
    ]
    on, split = facts["chosen_on"], facts["split"]
    head = ("layer", "threshold on the cosine", f"accuracy on {on}", f"accuracy on {split}")
    line = contexts_line(facts)
    parts = [f"### {dataset}", f"{line[0].upper()}{line[1:]}.", markdown_table(head, rows)]
    if address := data_address(layers_plot(facts)):
        parts.insert(2, f"![accuracy by layer]({address})")
    return "\n\n".join(parts)


def layers_plot(facts: Mapping[str, Any]) -> bytes:
    """Accuracies by layer, as a PNG."""
    names = [layer["layer"] for layer in facts["layers"]]
    drawn = figure(6, 3)
    axes = drawn.add_subplot()
    for key, split, style in (
        ("accuracy", facts["split"], "-"),
        ("chosen", f"{facts['chosen_on']}, which chose the thresholds", ":"),
    ):
        values = [layer[key] for layer in facts["layers"]]
        axes.plot(range(len(names)), values, linestyle=style, marker=".", label=split)
    for key, called, style in (("form", "written alike", "-."), ("constant", "constant", "--")):
        axes.axhline(facts[key], linestyle=style, color="grey", linewidth=1, label=called)
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names[-1]) > 2 else 0)
    axes.set_xlabel("layer")
    axes.set_ylabel("accuracy")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    drawn.tight_layout()
    return png(drawn)
