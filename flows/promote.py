"""Checks a registered version against its gate and the champion, and promotes it."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State

from fourstage.errors import GateRefused
from tasks.orchestration.failures import ended, refused, says_what_next
from tasks.orchestration.naming import named
from tasks.registry.decision import challenger_of
from tasks.registry.pages import show_gate, show_lineage, show_no_challenger
from tasks.registry.promote_model import Approval
from tasks.registry.promotion import hold_gate, promote_model
from tasks.run.announcements import announce_promotion
from tasks.tracking.connection import connect


@flow(name="promote", flow_run_name=named("promote", "model"))
@says_what_next("promote")
def promote(
    model: str,
    version: int | None = None,
    force: bool = False,
    approved_by: str | None = None,
    approval_reason: str = "",
) -> dict | State[dict]:
    """Promote a version that passes its gate; a refusal is Completed, named ``Refused``.

    Args:
        model: Name of the registered model.
        version: Its number; default the challenger.
        force: Promote even if the gate refuses; recorded as such.
        approved_by: Who approves, if the recipe requires it (``promote.approve: by_hand``), the
            champion's alias was removed or the version was rolled back; without it such a run is
            ``AwaitingApproval``.
        approval_reason: Why; required and recorded with `approved_by`.

    Returns:
        The decision with its reasons, and the aliases as they are now.
    """
    approval = Approval(approved_by, approval_reason) if approved_by else None
    tracking = connect()
    try:
        number = challenger_of(tracking, model) if version is None else version
    except GateRefused as refusal:
        return refused(show_no_challenger(tracking, model, refusal))
    gate = hold_gate(tracking, model, number)
    outcome = promote_model(tracking, gate, force, approval)
    announce_promotion(outcome)
    decision = show_gate(tracking, gate, outcome)
    show_lineage(tracking, model, number)
    return ended(decision)
