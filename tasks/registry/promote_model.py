"""Promotion and rollback: move the champion alias, one process at a time.

A promotion requires that the champion is still the one that the gate compared with.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from fourstage.errors import GateRefused, RecipeError, UnknownNameError
from tasks.registry.fresh_process import SmokeTestFailed, try_in_a_fresh_process
from tasks.registry.gate import Gate
from tasks.registry.versions import (
    CHALLENGER,
    PREVIOUS,
    SMOKE,
    SMOKE_TAG,
    aliases,
    registered_names,
    version,
)
from tasks.store.registry_memory import CHAMPION, Version
from tasks.tracking.connection import Tracking, answered
from tasks.tracking.logged_files import AlteredFiles, FilesLost, check_files, verified
from tasks.tracking.run_metrics import Figure, log_figures
from tasks.tracking.runs import is_active

TESTED = "fourstage.smoke_tested"  # results of the smoke test in a fresh process
REPLACED = "fourstage.replaced"  # number of the champion that a version replaced
PROMOTED = "fourstage.promoted_at"
ROLLED_BACK = "fourstage.rolled_back_at"  # time of the last rollback from a version
OUTCOME = "fourstage.gate"  # last outcome of the gate for a version
COMPARED = "fourstage.gate_champion"  # number of the champion at that time, or ``none``
AWAITING = "awaiting approval"


@dataclass(frozen=True)
class Approval:
    """Approval of a promotion by a person.

    Attributes:
        by: Who approves.
        reason: Why.

    Raises:
        RecipeError: The reason is blank.
    """

    by: str
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise RecipeError(
                "approval_reason: expected a reason why the version may become the champion, got an"
                " empty text"
            )


class ApprovalMissing(GateRefused):
    """Every check passed, but the promotion still needs approval."""


@dataclass(frozen=True)
class Promotion:
    """Result of a promotion or rollback.

    Attributes:
        champion: The new champion.
        replaced: Number of the previous champion; None if there was none.
        changed: Whether an alias moved.
        smoke: Results of the smoke test: seconds to load, ms per prediction.
        reason: The reason.
        forced: Whether it was forced against the gate's decision.
    """

    champion: Version
    replaced: int | None
    changed: bool
    smoke: Mapping[str, Any]
    reason: str = ""
    forced: bool = False


@answered
def find_champion(tracking: Tracking, name: str) -> tuple[Version | None, str]:
    """Find the champion of a model and check that its files are readable.

    Returns:
        The champion, None if there is none or no such model; and why it can't be read, empty if it
        can.
    """
    if name not in registered_names(tracking):
        return None, ""
    number = aliases(tracking, name).get(CHAMPION)
    if number is None:
        return None, ""
    champion = version(tracking, name, number)
    fault = unreadable(tracking, champion)
    return champion, f"champion version {number} cannot be read: {fault}" if fault else ""


@answered
def find_version_of(tracking: Tracking, name: str, number: int) -> Version:
    """Find a version that a user named.

    Raises:
        UnknownNameError: There is no such model.
        RecipeError: The model has no such version.
    """
    from mlflow.exceptions import MlflowException

    require_model(tracking, name)
    try:
        return version(tracking, name, number)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        found = tracking.client.search_model_versions(f"name = '{name}'")
        numbers = ", ".join(sorted((str(each.version) for each in found), key=int)) or "none"
        raise RecipeError(f"{name} has no version {number}. Versions: {numbers}.") from error


def require_model(tracking: Tracking, name: str) -> None:
    """Check that a model is registered.

    Raises:
        UnknownNameError: There is no such model; the message suggests the nearest name.
    """
    known = registered_names(tracking)
    if name not in known:
        hint = "A model is registered by `fourstage run`."
        raise UnknownNameError("registry", name, "a registered model", known, hint)


def unreadable(tracking: Tracking, candidate: Version) -> str:
    """Why a version's files are lost or altered; empty if they are intact."""
    try:
        check_files(tracking, candidate.model_id)
    except (FilesLost, AlteredFiles) as error:
        return str(error)
    return ""


