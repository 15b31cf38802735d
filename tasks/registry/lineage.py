"""Lineage: trace a version back to its texts, and texts forward to the versions that saw them.

A version's logged model holds the manifests of its whole ancestry, so MLflow alone is enough. If
MLflow has lost the model, the ancestry is read from the store, by the version's key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fourstage.errors import EnvironmentFault, RecipeError, UnknownNameError
from fourstage.terminal import say
from tasks.registry.evidence import last_evaluation
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
from tasks.store.step_names import STAGE_BEFORE
from tasks.tracking.connection import Tracking, answered, every
from tasks.tracking.logged_files import AlteredFiles, FilesLost, check_files, verified
from tasks.tracking.runs import experiment_ids
from tasks.tracking.tags import DIGEST, KEY

MODELS = ("stage", "package")  # kinds that are logged models
ASKED = 50  # models that are looked up at a time
SHORTEST_PREFIX = 6  # hex digits a digest may be shortened to
URI = re.compile(r"^models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<number>[1-9]\d*))$")


@dataclass(frozen=True)
class Hop:
    """One artifact in a lineage.

    Attributes:
        manifest: Its manifest.
        run_id: Its MLflow run; stages only.
        model_id: Its logged model; stages and packages only.
        held_by: Where it is available now: ``mlflow``, ``store``, both, or neither.
    """

    manifest: Manifest
    run_id: str | None
    model_id: str | None
    held_by: tuple[str, ...]

    @property
    def commit(self) -> str | None:
        """Commit of the code that made it; None if that was not in a git checkout."""
        return self.manifest.notes.get("git", {}).get("commit")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON for ``trace --json``."""
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
            "starts_from": manifest.notes.get("versions"),
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
    """The complete lineage of a version.

    Attributes:
        version: The version.
        hops: All artifacts, parents before children; of several evaluations the last one last.
        told_by: Where the manifests were read from: ``mlflow`` or ``store``.
    """

    version: Version
    hops: tuple[Hop, ...]
    told_by: str

    def stages(self) -> list[Hop]:
        """The stages that trained the version's network, first to last, without teachers."""
        by_key = {hop.manifest.key: hop for hop in self.hops}
        stages: list[Hop] = []
        before = by_key[str(self.version.key)].manifest.inputs["stage"]
        while before:
            stages.insert(0, by_key[before["key"]])
            before = stages[0].manifest.inputs.get(STAGE_BEFORE)
        return stages

    def to_json(self) -> dict[str, Any]:
        """Plain JSON for ``trace --json``."""
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
    """A version whose lineage contains a digest.

    Attributes:
        version: The version.
        through: Description of the match, such as ``snapshot of corpus trials``.
        digest: The full digest that matched.
    """

    version: Version
    through: str
    digest: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON for ``impact --json``."""
        return {**self.version.to_json(), "through": self.through, "digest": self.digest}


@answered
def find(tracking: Tracking, uri: str) -> Version:
    """Find the version at an address.

    Args:
        tracking: The MLflow connection.
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``; the prefix is optional.

    Raises:
        RecipeError: The address is invalid, or the model has no such version.
        UnknownNameError: There is no such model or alias.
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
                    " `fourstage run` with its recipe registers it again without training."
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
    tracking: Tracking,
    uri: str,
    store_root: Path | None = None,
    every_file: bool = True,
    but_of: Collection[str] = (),
) -> Trace:
    """Trace a version back to every stage, tokenizer, contract and text.

    Args:
        tracking: The MLflow connection.
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``.
        store_root: ``$FOURSTAGE_HOME/store``, if there is one.
        every_file: Whether to verify the digest of every file of every model, which a remote server
            has to send.
        but_of: Ids of models whose files are not verified all the same.

    Raises:
        BrokenLineage: An artifact is missing or does not match its digest; the message names it.
    """
    found = find(tracking, uri)
    ancestry, told_by = _ancestry(tracking, found, store_root)
    faults = ancestry.faults()
    if ancestry.root != found.key:
        faults.append(f"its lineage is that of {ancestry.root[:12]}, not of {found.key[:12]}")
    models = _logged_models(tracking, ancestry.of_kind(*MODELS))
    hops = []
    for manifest in ancestry.manifests.values():
        model_id, run_id = models.get((manifest.key, manifest.digest), (None, None))
        if manifest.key == found.key:
            model_id = found.model_id  # the version's own, if there are several
        lost = f"MLflow has no model of {manifest.name}" if manifest.kind in MODELS else ""
        if model_id:
            read = every_file and model_id not in but_of
            lost, altered = _state(tracking, model_id) if read else ("", "")
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
        faults.append("it contains no stage")
    if not ancestry.of_kind("corpus", "dataset"):
        faults.append("it contains no text")
    if faults:
        more = "".join(f"\n  {fault}" for fault in faults[1:10])
        raise BrokenLineage(
            f"the lineage of {found.name} version {found.number} is not complete: {faults[0]}{more}"
        )
    return Trace(found, tuple(hops), told_by)


