"""Registry reports on Prefect's pages: gate decisions, rollbacks, lineages."""

from __future__ import annotations

from typing import Any

from prefect.artifacts import create_link_artifact

from fourstage.errors import GateRefused
from tasks.orchestration.naming import card_key
from tasks.orchestration.posting import post
from tasks.registry.decision import decision_of, refusal_of, standing
from tasks.registry.gate import Gate
from tasks.registry.gate_report import OUTCOMES, gate_report
from tasks.registry.lineage import trace
from tasks.registry.lineage_views import lineage_diagram
from tasks.registry.promote_model import Promotion
from tasks.store.ancestry import BrokenLineage
from tasks.store.artifacts import store
from tasks.tracking.connection import Tracking


def show_gate(tracking: Tracking, gate: Gate, outcome: Promotion | GateRefused) -> dict[str, Any]:
    """Post the gate's report and return the decision as plain JSON."""
    decision = decision_of(tracking, gate, outcome)
    forced = isinstance(outcome, Promotion) and outcome.forced
    word = "forced" if forced else OUTCOMES[decision["decision"]]
    post(gate.name, "gate", gate_report(gate, word, decision["reason"]), "The gate's decision")
    return decision


def show_no_challenger(tracking: Tracking, model: str, refusal: GateRefused) -> dict[str, Any]:
    """Post that there is nothing to promote and return the decision as plain JSON."""
    post(model, "gate", f"## Nothing to promote\n\n{refusal}", "The gate's decision")
    return refusal_of(tracking, model, refusal)


def show_rollback(
    tracking: Tracking, model: str, outcome: Promotion | GateRefused
) -> dict[str, Any]:
    """Post the outcome of a rollback and return it as plain JSON."""
    if isinstance(outcome, GateRefused):
        post(model, "rollback", f"## Not rolled back\n\n{outcome}", "Rollback")
        return refusal_of(tracking, model, outcome)
    number = outcome.champion.number
    said = f"version {number} is the champion of {model} again, in place of {outcome.replaced}"
    post(model, "rollback", f"## Rolled back\n\n{said}", "Rollback")
    return {"decision": "rollback", "reason": said, **standing(tracking, model, number)}


def show_lineage(tracking: Tracking, model: str, number: int) -> None:
    """Post a version's lineage, or the fault in it, with a link to the version's page."""
    title, address = f"Where {model} version {number} comes from", f"models:/{model}/{number}"
    try:
        page = lineage_diagram(trace(tracking, address, store().root, every_file=False))
    except BrokenLineage as fault:  # already part of the gate's decision
        page = f"### {title}\n\n{fault}"
    post(model, "lineage", page, title)
    page = tracking.page(f"models/{model}/versions/{number}")
    if page:
        key = card_key(model, "model-version")
        create_link_artifact(page, f"{model} version {number}", key=key)
