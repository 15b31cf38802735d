"""Register, hold against the gate, promote, roll back: the registry's steps as Prefect tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.activity import activity
from fourstage.errors import GateRefused
from tasks.ancestry import BrokenLineage, gather
from tasks.artifacts import Artifact
from tasks.durable import store
from tasks.evidence import evidence_of, keep_evidence, read_evidence
from tasks.gate import Evidence, Gate, decide
from tasks.lineage import trace
from tasks.logged_files import verified
from tasks.naming import flow_tags
from tasks.promote_model import (
    Approval,
    Promotion,
    find_champion,
    find_version_of,
    promote,
    require_model,
    rollback,
)
from tasks.record_results import record_results
from tasks.register_model import (
    CHALLENGER,
    CHAMPION,
    Version,
    aliases,
    register,
    without_champion,
)
from tasks.registry_memory import remember_versions
from tasks.tracking import Tracking
from tasks.turn import turn
from tasks.version_card import keep_card
from tasks.work import Work


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
        "split": recipe.evaluation_split,
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
        return _hold_gate(tracking, name, number)


def _hold_gate(tracking: Tracking, name: str, number: int) -> Gate:
    version = find_version_of(tracking, name, number)
    evidence, rules = read_evidence(tracking, version)
    champion, fault = find_champion(tracking, name)
    rival = None
    if champion is not None and not fault:
        if champion.number == number:
            rival = evidence
        else:
            rival = _on_the_same_rows(tracking, champion, evidence, rules)
    return decide(
        name,
        rules["require"],
        evidence,
        rival,
        champion_version=champion.number if champion else None,
        champion_fault=fault,
        contracts=rules["contracts"],
        lineage_faults=_lineage_faults(tracking, version),
        overlap=tuple(rules["overlap"]),
        asks=_asks(tracking, name, rules["approve"]),
    )


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


def challenger_of(tracking: Tracking, name: str) -> int:
    """Number of the version that waits at the gate.

    Raises:
        UnknownNameError: If there is no such model.
        GateRefused: If none waits.
    """
    require_model(tracking, name)
    there = aliases(tracking, name)
    if CHALLENGER in there:
        return there[CHALLENGER]
    champion = f": version {there[CHAMPION]} is the champion" if CHAMPION in there else ""
    raise GateRefused(
        f"{name} has no challenger{champion}. Run its recipe with new data or settings, or name a"
        " version with --version."
    )


def _asks(tracking: Tracking, name: str, approve: str | None) -> str:
    """Why somebody has to agree to a promotion; empty where the gate alone decides."""
    if name in (lost := without_champion(tracking)):
        return (
            f"{name} has no champion while version {lost[name]} is the previous one: somebody took"
            " the alias away"
        )
    return "its recipe wants it approved by hand" if approve else ""


def _overlapping(dataset: Artifact) -> int:
    """Evaluation rows whose text stands in a training row that was kept."""
    import pandas

    profile = pandas.read_parquet(dataset.path("profile.parquet"), columns=["duplicate_of_train"])
    return len(profile["duplicate_of_train"].dropna())


def _on_the_same_rows(
    tracking: Tracking, champion: Version, ours: Evidence, rules: Mapping[str, Any]
) -> Evidence:
    """The champion's evidence; where the gate's rows have changed since, it answers them anew."""
    theirs, _ = read_evidence(tracking, champion)
    assert ours.predictions is not None
    if theirs.predictions is not None and theirs.predictions.same_rows(ours.predictions):
        return theirs
    said = _answers(tracking, champion, ours.predictions.ids, rules)
    if said is None:
        return theirs  # the gate says that the rows are not the same
    return replace(theirs, predictions=replace(ours.predictions, predicted=said))


def _answers(
    tracking: Tracking, version: Version, ids: tuple[str, ...], rules: Mapping[str, Any]
) -> tuple[str, ...] | None:
    """What a registered version says of rows of a dataset in the store, None where it is gone."""
    import mlflow.pyfunc

    from corpora.prepared import prepared_rows

    dataset = store().find("dataset", rules["dataset"]["key"])
    if not isinstance(dataset, Artifact):
        return None
    rows = {row.id: row for row in prepared_rows(dataset.folder) if row.split == rules["split"]}
    if any(name not in rows for name in ids) or any(row.text_pair for row in rows.values()):
        return None
    with verified(tracking, version.model_id) as folder:
        said = mlflow.pyfunc.load_model(str(folder)).predict([rows[name].text for name in ids])
    return tuple(answer["label"] for answer in said)


def _lineage_faults(tracking: Tracking, version: Version) -> list[str]:
    try:
        trace(tracking, f"models:/{version.name}/{version.number}", store().root)
    except BrokenLineage as error:
        return [str(error)]
    return []