@answered
def impact(tracking: Tracking, prefix: str, store_root: Path | None = None) -> list[Impact]:
    """Find the versions whose lineage contains a text, tokenizer or weights with a digest.

    Versions with a lost lineage are reported, since they may be affected too; of versions that
    Fourstage did not register, the number is reported.

    Args:
        tracking: The MLflow connection.
        prefix: At least 6 hex digits of a key, digest, snapshot or origin.
        store_root: ``$FOURSTAGE_HOME/store``, if there is one.

    Raises:
        RecipeError: The prefix is not the beginning of a digest.
    """
    prefix = prefix.lower().removeprefix("sha256:")
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_PREFIX},64}}", prefix):
        raise RecipeError(
            f"{prefix[:80]!r} is not the beginning of a digest: expected {SHORTEST_PREFIX} to 64"
            " hex digits, as `fourstage trace --json` shows them."
        )
    found: list[Impact] = []
    unregistered = 0
    for candidate in every(tracking.client.search_model_versions, max_results=1000):
        if KEY not in candidate.tags:
            unregistered += 1
            continue
        facts = version(tracking, candidate.name, int(candidate.version))
        try:
            known = _ancestry(tracking, facts, store_root)[0].digests()
        except BrokenLineage as error:
            say(f"unknown for {facts.name} version {facts.number}: {error}")
            continue
        matches = [(whole, what) for whole, what in known.items() if whole.startswith(prefix)]
        found += [Impact(facts, what, whole) for whole, what in matches[:1]]
    if unregistered:
        versions = "version" if unregistered == 1 else "versions"
        say(f"unknown for {unregistered} {versions} that Fourstage did not register")
    return sorted(found, key=lambda each: (each.version.name, each.version.number))


def kept_ancestry(tracking: Tracking, model_id: str | None) -> Ancestry:
    """Read the ancestry stored with a logged model.

    Raises:
        FilesLost: MLflow has lost it.
        AlteredFiles: It was altered after logging.
    """
    with verified(tracking, model_id, FILE) as folder:
        return from_json(json.loads((folder / FILE).read_text(encoding="utf-8")))


def _ancestry(tracking: Tracking, found: Version, store_root: Path | None) -> tuple[Ancestry, str]:
    """The ancestry from the logged model, or else from the store, and which of the two it was."""
    try:
        kept = kept_ancestry(tracking, found.model_id)
        return _as_evaluated_last(tracking, found, kept), "mlflow"
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
        # Inputs of the evaluation alone belong to the lineage too: measurements, their contracts.
        return join(package, gather(store_root, {"kind": "evaluation", "key": evaluation})), "store"
    except BrokenLineage as error:
        raise BrokenLineage(
            f"{found.name} version {found.number}: MLflow has lost its lineage ({lost})"
            f" and the store does not have it: {error}"
        ) from error


def _as_evaluated_last(tracking: Tracking, found: Version, kept: Ancestry) -> Ancestry:
    """The ancestry that was logged with a version, and behind it that of its last evaluation.

    What was registered may be evaluated anew, such as with more metrics. The version's own scores
    are then the last ones. `fourstage evaluate` alone registers nothing: its scores are its run's.
    """
    key = found.tags.get(EVALUATION_TAG)
    if key is None or key in kept.manifests:
        return kept
    try:
        last = last_evaluation(tracking, found)
    except EnvironmentFault as error:
        say(str(error))
        last = None
    if last is None or last.root != key:
        say(
            f"{found.name} version {found.number} was evaluated again since it was registered, as"
            f" {key[:12]}, of which MLflow knows no lineage; run its recipe again, which registers"
            " it without training."
        )
        return kept
    shared = last.manifests.keys() & kept.manifests.keys()
    if any(last.manifests[k].digest != kept.manifests[k].digest for k in shared):
        # It is of a package that was lost and made anew: its bytes are others, as TensorFlow writes
        # them, and not those that are registered.
        return kept
    later = {k: m for k, m in last.manifests.items() if k not in shared}
    return Ancestry(kept.root, {**kept.manifests, **later})


def _state(tracking: Tracking, model_id: str) -> tuple[str, str]:
    """Why a model's files are lost, and how they were altered; each empty if they are intact."""
    try:
        check_files(tracking, model_id)
    except FilesLost as error:
        return str(error), ""
    except AlteredFiles as error:
        return "", str(error)
    return "", ""


def _logged_models(
    tracking: Tracking, made: Sequence[Manifest]
) -> dict[tuple[str, str], tuple[str, str | None]]:
    """Model id and run id of the logged models of artifacts, by (key, digest)."""
    models: dict[tuple[str, str], tuple[str, str | None]] = {}
    experiments = experiment_ids(tracking)
    for first in range(0, len(made), ASKED):
        keys = ", ".join(f"'{manifest.key}'" for manifest in made[first : first + ASKED])
        search = {"filter_string": f"tags.`{KEY}` IN ({keys})", "max_results": 100}
        for model in every(tracking.client.search_logged_models, experiments, **search):
            if DIGEST in model.tags and str(model.status) == "READY":
                found = model.model_id, model.source_run_id
                models[model.tags[KEY], model.tags[DIGEST]] = found
    return models
