"""Gate decisions without Prefect.

A refused promotion therefore does not need an embedded Prefect server, which takes seconds to
start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fourstage.errors import GateRefused
from fourstage.settings import home
from tasks.registry.evidence import EvidenceLost, read_evidence
from tasks.registry.gate import Evidence, Gate, decide
from tasks.registry.lineage import Trace, trace
from tasks.registry.promote_model import (
    ROLLED_BACK,
    ApprovalMissing,
    Promotion,
    find_champion,
    find_version_of,
    promote,
    require_model,
    rollback_target,
)
from tasks.registry.versions import CHALLENGER, aliases, lost_champion
from tasks.store.ancestry import BrokenLineage
from tasks.store.artifacts import Artifact, Store
from tasks.store.registry_memory import CHAMPION, Version
from tasks.tracking.connection import Tracking, connect
from tasks.tracking.logged_files import verified

if TYPE_CHECKING:
    from corpora.prepared import PreparedRow

AT_ONCE = 64  # rows that a champion is asked together


def promotion_refused(
    model: str, version: int | None, force: bool, approved_by: str | None, approval_reason: str
) -> dict[str, Any] | None:
    """Record and return the decision on a promotion that moves no alias; None if one will move.

    Takes the parameters of the flow ``promote``.
    """
    tracking = connect()
    try:
        number = challenger_of(tracking, model) if version is None else version
    except GateRefused as refusal:
        return refusal_of(tracking, model, refusal)
    if force:
        return None
    gate = hold(tracking, model, number)
    if gate.decision == "promote" or (gate.decision == "wait" and approved_by):
        return None
    try:
        promote(tracking, gate)
    except GateRefused as refusal:
        return decision_of(tracking, gate, refusal)
    raise AssertionError("a gate that does not promote is refused")


def rollback_refused(model: str) -> dict[str, Any] | None:
    """The decision on a rollback without a target; None if there is a target."""
    tracking = connect()
    try:
        rollback_target(tracking, model)
    except GateRefused as refusal:
        return refusal_of(tracking, model, refusal)
    return None


def decision_of(tracking: Tracking, gate: Gate, outcome: Promotion | GateRefused) -> dict[str, Any]:
    """The outcome of a gate decision, as plain JSON."""
    match outcome:
        case ApprovalMissing():
            said = {"reason": str(outcome)}
        case GateRefused():
            said = {"decision": "refuse", "reason": str(outcome)}
        case _:
            word = "promote" if outcome.changed else "keep"
            said = {"decision": word, "reason": outcome.reason}
    return gate.to_json() | said | standing(tracking, gate.name, gate.version)


def refusal_of(tracking: Tracking, model: str, refusal: GateRefused) -> dict[str, Any]:
    """A refusal that concerns no particular version, as plain JSON."""
    return {"decision": "refuse", "reason": str(refusal), **standing(tracking, model)}


def standing(tracking: Tracking, name: str, number: int | None = None) -> dict[str, Any]:
    """The current champion of a model, and a version with its aliases."""
    there = aliases(tracking, name)
    version = {}
    if number is not None:
        pointing = sorted(alias for alias, at in there.items() if at == number)
        version = {"version": number, "aliases": pointing}
    return {"champion": there.get(CHAMPION), "model": {"name": name, **version}}


def challenger_of(tracking: Tracking, name: str) -> int:
    """Number of a model's challenger.

    Raises:
        UnknownNameError: There is no such model.
        GateRefused: The model has no challenger.
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


def hold(tracking: Tracking, name: str, number: int) -> Gate:
    """Evaluate the gate: compare a version with the current champion and its recipe's rules."""
    version = find_version_of(tracking, name, number)
    evidence, rules = read_evidence(tracking, version)
    champion, fault = find_champion(tracking, name)
    rival = None
    if champion is not None and not fault:
        if champion.number == number:
            rival = evidence
        else:
            try:
                rival = _on_the_same_rows(tracking, champion, evidence, rules)
            except EvidenceLost as error:
                fault = f"champion version {champion.number} can't be compared with: {error}"
    return decide(
        name,
        rules["require"],
        evidence,
        rival,
        champion_version=champion.number if champion else None,
        champion_fault=fault,
        forgetting_on=rules.get("forgetting_on", ()),  # kept since a later version
        contracts=rules["contracts"],
        lineage_faults=_lineage_faults(tracking, version, champion),
        overlap=tuple(rules["overlap"]),
        asks=_asks(tracking, version, rules.get("approve")),
    )


