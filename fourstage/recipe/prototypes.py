"""Datasets whose rows a pre-trained network classifies by prototypes: every setting explicit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage
from fourstage.recipe.word_in_context import check_vectors

# Those of FewRel's authors.
DEFAULTS: Mapping[str, Any] = {"ways": [5, 10], "shots": [1, 5], "episodes": 2000}


def resolve_prototypes(
    ledger: Ledger, stages: Sequence[ResolvedStage]
) -> dict[str, dict[str, Any]]:
    """Settings by dataset."""
    asked = ledger.evaluate.prototypes or {}
    found = {}
    for name, said in asked.items():
        place = f"evaluate.prototypes.{name}"
        ledger.source(place, name, labelled=True)
        ledger.answers(place, name, "label", "a prototype of a class")
        found[name] = ledger.filled(place, said, DEFAULTS)
        for key in ("ways", "shots"):
            if len(set(found[name][key])) < len(found[name][key]):
                ledger.fault(f"{place}.{key}", "expected different numbers, got one twice")
    if asked:
        check_vectors(ledger, "evaluate.prototypes", stages)
    return found
