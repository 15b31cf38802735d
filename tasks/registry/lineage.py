"""Trace a version back to its texts, and texts forward to the versions that saw them.

A version's logged model keeps the manifests of everything it comes from, so MLflow alone can answer
when the store is gone; where MLflow has lost the model, the store answers by the version's key.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.terminal import say
from tasks.registry.versions import EVALUATION_TAG, aliases, registered_names, version
from tasks.store.ancestry import (
    FILE,
    Ancestry,
    BrokenLineage,
    Manifest,
    from_json,
    gather,
    in_store,
    join,
)
from tasks.store.registry_memory import Version, remembered_versions
from tasks.tracking.connection import Tracking, answered, every
from tasks.tracking.logged_files import AlteredFiles, FilesLost, check_files, verified
from tasks.tracking.runs import experiment_ids
from tasks.tracking.tags import DIGEST, KEY

MODELS = ("stage", "package")  # kinds that are logged models of their own
SHORTEST_PREFIX = 6  # hex digits a digest may be shortened to
URI = re.compile(r"^models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<number>[1-9]\d*))$")


@dataclass(frozen=True)
class Hop:
    """One thing on the way, with what is known of it.

    Attributes:
        manifest: What the store said of it.
        run_id: Its MLflow run, where it has one (stages).
        model_id: Its logged model, where it has one (stages and packages).
        held_by: Where it can be found now: ``mlflow``, ``store``, both, or neither.
    """

    manifest: Manifest
    run_id: str | None
    model_id: str | None
    held_by: tuple[str, ...]

    @property
    def commit(self) -> str | None:
        """Commit of the code that made it, None where that was no git checkout."""
        return self.manifest.notes.get("git", {}).get("commit")

    def to_json(self) -> dict[str, Any]:
        """As ``trace --json`` prints it."""
        manifest = self.manifest
        facts: dict[str, Any] = {
            "kind": manifest.kind,
            "name": manifest.name,
            "stage": manifest.stage,
            "key": manifest.key,
            "digest": manifest.digest,
            "weights_digest": manifest.weights_digest,
            "commit": self.commit,
            "dirty": manifest.notes.get("git", {}).get("dirty"),
            "created": manifest.created,
            "inputs": {role: parent["key"] for role, parent in manifest.inputs.items()},
            "init": manifest.notes.get("init"),
            "run_id": self.run_id,
            "model_id": self.model_id,
            "held_by": list(self.held_by),
        }
        if source := manifest.source:
            facts["source"] = {n: source.get(n) for n in ("name", "licence", "language", "origin")}
            facts["snapshot"] = manifest.settings.get("snapshot")
        return {name: value for name, value in facts.items() if value is not None}


@dataclass(frozen=True)
class Trace:
    """A version's whole way, texts first.

    Attributes:
        version: The version.
        hops: Everything it comes from, parents before children, the package last.
        told_by: ``mlflow`` or ``store``: who knew the way.
    """

    version: Version
    hops: tuple[Hop, ...]
    told_by: str

    def stages(self) -> list[Hop]:
        """The stages whose network became the version's, first to last; no teacher is there."""
        by_key = {hop.manifest.key: hop for hop in self.hops}
        stages: list[Hop] = []
        before = by_key[str(self.version.key)].manifest.inputs["stage"]
        while before:
            stages.insert(0, by_key[before["key"]])
            before = stages[0].manifest.inputs.get("stage before")
        return stages

    def to_json(self) -> dict[str, Any]:
        """As ``trace --json`` prints it."""
        return {
            "model": {
                **self.version.to_json(),
                "key": self.version.key,
                "model_id": self.version.model_id,
                "run_id": self.version.run_id,
            },
            "complete": True,
            "told_by": self.told_by,
            "hops": [hop.to_json() for hop in self.hops],
        }


