"""Prefect events for promotions and amber contracts, which automations can react to."""

from __future__ import annotations

from fourstage.errors import GateRefused
from tasks.orchestration.events import announce
from tasks.registry.promote_model import Promotion
from tasks.run.recipe_run import RecipeRun
from tasks.store.step_names import subject_of


def announce_promotion(outcome: Promotion | GateRefused) -> None:
    """Emit ``fourstage.promoted`` if a model has a new champion."""
    if isinstance(outcome, Promotion) and outcome.changed:
        champion = outcome.champion
        announce(
            "fourstage.promoted",
            "model",
            champion.name,
            version=champion.number,
            replaced=outcome.replaced,
        )


def announce_amber(run: RecipeRun) -> None:
    """Emit ``fourstage.contract.amber`` for each contract that this run made with that verdict."""
    for name, artifact in run.made.items():
        facts = artifact.facts
        fresh = artifact.kind == "contract" and run.status[name] == "made"
        if fresh and facts["verdict"] == "amber":
            announce(
                "fourstage.contract.amber",
                "contract",
                subject_of(name),
                recipe=run.plan.recipe.name,
                read=facts["read"],
                quarantined=facts["quarantined"],
            )
