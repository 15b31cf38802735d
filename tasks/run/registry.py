"""Register, hold against the gate, promote, roll back: the registry's steps as Prefect tasks."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.activity import activity
from fourstage.errors import GateRefused
from tasks.orchestration.naming import flow_tags
from tasks.orchestration.turn import turn
from tasks.registry.decision import hold
from tasks.registry.evidence import evidence_of, keep_evidence
from tasks.registry.gate import Gate
from tasks.registry.promote_model import (
    Approval,
    Promotion,
    promote,
    rollback,
)
from tasks.registry.register_model import register
from tasks.registry.version_card import keep_card
from tasks.registry.versions import remember_versions
from tasks.run.work import Work
from tasks.store.ancestry import gather
from tasks.store.artifacts import Artifact, store
from tasks.store.registry_memory import Version
from tasks.tracking.connection import Tracking
from tasks.tracking.record_results import record_results


def _registering() -> str:
    from prefect.runtime import task_run

    return f"register-{task_run.parameters['work'].unquote().plan.recipe.model}"


@task(
    name="register_model",
    task_run_name=_registering,
    retries=2,
    retry_delay_seconds=5,
    cache_policy=NO_CACHE,
)
def register_model(work: Work) -> Version:
    """Make the package a version, the challenger; the same package is the same version."""
    recipe = work.plan.recipe
    evaluation = work.made["evaluation"]
    with activity(f"{recipe.model}: registering the model"):
        version = register(
            work.tracking,
            gather(store().root, work.made["package"]),
            name=recipe.model,
            run_id=work.lifecycle_run,
            evaluation=gather(store().root, evaluation),
            smoke=work.smoke,
            tags=flow_tags(),
        )
        facts = record_results(
            work.tracking, work.lifecycle_run, recipe, work.made, version.model_id
        )
        work.recorded = True
        assert facts is not None, "what was evaluated was measured"
        keep_card(work.tracking, version, facts, evaluation)
    contracts = {
        name: artifact.facts["verdict"]
        for name, artifact in work.made.items()
        if artifact.kind == "contract"
    }
    finetune = recipe.finetune
    dataset = work.made[f"dataset {finetune.dataset}"]
    rules = {
        "require": {name: dict(rule) for name, rule in recipe.require.items()},
        "overlap": [finetune.overlap, _overlapping(dataset)],
        "contracts": contracts,
        "dataset": dataset.reference,
        "split": evaluation.facts["gate"]["split"],
        "approve": recipe.approve,
    }
    keep_evidence(work.tracking, version, evidence_of(evaluation, version.number), rules)
    remember_versions(work.tracking, version.name)
    return version


@task(
    name="hold_gate",
    task_run_name="gate-{name}-version-{number}",
    retries=1,
    retry_delay_seconds=5,
    cache_policy=NO_CACHE,
)
def hold_gate(tracking: Tracking, name: str, number: int) -> Gate:
    """Compare a version with the champion of this moment and with what its recipe asks."""
    with activity(f"{name} version {number}: holding the gate"):
        return hold(tracking, name, number)


@task(name="promote_model", task_run_name="promote-{gate.name}", cache_policy=NO_CACHE)
def promote_model(
    tracking: Tracking, gate: Gate, force: bool = False, approval: Approval | None = None
) -> Promotion | GateRefused:
    """Move the aliases if the gate lets it through; a refusal is an answer, not a failure."""
    with activity(f"{gate.name} version {gate.version}: trying it in a process of its own"):
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
    """Make the previous champion the champion again, where there is one."""
    try:
        with turn(name):
            promotion = rollback(tracking, name)
    except GateRefused as refusal:
        return refusal
    remember_versions(tracking, name)
    return promotion


def _overlapping(dataset: Artifact) -> int:
    """Evaluation rows whose text stands in a training row that was kept."""
    import pandas

    profile = pandas.read_parquet(dataset.path("profile.parquet"), columns=["duplicate_of_train"])
    return len(profile["duplicate_of_train"].dropna())