@answered
def promote(
    tracking: Tracking,
    gate: Gate,
    *,
    run_id: str | None = None,
    force: bool = False,
    approval: Approval | None = None,
    smoke_test: bool = True,
) -> Promotion:
    """Make a version the champion if the gate allows it and its comparison is up to date.

    The version is smoke-tested in a fresh process first; then the aliases ``previous`` and
    ``champion`` move. The operation is idempotent: if it is killed at any moment and run again, the
    result is the same.

    Args:
        tracking: The MLflow connection.
        gate: The decision, from `tasks.registry.gate.decide`.
        run_id: Run that stores the report; default: the run that registered the version.
        force: Promote against the gate's decision; recorded as forced.
        approval: Approval, if the gate asks for one. It is valid only for the comparison that asked
            for it.
        smoke_test: Whether to smoke-test the new champion in a fresh process.

    Raises:
        GateRefused: The gate refuses, its comparison is out of date, or the smoke test fails.
        ApprovalMissing: An approval is needed but not given.
        UnknownNameError: There is no such model.
    """
    name = gate.name
    challenger = find_version_of(tracking, name, gate.version)
    run_id = run_id or challenger.run_id
    if challenger.tags.get(SMOKE_TAG) == "true" and not name.endswith(SMOKE):
        raise GateRefused(
            f"{name} version {gate.version} comes from a --smoke run and can't become the champion;"
            " run its recipe without --smoke"
        )
    if gate.decision == "refuse" and not force:
        record(tracking, gate, "refused", gate.reason, run_id)
        raise GateRefused(f"{name} version {gate.version} is not promoted: {gate.reason}.")
    if gate.decision == "wait" and not force:
        if approval is None:
            record(tracking, gate, AWAITING, gate.reason, run_id)
            raise ApprovalMissing(f"{gate.reason}. Approve it with  {approving(gate)}")
        _approve(tracking, gate, challenger, approval, run_id)
    with tracking.alone(f"promote-{name}"):
        # A forced promotion needs no comparison.
        forced = force and gate.decision != "promote"
        before = _aliases_up_to_date(tracking, gate, forced, run_id)
        if before.get(CHAMPION) == gate.version:
            # If the promotion was recorded, nothing is left to do; else it was killed in between.
            _end_challenge(tracking, challenger, before)
            if challenger.tags.get(PROMOTED):
                return Promotion(challenger, None, False, {}, "there was nothing to decide")
        facts: Mapping[str, Any] = {}
        if smoke_test:
            try:
                with verified(tracking, challenger.model_id) as folder:
                    facts = try_in_a_fresh_process(folder)
            except (SmokeTestFailed, FilesLost, AlteredFiles) as error:
                reason = f"{name} version {gate.version} failed its smoke test: {error}"
                record(tracking, gate, "refused", reason, run_id)
                raise GateRefused(reason) from error
            number = str(gate.version)
            tracking.client.set_model_version_tag(name, number, TESTED, json.dumps(facts))
            # MLflow's page and other homes don't know our lock, and the test takes its time.
            before = _aliases_up_to_date(tracking, gate, forced, run_id)
        current = before.get(CHAMPION)
        if current != gate.version:
            _move(tracking, challenger, before)
        reason = gate.reason
        if forced:
            reason = f"forced, in spite of {gate.reason}"
        elif gate.asks and approval:
            reason = f"{gate.reason}; approved by {approval.by}: {approval.reason}"
        record(tracking, gate, "forced" if forced else "promoted", reason, run_id)
    replaced = current if current != gate.version else None
    now = version(tracking, name, gate.version)
    return Promotion(now, replaced, True, facts, reason, forced)


def _aliases_up_to_date(
    tracking: Tracking, gate: Gate, forced: bool, run_id: str | None
) -> dict[str, int]:
    """The model's aliases, if the champion is the one that the gate compared with, or forced."""
    found = aliases(tracking, gate.name)
    if found.get(CHAMPION) not in (gate.version, gate.champion_version) and not forced:
        reason = _out_of_date(gate, found.get(CHAMPION))
        record(tracking, gate, "refused", reason, run_id)
        raise GateRefused(reason)
    return found


def approving(gate: Gate) -> str:
    """The command that approves a waiting version."""
    return f"fourstage promote {gate.name} --version {gate.version} --approve 'WHY'"