@dataclass(frozen=True)
class Impact:
    """A version that comes from something.

    Attributes:
        version: The version.
        through: What of it matched: ``snapshot of corpus trials``.
        digest: The whole digest that matched.
    """

    version: Version
    through: str
    digest: str

    def to_json(self) -> dict[str, Any]:
        """As ``impact --json`` prints it."""
        return {**self.version.to_json(), "through": self.through, "digest": self.digest}


@answered
def find(tracking: Tracking, uri: str) -> Version:
    """The version an address names.

    Args:
        tracking: The server.
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``; the prefix may be left out.

    Raises:
        RecipeError: If it is no such address or the model has no such alias or version.
        UnknownNameError: If there is no such model.
    """
    from mlflow.exceptions import MlflowException

    parts = URI.match(uri if uri.startswith("models:/") else f"models:/{uri}")
    if not parts:
        raise RecipeError(
            f"{uri[:120]!r} is not the address of a model version: expected"
            " models:/NAME@champion or models:/NAME/3."
        )
    name = parts["name"]
    known = registered_names(tracking)
    if name not in known:
        for old in remembered_versions(tracking.folder, name):
            if parts["alias"] in old.aliases or parts["number"] == str(old.number):
                say(
                    f"MLflow has no model {name}; this home remembers its version {old.number}."
                    " `fourstage run` with its recipe registers it again and trains nothing."
                )
                return old
        hint = "A model is registered by `fourstage run`."
        raise UnknownNameError(uri, name, "a registered model", known, hint)
    if alias := parts["alias"]:
        pointing = aliases(tracking, name)
        if alias not in pointing:
            raise UnknownNameError(uri, alias, f"an alias of {name}", pointing)
        return version(tracking, name, pointing[alias])
    try:
        return version(tracking, name, int(parts["number"]))
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        raise RecipeError(f"{uri}: {name} has no version {parts['number']}.") from error


@answered
def trace(
    tracking: Tracking, uri: str, store_root: Path | None = None, every_file: bool = True
) -> Trace:
    """Walk from a version back to every stage, tokenizer, contract and text.

    Args:
        tracking: The server.
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``.
        store_root: ``$FOURSTAGE_HOME/store``, where there is one.
        every_file: Whether to hold each file of each model on the way against its digest; a server
            has to send them all for it.

    Raises:
        BrokenLineage: If a hop is missing or is not what it claims to be; says which.
    """
    found = find(tracking, uri)
    ancestry, told_by = _ancestry(tracking, found, store_root)
    faults = ancestry.faults()
    if ancestry.root != found.key:
        faults.append(f"its lineage is that of {ancestry.root[:12]}, not of {found.key[:12]}")
    models = _logged_models(tracking)
    hops = []
    for manifest in ancestry.manifests.values():
        model_id, run_id = models.get((manifest.key, manifest.digest), (None, None))
        if manifest.key == found.key:
            model_id = found.model_id  # the one that is loaded, should there be several
        lost = f"MLflow has no model of {manifest.name}" if manifest.kind in MODELS else ""
        if model_id:
            lost, altered = _state(tracking, model_id) if every_file else ("", "")
            faults += [f"{manifest.name}: {altered}"] if altered else []
        held_by = (
            [] if lost or (told_by != "mlflow" and manifest.kind not in MODELS) else ["mlflow"]
        )
        if store_root and in_store(store_root, manifest):
            held_by.append("store")
        if manifest.kind == "stage" and not held_by:
            faults.append(f"{manifest.name}: neither MLflow nor the store has its weights ({lost})")
        hops.append(Hop(manifest, run_id, model_id, tuple(held_by)))
    if not ancestry.of_kind("stage"):
        faults.append("no stage is on its way")
    if not ancestry.of_kind("corpus", "dataset"):
        faults.append("no text is on its way")
    if faults:
        more = "".join(f"\n  {fault}" for fault in faults[1:10])
        raise BrokenLineage(
            f"the lineage of {found.name} version {found.number} is not complete: {faults[0]}{more}"
        )
    return Trace(found, tuple(hops), told_by)


