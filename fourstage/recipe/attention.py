"""Texts and rows whose attention is drawn, for networks that attend to something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fourstage.errors import UnknownNameError, listed
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage
from models import catalogue
from models.signatures import settings_of

ATTENTION = "attention"  # argument of recurrent networks, by which they attend or do not
# Of what one text goes through, or its target.
DEPTHS = (("num_layers", "num_cross_layers"), ("num_decoder_layers",))
NO_ATTENTION = "none"
HEADS = "num_heads"
PLACE = "evaluate.attention"


def resolve_attention(ledger: Ledger, stages: Sequence[ResolvedStage]) -> Mapping[str, Any]:
    """Stage, texts, number of rows and layers; empty where nothing is to be drawn."""
    asked = ledger.evaluate.attention
    if not asked or not stages:
        return {}
    names = [stage.name for stage in stages]
    if asked.stage is not None and asked.stage not in names:
        where = f"{ledger.recipe.where}: {PLACE}.stage"
        ledger.faults.append(UnknownNameError(where, asked.stage, "the name of a stage", names))
        return {}
    if asked.stage is None:
        ledger.origins[f"{PLACE}.stage"] = "default: the last stage"
    stage = stages[-1] if asked.stage is None else stages[names.index(asked.stage)]
    for i, text in enumerate(asked.texts or ()):
        if not text.strip():
            ledger.fault(f"{PLACE}.texts[{i}]", "expected a text, got a blank one")
    if asked.rows and stage.dataset is None:
        ledger.fault(
            f"{PLACE}.rows",
            f"stage {stage.name} has no dataset whose rows could be read; give texts, or name the"
            " stage finetune",
        )
    _check_network(ledger, stage, asked.layers or ())
    return {
        "stage": stage.name,
        "texts": asked.texts or (),
        "rows": asked.rows or 0,
        "layers": tuple(sorted(set(asked.layers or ()))),
    }


def _check_network(ledger: Ledger, stage: ResolvedStage, layers: Sequence[int]) -> None:
    """Refuse a network that attends to nothing, and layers that it does not have."""
    folders = ledger.folders
    if HEADS in stage.network:
        depth = max(sum(stage.network.get(name) or 0 for name in names) for names in DEPTHS)
        if depth and (beyond := [n for n in layers if n > depth]):
            ledger.fault(
                f"{PLACE}.layers",
                f"the network of stage {stage.name} has layers 1 to {depth}, got {beyond[0]}",
            )
    elif ATTENTION not in stage.network:
        able = [name for name in catalogue.names("families", folders) if _attends(name, folders)]
        ledger.fault(
            PLACE,
            f"family {stage.family!r} attends to nothing; families that do: {listed(able, 5)}",
        )
    elif stage.network[ATTENTION] == NO_ATTENTION:
        known = catalogue.literals("families", stage.family, folders)["SIZES"]
        sizes = [name for name, size in known.items() if size.get(ATTENTION) != NO_ATTENTION]
        ledger.fault(
            PLACE,
            f"the network of stage {stage.name} attends to nothing (its size has attention: none);"
            f" sizes that do: {', '.join(sizes)}",
        )
    elif layers:
        ledger.fault(f"{PLACE}.layers", "an alignment is one table, without layers; leave it out")


def _attends(family: str, folders: Sequence[Path]) -> bool:
    """Whether networks of a family attend, all or those of some sizes."""
    return bool(
        {HEADS, ATTENTION} & settings_of(catalogue.file_of("families", family, folders)).keys()
    )
