"""What a stage learns beside its dataset: every setting explicit."""

from __future__ import annotations

from typing import Any

from fourstage.recipe.ledger import Ledger
from fourstage.recipe.schema import Stage
from models import catalogue
from models.inputs.mixture import WRITTEN

DEFAULTS = {"limit": None, "temperature": 1.0}


def resolve_mixture(
    ledger: Ledger, at: str, stage: Stage, head: str | None, prefix: str | None
) -> dict[str, Any] | None:
    """The mixture as `models.training.stage.StageSettings` has it; None without.

    Args:
        ledger: Collects faults and origins.
        at: Path of the stage.
        stage: The stage.
        head: Name of its head; None where there is none that is known.
        prefix: The head's prefix.
    """
    said = stage.mixture
    if said is None or stage.stage != "finetune" or head is None:
        return None
    place = f"{at}.mixture"
    able = catalogue.saying("heads", "MIXES", ledger.folders)
    if head not in able:
        ledger.fault(
            place,
            f"a mixture's answers are written as texts, expected head {' or '.join(able)}, got"
            f" {head}; leave it out",
        )
        return None
    found = ledger.filled(place, said, DEFAULTS)
    for name in said.beside:
        _check_dataset(ledger, f"{place}.beside.{name}", name, stage.dataset)
    own = {f"{at}.head.{head}.prefix": prefix}
    _check_prefixes(ledger, own | {f"{place}.beside.{n}": p for n, p in said.beside.items()})
    beside = {
        name: {"prefix": prefix, "answers": ledger.facts(name).answers}
        for name, prefix in sorted(said.beside.items())
    }
    return {**found, "beside": beside}


def _check_dataset(ledger: Ledger, place: str, name: str, own: str | None) -> None:
    """Refuse the stage's own dataset, sources without labels, and answers a text cannot hold."""
    if name == own:
        ledger.fault(place, "it is the stage's own dataset, which is read anyway; leave it out")
        return
    ledger.source(place, name, labelled=True)
    facts = ledger.facts(name)
    if facts.labelled and facts.answers not in WRITTEN:
        ledger.fault(
            place,
            f"expected rows answered by {', '.join(WRITTEN)}, which can be written as a text; those"
            f" of source {name} are answered by {facts.answers} (its key 'answers')",
        )


def _check_prefixes(ledger: Ledger, prefixes: dict[str, str | None]) -> None:
    """Refuse prefixes that do not tell the tasks apart."""
    first: dict[str, str] = {}
    for place, prefix in prefixes.items():
        plain = " ".join(str(prefix or "").split()).casefold()
        if not plain:
            ledger.fault(
                place,
                "expected a prefix that tells this task from the others, such as 'summarize:', got"
                " nothing",
            )
        elif plain in first:
            ledger.fault(
                place,
                f"expected a prefix of its own, got that of {first[plain]} (case and blanks are not"
                " told apart)",
            )
        first.setdefault(plain, place)
