"""Episodes in words: accuracy by ways and shots, with the cheap baseline's and that of guessing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

BASELINE = "TF-IDF"
PROTOTYPES_HEAD = ("dataset", "rows", "asked", "network", BASELINE, "guessing")


def prototypes_cells(facts: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """What is asked, then the network's accuracy, the cheap baseline's and that of guessing."""
    for name, score in facts["metrics"].items():
        yield (
            name.replace("_way_", "-way ").replace("_shot", "-shot"),
            f"{score:.4f} ± {facts['reach'][name]:.4f}",
            f"{facts['baseline'][name]:.4f} ± {facts['baseline_reach'][name]:.4f}",
            f"{facts['chance'][name]:.4f}",
        )


def prototypes_line(facts: Mapping[str, Any]) -> str:
    """The scores on one line."""
    scores = ", ".join(
        f"{asked} {network} ({BASELINE} {baseline})"
        for asked, network, baseline, _ in prototypes_cells(facts)
    )
    named = facts.get("named")
    return scores if named is None else f"{scores}; {named:.0%} of the rows name an entity"
