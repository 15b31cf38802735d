"""Cards for stages and contracts, as Markdown. Prefect and MLflow only display them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from data_contracts.verdict import printable
from fourstage.errors import listed
from models.stage_format import HISTORY, NETWORK
from tasks.reports.layer_mix import mix_table
from tasks.reports.plots import data_address, loss_plot
from tasks.reports.tables import markdown_table, number
from tasks.store.ancestry import made_as
from tasks.store.artifacts import NOTES, Artifact
from tasks.store.steps import MOST_NAMED


def stage_card(
    artifact: Artifact,
    reused: bool,
    links: Mapping[str, str | None] | None = None,
    before: Mapping[str, float] | None = None,
    after: Mapping[str, float] | None = None,
    labelled: Mapping[str, Mapping[str, Any]] | None = None,
    word_regions: bytes | None = None,
) -> str:
    """Card of a stage: key, cost, change in held-out loss, learned mix of layers, loss plot.

    Args:
        artifact: The stage.
        reused: Whether this run reused it from the store.
        links: Address by name, such as ``{"MLflow run": "http://…"}``; None if there is no page.
        before: Held-out loss by corpus before the stage.
        after: Held-out loss by corpus after the stage.
        labelled: Counts of its datasets, by name; empty or None without any.
        word_regions: Plot of words and the regions of their picture; None for a blind network.
    """
    made, notes = artifact.facts, artifact.notes
    git = notes.get("git", {})
    commit = str(git.get("commit") or "no git checkout")[:12] + (
        " and edits" if git.get("dirty") else ""
    )
    facts = {
        "status": "reused" if reused else made_as(artifact),
        "key": f"`{artifact.key[:12]}`",
        "weights": f"`{artifact.outputs.get(NETWORK, artifact.digest)[:12]}`",
        "steps": number(made.get("steps")),
        "tokens": number(made.get("tokens")),
        "seconds": number(notes.get("seconds"), 1),
        "tokens/s": number(notes.get("tokens_per_second") or None),
        "weights trained": number(notes.get("trained_weights")),
        "code": commit,
    }
    tasks = {
        name: {
            "rows kept": f"{number(counts['kept'])} of {number(counts['read'])}",
            "contradictory rows": number(counts["contradictory"]["rows"]),
        }
        for name, counts in (labelled or {}).items()
    }
    if len(tasks) == 1:
        facts |= next(iter(tasks.values()))
    parts = [f"### {artifact.name}", _pairs(facts)]
    if len(tasks) > 1:
        passes = made.get("passes", {})
        rows = [(name, *own.values(), number(passes.get(name), 2)) for name, own in tasks.items()]
        parts.append(markdown_table(("task", "rows kept", "contradictory rows", "passes"), rows))
    if after:
        rows = [
            (
                corpus,
                number((before or {}).get(corpus), 2),
                number(value, 2),
                _change((before or {}).get(corpus), value),
            )
            for corpus, value in sorted(after.items())
        ]
        parts.append(markdown_table(("held-out loss", "before", "after", "change"), rows))
    if mixed := mix_table(artifact.folder):
        parts.append(mixed)
    if picture := _loss_picture(artifact):
        parts.append(f"![Loss over steps]({picture})")
    if word_regions and (address := data_address(word_regions)):
        parts.append(f"![Words and the regions of their picture]({address})")
    if shown := _links(links):
        parts.append(shown)
    return "\n\n".join(parts) + "\n"


def left_out(facts: Mapping[str, Any]) -> str:
    """Note on labels that an evaluation's macro-F1 leaves out; empty if there are none."""
    means = [name for name in ("macro_f1", "entity_macro_f1") if name in facts["metrics"]]
    if not means or not facts["labels_left_out"]:
        return ""
    names = listed(list(map(printable, facts["labels_left_out"])), MOST_NAMED)
    return f"{means[0]} leaves out labels in no {facts['split']} row and no prediction: {names}"


def contract_card(contract: Artifact) -> str:
    """Card of a contract: verdict, figures, report."""
    facts = contract.facts
    shown = {
        "verdict": f"**{facts.get('verdict')}**",
        **{name: number(facts.get(name)) for name in ("read", "kept", "quarantined", "removed")},
    }
    parts = [f"### {contract.name}", _pairs(shown)]
    if facts.get("reason"):
        parts.append(str(facts["reason"]))
    if "report.md" in contract.outputs:
        parts.append(contract.path("report.md").read_text(encoding="utf-8"))
    return "\n\n".join(parts) + "\n"


def _loss_picture(artifact: Artifact) -> str | None:
    path = artifact.folder / NOTES / HISTORY
    if not path.is_file():
        return None
    picture = loss_plot(json.loads(path.read_text(encoding="utf-8")))
    return data_address(picture) if picture else None


def _pairs(facts: Mapping[str, str]) -> str:
    return markdown_table(tuple(facts), [tuple(facts.values())])


def _links(links: Mapping[str, str | None] | None) -> str:
    return " · ".join(f"[{name}]({address})" for name, address in (links or {}).items() if address)


def _change(before: float | None, after: float) -> str:
    return "–" if before is None else f"{after - before:+.2f}"
