"""Texts and rows whose attention is drawn, for networks that attend to something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fourstage.errors import UnknownNameError
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage

ATTENTION = "attention"  # argument of recurrent networks, by which they attend or do not
# Of what one text goes through, or its target.
DEPTHS = (("num_layers", "num_cross_layers"), ("num_decoder_layers",))
PLACE = "evaluate.attention"


def resolve_attention(ledger: Ledger, stages: Sequence[ResolvedStage]) -> Mapping[str, Any]:
    """Stage, texts, number of rows and layers; empty where nothing is to be drawn.

    Args:
        ledger: Collects faults.
        stages: The recipe's.
    """
    evaluate = ledger.recipe.evaluate
    asked = evaluate and evaluate.attention
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
    if "num_heads" in stage.network:
        depth = max(sum(stage.network.get(name) or 0 for name in names) for names in DEPTHS)
        if depth and (beyond := [n for n in layers if n > depth]):
            ledger.fault(
                f"{PLACE}.layers",
                f"the network of stage {stage.name} has layers 1 to {depth}, got {beyond[0]}",
            )
    elif ATTENTION not in stage.network:
        ledger.fault(
            PLACE,
            f"family {stage.family!r} attends to nothing; Transformers do (bert, gpt2, t5…), and"
            " seq2seq with attention",
        )
    elif stage.network[ATTENTION] == "none":
        ledger.fault(
            PLACE,
            f"the network of stage {stage.name} attends to nothing (its size has attention: none);"
            " size rnnsearch or luong does",
        )
    elif layers:
        ledger.fault(f"{PLACE}.layers", "an alignment is one table, without layers; leave it out")
