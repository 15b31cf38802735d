"""Prefect tasks: evaluate the gate, promote a version, roll back."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.activity import activity
from fourstage.errors import GateRefused
from tasks.orchestration.turn import turn
from tasks.registry.decision import hold
from tasks.registry.gate import Gate
from tasks.registry.promote_model import (
    Approval,
    Promotion,
    promote,
    rollback,
)
from tasks.registry.versions import remember_versions
from tasks.tracking.connection import Tracking


@task(
    name="hold_gate",
    task_run_name="gate-{name}-version-{number}",
    retries=1,
    retry_delay_seconds=5,
    cache_policy=NO_CACHE,
)
def hold_gate(tracking: Tracking, name: str, number: int) -> Gate:
    """Evaluate the gate: compare a version with the current champion and its recipe's rules."""
    with activity(f"{name} version {number}: evaluating the gate"):
        return hold(tracking, name, number)


@task(name="promote_model", task_run_name="promote-{gate.name}", cache_policy=NO_CACHE)
def promote_model(
    tracking: Tracking, gate: Gate, force: bool = False, approval: Approval | None = None
) -> Promotion | GateRefused:
    """Move the aliases if the gate allows it. A refusal is returned, not raised."""
    with activity(f"{gate.name} version {gate.version}: testing it in a fresh process"):
        try:
            with turn(gate.name):
                outcome: Promotion | GateRefused = promote(
                    tracking, gate, force=force, approval=approval
                )
        except GateRefused as refusal:
            outcome = refusal
    remember_versions(tracking, gate.name)
    return outcome


@task(name="roll_back", task_run_name="roll-back-{name}", cache_policy=NO_CACHE)
def roll_back(tracking: Tracking, name: str) -> Promotion | GateRefused:
    """Make the previous champion the champion again. A refusal is returned, not raised."""
    try:
        with turn(name):
            promotion = rollback(tracking, name)
    except GateRefused as refusal:
        return refusal
    remember_versions(tracking, name)
    return promotion