def _asks(tracking: Tracking, version: Version, approve: str | None) -> str:
    """Why a promotion needs approval; empty if it needs none."""
    if (previous := lost_champion(aliases(tracking, version.name))) is not None:
        return (
            f"{version.name} has no champion while version {previous} is the previous one: somebody"
            " took the alias away"
        )
    if when := version.tags.get(ROLLED_BACK):
        # Otherwise the next run of the unchanged recipe would promote it again.
        return f"somebody rolled version {version.number} back ({when})"
    return "its recipe wants it approved by hand" if approve else ""


def _on_the_same_rows(
    tracking: Tracking, champion: Version, ours: Evidence, rules: Mapping[str, Any]
) -> Evidence:
    """The champion's evidence, with new predictions if the gate's rows have changed since."""
    theirs, _ = read_evidence(tracking, champion)
    assert ours.predictions is not None
    if theirs.predictions is not None and theirs.predictions.same_rows(ours.predictions):
        return theirs
    said = _answers(tracking, champion, ours.predictions.ids, rules)
    if said is None:
        return theirs  # the gate will refuse because the rows differ
    return replace(theirs, predictions=replace(ours.predictions, predicted=said))


def _answers(
    tracking: Tracking, version: Version, ids: tuple[str, ...], rules: Mapping[str, Any]
) -> tuple[str, ...] | None:
    """A version's predictions on rows of a dataset; None if it can't be asked about them."""
    import mlflow.pyfunc

    from corpora.prepared import prepared_rows

    dataset = Store(home()).find("dataset", rules["dataset"]["key"])
    if not isinstance(dataset, Artifact):
        return None
    rows = [row for row in prepared_rows(dataset.folder) if row.split == rules["split"]]
    asked = questions(rows, ids)
    if asked is None:
        return None
    with verified(tracking, version.model_id) as folder:
        said = in_parts(mlflow.pyfunc.load_model(str(folder)).predict, asked)
    # A row that brings a task's prefix along has no answer.
    return tuple(
        answer["label"] if "label" in answer else answer["answer"] or "" for answer in said
    )


def questions(
    rows: Sequence[PreparedRow], ids: Sequence[str]
) -> list[str | dict[str, str | list[str]]] | None:
    """Rows as their model takes them.

    None if one is missing or has a picture, of which a dataset has regions, but not the file that a
    model reads.
    """
    found = {row.id: row for row in rows}
    if any(name not in found or found[name].picture is not None for name in ids):
        return None
    return [_question(found[name]) for name in ids]


def in_parts(predict: Callable[[list[Any]], list[Any]], rows: Sequence[Any]) -> list[Any]:
    """Answers to any number of rows. A model of an older version reads all that it is asked."""
    parts = (list(rows[first : first + AT_ONCE]) for first in range(0, len(rows), AT_ONCE))
    return [answer for part in parts for answer in predict(part)]


def _question(row: PreparedRow) -> str | dict[str, str | list[str]]:
    """A row as its model takes it: a text, or texts by name."""
    if row.choices is not None:
        return {"text": row.text, "choices": list(row.choices)}
    return row.text if row.text_pair is None else {"text": row.text, "text_pair": row.text_pair}


def _lineage_faults(tracking: Tracking, version: Version, champion: Version | None) -> list[str]:
    """Why a version's lineage is not complete.

    The files of what the champion is made of were read when it was promoted. A stage that continues
    every night has one more before it each time, and all of them would be read again.
    """
    root, known = Store(home()).root, set[str]()
    if champion is not None:
        with suppress(BrokenLineage):
            known = _made_of(trace(tracking, _address(champion), root, every_file=False))
    try:
        trace(tracking, _address(version), root, but_of=known - {str(version.model_id)})
    except BrokenLineage as error:
        return [str(error)]
    return []


def _made_of(found: Trace) -> set[str]:
    """Ids of the logged models in a lineage."""
    return {hop.model_id for hop in found.hops if hop.model_id}


def _address(version: Version) -> str:
    return f"models:/{version.name}/{version.number}"
