"""How a stage trains a pre-trained network: what of it, and with which regularisation."""

from __future__ import annotations

from typing import Any

from fourstage.recipe.ledger import Ledger
from fourstage.recipe.schema import Stage

LORA = {"rank": 8, "alpha": 16.0, "targets": ["query", "value"], "dropout": 0.0}
KEYS = ("freeze", "gradual_unfreezing", "lora")
REGULARISERS = {"r_drop": {"alpha": 1.0}, "fgm": {"epsilon": 1.0}}


def resolve_tuning(ledger: Ledger, at: str, stage: Stage, random_weights: bool) -> dict[str, Any]:
    """Settings of `models.training.stage.StageSettings` by name.

    Args:
        ledger: Collects faults and origins.
        at: Path of the stage.
        stage: The stage.
        random_weights: Whether its network starts from random weights.
    """
    for key in KEYS:
        if random_weights and getattr(stage, key) is not None:
            ledger.fault(
                f"{at}.{key}",
                "the network of this stage starts from random weights, so there is nothing to"
                " preserve; leave it out",
            )
    if stage.lora is not None and stage.gradual_unfreezing is not None:
        ledger.fault(
            f"{at}.gradual_unfreezing", "with lora the network's own layers never train; keep one"
        )
    lora = None
    if stage.lora is not None:
        said = stage.lora.model_dump(exclude_none=True, mode="json")
        lora = {**LORA, **said}
        for key in LORA:
            if key not in said:
                ledger.origins[f"{at}.lora.{key}"] = "default"
    gradual = stage.gradual_unfreezing
    return {
        "freeze": stage.freeze or (),
        "gradual_unfreezing": gradual.model_dump(exclude_none=True) if gradual else None,
        "lora": lora,
        **_regularisers(ledger, at, stage),
    }


def _regularisers(ledger: Ledger, at: str, stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, default in REGULARISERS.items():
        said = getattr(stage, name)
        found[name] = None
        if said is None:
            continue
        if stage.stage != "finetune":
            ledger.fault(f"{at}.{name}", f"stage {stage.stage} has no {name!r}; finetune has")
        given = said.model_dump(exclude_none=True)
        for key in default:
            if key not in given:
                ledger.origins[f"{at}.{name}.{key}"] = "default"
        found[name] = {**default, **given}
    return found


def check_dropout(ledger: Ledger, at: str, stage: Stage, *rates: Any) -> None:
    """Refuse R-Drop where both passes would be the same, because there is no dropout.

    Args:
        ledger: Collects faults.
        at: Path of the stage.
        stage: The stage.
        rates: Dropout rates of network and head; None for a part that names no rate.
    """
    if stage.r_drop is not None and all(rate == 0 for rate in rates):
        ledger.fault(
            f"{at}.r_drop",
            "dropout is 0 in network and head, so both passes would be the same; give `size` or"
            " the head a dropout, or leave r_drop out",
        )
