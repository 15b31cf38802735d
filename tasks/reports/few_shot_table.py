"""Answers from a prompt: scores over the number of examples, as lines, a table and a plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.reports.plots import data_address, figure, png
from tasks.reports.tables import markdown_table

LEVELS = (("chance", "chance"), ("majority", "most frequent answer"))


def asked(dataset: str, facts: Mapping[str, Any]) -> str:
    """What was asked: ``from its prompt, accuracy on 200 test rows of sst2``."""
    rows = f"{facts['rows']:,} {facts['split']} rows"
    return f"from its prompt, {facts['metric']} on {rows} of {dataset}"


def curve(facts: Mapping[str, Any]) -> str:
    """Scores by number of examples, what did not fit, and what guessing reaches."""
    points = ", ".join(f"{p['shots']}-shot {p['score']:.4f}{_short(p)}" for p in facts["curve"])
    levels = ", ".join(
        f"{called} {facts[name]:.4f}" for name, called in LEVELS if facts[name] is not None
    )
    return f"{points}; {levels}" if levels else points


def _short(point: Mapping[str, Any]) -> str:
    """What prompts lack that would have been too long."""
    said = [f"{point['examples']:.1f} fit"] if point["fewer"] else []
    said += [f"{point['cut']:,} rows cut"] if point["cut"] else []
    return f" ({', '.join(said)})" if said else ""


def seen_before(facts: Mapping[str, Any]) -> str:
    """How many rows share text with the pre-training, and what is not known about it."""
    if facts["from_elsewhere"]:
        texts = "the text of its pre-training elsewhere is not known"
        texts += f"; in {', '.join(facts['texts'])}" if facts["texts"] else ""
    else:
        texts = f"in {', '.join(facts['texts'])}"
    rows = facts["rows"] - facts["clean_rows"]
    return (
        f"rows with {facts['overlap_words']} words in a row, or all they have, that were trained"
        f" on: {rows:,} of {facts['rows']:,} ({texts})"
    )


def few_shot_card(dataset: str, facts: Mapping[str, Any]) -> str:
    """A dataset's scores by number of examples, in Markdown."""
    rows = [
        (
            str(point["shots"]),
            f"{point['score']:.4f}",
            f"{point['low']:.4f} to {point['high']:.4f}",
            "–" if point["clean"] is None else f"{point['clean']:.4f}",
            f"{point['examples']:.1f}",
            f"{point['fewer']:,}",
            f"{point['cut']:,}",
        )
        for point in facts["curve"]
    ]
    head = (
        "examples",
        facts["metric"],
        "95 % interval",
        f"{facts['clean_rows']:,} clean rows",
        "shown on average",
        "rows shown fewer",
        "rows cut",
    )
    levels = [f"{called} {facts[n]:.4f}" for n, called in LEVELS if facts[n] is not None]
    about = f"{asked(dataset, facts)[0].upper()}{asked(dataset, facts)[1:]}"
    parts = [
        f"### {dataset}",
        f"{about}, by {facts['score'].replace('_', ' ')}. {', '.join(levels)}".strip(),
        markdown_table(head, rows),
        f"{seen_before(facts)[0].upper()}{seen_before(facts)[1:]}.",
    ]
    if address := data_address(few_shot_plot(facts)):
        parts.insert(2, f"![{facts['metric']} over the number of examples]({address})")
    return "\n\n".join(parts)


def few_shot_plot(facts: Mapping[str, Any]) -> bytes:
    """Scores with their intervals over the number of examples, as a PNG."""
    points = sorted(facts["curve"], key=lambda point: point["shots"])
    shots = [point["shots"] for point in points]
    scores = [point["score"] for point in points]
    drawn = figure(6, 3)
    axes = drawn.add_subplot()
    axes.fill_between(shots, [p["low"] for p in points], [p["high"] for p in points], alpha=0.2)
    axes.plot(shots, scores, marker=".", label=f"{facts['rows']:,} {facts['split']} rows")
    for (name, called), style in zip(LEVELS, ("--", ":"), strict=True):
        if facts[name] is not None:
            axes.axhline(facts[name], linestyle=style, color="grey", linewidth=1, label=called)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks(shots, [str(each) for each in shots])
    axes.minorticks_off()
    axes.set_xlabel("examples in the prompt")
    axes.set_ylabel(facts["metric"])
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    drawn.subplots_adjust(left=0.12, right=0.98, bottom=0.16, top=0.97)
    return png(drawn)