@answered
def impact(tracking: Tracking, prefix: str, store_root: Path | None = None) -> list[Impact]:
    """Versions that saw a text, tokenizer or weights; named by a digest or its beginning.

    A version whose lineage is lost is said, since it may have seen it too; how many others have
    registered is said as a number.

    Args:
        tracking: The server.
        prefix: At least 6 hex digits of a key, digest, snapshot or origin.
        store_root: ``$FOURSTAGE_HOME/store``, where there is one.

    Raises:
        RecipeError: If it is not the beginning of a digest.
    """
    prefix = prefix.lower().removeprefix("sha256:")
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_PREFIX},64}}", prefix):
        raise RecipeError(
            f"{prefix[:80]!r} is not the beginning of a digest: expected {SHORTEST_PREFIX} to 64"
            " hex digits, as `fourstage trace --json` shows them."
        )
    found: list[Impact] = []
    strangers = 0
    for candidate in every(tracking.client.search_model_versions, max_results=1000):
        if KEY not in candidate.tags:
            strangers += 1
            continue
        facts = version(tracking, candidate.name, int(candidate.version))
        try:
            known = _ancestry(tracking, facts, store_root)[0].digests()
        except BrokenLineage as error:
            say(f"not known of {facts.name} version {facts.number}: {error}")
            continue
        matches = [(whole, what) for whole, what in known.items() if whole.startswith(prefix)]
        found += [Impact(facts, what, whole) for whole, what in matches[:1]]
    if strangers:
        say(f"not known of {strangers} versions that Fourstage did not register")
    return sorted(found, key=lambda each: (each.version.name, each.version.number))


def kept_ancestry(tracking: Tracking, model_id: str | None) -> Ancestry:
    """The ancestry that a logged model keeps.

    Raises:
        FilesLost: If MLflow has lost it.
        AlteredFiles: If it is not the one that was logged.
    """
    with verified(tracking, model_id, FILE) as folder:
        return from_json(json.loads((folder / FILE).read_text(encoding="utf-8")))


def _ancestry(tracking: Tracking, found: Version, store_root: Path | None) -> tuple[Ancestry, str]:
    """The way as the model tells it, else as the store does."""
    try:
        return kept_ancestry(tracking, found.model_id), "mlflow"
    except AlteredFiles as error:
        raise BrokenLineage(f"{found.name} version {found.number}: {error}") from error
    except FilesLost as error:
        lost = str(error)
    if store_root is None or not found.key:
        why = "it was not registered by Fourstage" if store_root else "there is no store to ask"
        raise BrokenLineage(
            f"{found.name} version {found.number}: MLflow does not know where it comes from"
            f" ({lost}), and {why}."
        )
    try:
        package = gather(store_root, {"kind": "package", "key": found.key})
        evaluation = found.tags.get(EVALUATION_TAG)
        if evaluation is None:
            return package, "store"
        # What only the evaluation read belongs to the way as well: measurements, their contracts.
        return join(package, gather(store_root, {"kind": "evaluation", "key": evaluation})), "store"
    except BrokenLineage as error:
        raise BrokenLineage(
            f"{found.name} version {found.number}: MLflow has lost its lineage ({lost})"
            f" and the store has not got it: {error}"
        ) from error


def _state(tracking: Tracking, model_id: str) -> tuple[str, str]:
    """Why a model's files are lost, and in what they are altered; empty where they are not."""
    try:
        check_files(tracking, model_id)
    except FilesLost as error:
        return str(error), ""
    except AlteredFiles as error:
        return "", str(error)
    return "", ""


def _logged_models(tracking: Tracking) -> dict[tuple[str, str], tuple[str, str | None]]:
    """Model and run of everything of ours this server holds, by key and digest."""
    models: dict[tuple[str, str], tuple[str, str | None]] = {}
    search = tracking.client.search_logged_models
    for model in every(search, experiment_ids(tracking), max_results=100):
        if {KEY, DIGEST} <= model.tags.keys() and str(model.status) == "READY":
            found = model.model_id, model.source_run_id
            models[model.tags[KEY], model.tags[DIGEST]] = found
    return models