def _approve(
    tracking: Tracking, gate: Gate, waiting: Version, approval: Approval, run_id: str | None
) -> None:
    """Record the approval, if the champion is still the one of the comparison that asked for it."""
    compared = waiting.tags.get(COMPARED) if waiting.tags.get(OUTCOME) == AWAITING else None
    if compared is not None and compared != str(gate.champion_version or "none"):
        then = int(compared) if compared.isdigit() else None
        reason = _out_of_date(replace(gate, champion_version=then), gate.champion_version)
        record(tracking, gate, "refused", reason, run_id)
        raise GateRefused(reason)
    tags = {
        "fourstage.approved_by": approval.by,
        "fourstage.approval_reason": approval.reason,
        "fourstage.approved_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for tag, value in tags.items():
        tracking.client.set_model_version_tag(gate.name, str(gate.version), tag, value[:5000])


def rollback_target(tracking: Tracking, name: str) -> Version:
    """The version that a rollback would make the champion.

    Raises:
        UnknownNameError: There is no such model.
        GateRefused: There is no previous champion, or its files are lost or altered.
    """
    require_model(tracking, name)
    there = aliases(tracking, name)
    current, previous = there.get(CHAMPION), there.get(PREVIOUS)
    if current is None:
        raise GateRefused(f"{name} has no champion; `fourstage promote {name}` makes one.")
    if previous is None:
        raise GateRefused(
            f"{name}: version {current} is the first champion; there is none to go back to."
        )
    if previous == current:
        raise GateRefused(
            f"{name}: version {current} is champion and previous champion at once, since a move was"
            f" cut off or made by hand. `fourstage promote {name} --version N` moves to another."
        )
    target = find_version_of(tracking, name, previous)
    if fault := unreadable(tracking, target):
        raise GateRefused(
            f"{name}: version {previous} cannot be read: {fault}. The champion stays version"
            f" {current}."
        )
    return target


@answered
def rollback(tracking: Tracking, name: str) -> Promotion:
    """Make the previous champion the champion again; raises as `rollback_target`."""
    client = tracking.client
    with tracking.alone(f"promote-{name}"):
        target = rollback_target(tracking, name)
        current, previous = aliases(tracking, name)[CHAMPION], target.number
        now = datetime.now(UTC).isoformat(timespec="seconds")
        client.set_model_version_tag(name, str(current), ROLLED_BACK, now)
        client.set_registered_model_alias(name, CHAMPION, str(previous))
        older = _taken_over_from(tracking, target)
        if older is None:
            client.delete_registered_model_alias(name, PREVIOUS)
        else:
            client.set_registered_model_alias(name, PREVIOUS, str(older))
    return Promotion(version(tracking, name, previous), current, True, {})


def _taken_over_from(tracking: Tracking, champion: Version) -> int | None:
    """Number of the version that a champion replaced, if that version still exists."""
    number = int(champion.tags.get(REPLACED, champion.number))
    there = tracking.client.search_model_versions(f"name = '{champion.name}'")
    others = {int(each.version) for each in there} - {champion.number}
    return number if number in others else None


@answered
def record(
    tracking: Tracking, gate: Gate, outcome: str, reason: str, run_id: str | None = None
) -> None:
    """Record a decision with its reasons, in tags of the version and a report of the run.

    Args:
        tracking: The MLflow connection.
        gate: The decision.
        outcome: ``promoted``, ``refused``, ``forced`` or ``awaiting approval``.
        reason: The reason, in a sentence.
        run_id: The lifecycle run.
    """
    from tasks.registry.gate_report import gate_report

    now = datetime.now(UTC).isoformat(timespec="seconds")
    tags = {
        OUTCOME: outcome,
        "fourstage.gate_reason": reason[:5000],
        COMPARED: str(gate.champion_version or "none"),
        "fourstage.gate_at": now,
    }
    if outcome in ("promoted", "forced"):
        tags[PROMOTED] = now
        tracking.client.delete_model_version_tag(gate.name, str(gate.version), ROLLED_BACK)
    for tag, value in tags.items():
        tracking.client.set_model_version_tag(gate.name, str(gate.version), tag, value)
    if run_id and is_active(tracking, run_id):
        log_figures(
            tracking,
            run_id,
            gate_figures(gate),
            model_id=version(tracking, gate.name, gate.version).model_id,
            timestamp=int(time.time() * 1000),
        )
        place = f"gate/version-{gate.version}"
        report = {**gate.to_json(), "outcome": outcome, "why": reason, "at": now}
        tracking.client.log_text(run_id, json.dumps(report, indent=1), f"{place}.json")
        tracking.client.log_text(run_id, gate_report(gate, outcome, reason), f"{place}.md")


def _move(tracking: Tracking, challenger: Version, before: Mapping[str, int]) -> None:
    client = tracking.client
    name, number = challenger.name, str(challenger.number)
    if CHAMPION in before:
        client.set_registered_model_alias(name, PREVIOUS, str(before[CHAMPION]))
        client.set_model_version_tag(name, number, REPLACED, str(before[CHAMPION]))
    client.set_registered_model_alias(name, CHAMPION, number)
    _end_challenge(tracking, challenger, before)


def _end_challenge(tracking: Tracking, challenger: Version, before: Mapping[str, int]) -> None:
    if before.get(CHALLENGER) == challenger.number:
        tracking.client.delete_registered_model_alias(challenger.name, CHALLENGER)


def _out_of_date(gate: Gate, current: int | None) -> str:
    then = f"version {gate.champion_version}" if gate.champion_version else "no champion"
    now = f"version {current}" if current else "none"
    return (
        f"{gate.name}: version {gate.version} was compared with {then}, but the champion is {now}"
        f" by now, so the comparison is out of date. `fourstage promote {gate.name} --version"
        f" {gate.version}` compares anew."
    )


def gate_figures(gate: Gate) -> Iterator[Figure]:
    """The figures of a gate's checks, as metrics."""
    for check in gate.checks:
        for name, value in check.figures.items():
            yield Figure(f"gate/{name}", value)
