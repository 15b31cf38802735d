"""What Prefect's server is told beyond the states of runs, so that an automation can pass it on.

An event holds names, numbers and, by the run it belongs to, links; never text of the data.
"""

from __future__ import annotations

import os

from fourstage.errors import GateRefused
from fourstage.settings import EMBEDDED
from tasks.registry.promote_model import Promotion
from tasks.run.work import Work


def announce(event: str, kind: str, name: str, **payload: str | int | float | None) -> None:
    """Send an event; where the server is the run's own there is nobody to hear it.

    Args:
        event: Such as ``fourstage.drift``.
        kind: What it is about: ``model``, ``contract``, ``source``.
        name: That one's name.
        **payload: Names and numbers.
    """
    from prefect.events import emit_event

    if os.environ.get(EMBEDDED):
        return
    resource = {"prefect.resource.id": f"fourstage.{kind}.{name}", "prefect.resource.name": name}
    emit_event(event, resource, payload=payload)


def announce_promotion(outcome: Promotion | GateRefused) -> None:
    """``fourstage.promoted`` where a model has a new champion."""
    if isinstance(outcome, Promotion) and outcome.changed:
        champion = outcome.champion
        announce(
            "fourstage.promoted",
            "model",
            champion.name,
            version=champion.number,
            replaced=outcome.replaced,
        )


def announce_amber(work: Work) -> None:
    """``fourstage.contract.amber`` for each contract that has just been found so."""
    for name, artifact in work.made.items():
        facts = artifact.facts
        fresh = artifact.kind == "contract" and work.status[name] == "made"
        if fresh and facts["verdict"] == "amber":
            announce(
                "fourstage.contract.amber",
                "contract",
                name.removeprefix("contract "),
                recipe=work.plan.recipe.name,
                read=facts["read"],
                quarantined=facts["quarantined"],
            )
