"""Everything an artifact was made from, as the manifests of the store say it.

This is what travels into MLflow beside every model, so that a version can be traced when the store
is gone. It holds facts about texts (digests, counts, licences) and never a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fourstage.digests import digest
from fourstage.errors import EnvironmentFault
from models.stage_format import NETWORK
from tasks.store.artifacts import MANIFEST, Artifact, content_digest

FILE = "lineage/manifests.json"  # where a logged model keeps its ancestry


class BrokenLineage(EnvironmentFault):
    """A hop on the way from a version to its texts is missing or is not what it claims to be."""


@dataclass(frozen=True)
class Manifest:
    """What the store says of one artifact, without its files.

    Attributes:
        kind: Kind of the artifact.
        key: Its key, 64 hex digits.
        digest: Digest of its outputs and facts.
        name: Its step's name.
        outputs: sha256 of each file.
        facts: What its maker wrote down of it.
        notes: What its maker wrote down of the making.
        inputs: Each parent's kind, key, digest and name by the role it plays.
        preimage: What the key is the digest of.
        created: UTC time, ISO 8601.
    """

    kind: str
    key: str
    digest: str
    name: str
    outputs: Mapping[str, str]
    facts: Mapping[str, Any]
    notes: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, str]]
    preimage: Mapping[str, Any]
    created: str

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings among what decided it."""
        return self.preimage.get("settings", {})

    @property
    def stage(self) -> str | None:
        """Name of the stage, where it is one."""
        if self.kind != "stage":
            return None
        return str(self.settings.get("name") or self.notes.get("stage") or self.name)

    @property
    def weights_digest(self) -> str | None:
        """Digest of the network's weights, where it has any."""
        return self.facts.get("weights_digest") or self.outputs.get(NETWORK)

    @property
    def source(self) -> Mapping[str, Any]:
        """The source a corpus or dataset comes from: its name, language, licence and origins."""
        return self.notes.get("source", {})

    def faults(self) -> list[str]:
        """What in it contradicts itself."""
        found = []
        if digest(dict(self.preimage)) != self.key:
            found.append(f"{self.kind} {self.key[:12]}: its preimage does not give its key")
        if content_digest(self.kind, self.outputs, self.facts) != self.digest:
            found.append(f"{self.kind} {self.key[:12]}: its outputs do not give its digest")
        return found


UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # what reading a manifest may raise
FIELDS = tuple(Manifest.__dataclass_fields__)


@dataclass(frozen=True)
class Ancestry:
    """An artifact with all its ancestors.

    Attributes:
        root: Key of the artifact.
        manifests: Manifests by key, parents before children.
        folders: Where their files are, as far as they came from a store.
        missing: What could not be read, one sentence each.
    """

    root: str
    manifests: Mapping[str, Manifest]
    folders: Mapping[str, Path] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def artifact(self) -> Manifest:
        """The artifact whose ancestry it is."""
        return self.manifests[self.root]

    def of_kind(self, *kinds: str) -> list[Manifest]:
        """Manifests of some kinds, parents first."""
        return [manifest for manifest in self.manifests.values() if manifest.kind in kinds]

    def parent_stage(self) -> Manifest | None:
        """The stage that a stage goes on from, or that a package or an evaluation is of."""
        inputs = self.artifact.inputs
        found = inputs.get("stage before") or inputs.get("stage")
        return self.manifests.get(found["key"]) if found else None

    def teachers(self) -> list[Manifest]:
        """The stages that a stage learned from without going on from them."""
        return [
            self.manifests[reference["key"]]
            for role, reference in self.artifact.inputs.items()
            if role.startswith("teacher of ") and reference["key"] in self.manifests
        ]

    def read_by(self, child: Manifest, *kinds: str) -> list[Manifest]:
        """What a stage itself read, by kind; that of earlier stages is left out."""
        found: dict[str, Manifest] = {}

        def visit(manifest: Manifest) -> None:
            for reference in manifest.inputs.values():
                parent = self.manifests.get(reference["key"])
                if parent is None or parent.kind in ("stage", "tokenizer"):
                    continue
                if parent.kind in kinds:
                    found[parent.key] = parent
                # What a text was decontaminated against lies behind it and the stage never read.
                if parent.kind not in ("corpus", "dataset"):
                    visit(parent)

        visit(child)
        return list(found.values())

    def licences(self) -> list[str]:
        """Licences of all texts it saw, sorted."""
        found = {str(m.source["licence"]) for m in self.manifests.values() if "licence" in m.source}
        return sorted(found)

    def languages(self) -> list[str]:
        """Languages of all texts it saw, sorted."""
        found = (str(m.source.get("language") or "") for m in self.of_kind("corpus", "dataset"))
        return sorted({language for language in found if language})

    def digests(self) -> dict[str, str]:
        """Every digest by which its texts, tokenizer and steps can be named, with what it names."""
        named: dict[str, str] = {}
        for manifest in self.manifests.values():
            named[manifest.key] = f"key of {manifest.name}"
            named[manifest.digest] = f"digest of {manifest.name}"
            if snapshot := manifest.settings.get("snapshot"):
                named[snapshot] = f"snapshot of {manifest.name}"
            for origin in manifest.source.get("origin", []):
                for published in (origin, *origin.get("files", [])):
                    if value := published.get("sha256"):
                        named[value] = f"origin of {manifest.name}"
            if weights := manifest.weights_digest:
                named[weights] = f"weights of {manifest.name}"
        return named

    def faults(self) -> list[str]:
        """Why it is not complete: empty when every hop is there and is what it claims to be."""
        found = list(self.missing)
        for manifest in self.manifests.values():
            found += manifest.faults()
            declared = sorted(manifest.preimage.get("inputs", {}).values())
            if declared != sorted(reference["digest"] for reference in manifest.inputs.values()):
                found.append(f"{manifest.name}: the inputs it names are not those in its key")
            for role, reference in manifest.inputs.items():
                parent = self.manifests.get(reference["key"])
                if parent is None:
                    if not self.missing:
                        found.append(f"{manifest.name}: its {role} {reference['key'][:12]} is gone")
                elif parent.digest != reference["digest"]:
                    found.append(f"{manifest.name}: its {role} is not the one it was made from")
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain JSON that `from_json` reads back; holds no path."""
        return {
            "root": self.root,
            "manifests": [
                {name: _plain(getattr(manifest, name)) for name in FIELDS}
                for manifest in self.manifests.values()
            ],
        }


def from_json(facts: Mapping[str, Any]) -> Ancestry:
    """The ancestry a logged model keeps.

    Raises:
        BrokenLineage: If it is not one.
    """
    try:
        manifests = [Manifest(**{n: facts_[n] for n in FIELDS}) for facts_ in facts["manifests"]]
        ancestry = Ancestry(facts["root"], {manifest.key: manifest for manifest in manifests})
    except (KeyError, TypeError) as error:
        raise BrokenLineage(f"{FILE} is not a list of manifests: {error}") from error
    if ancestry.root not in ancestry.manifests:
        raise BrokenLineage(f"{FILE} does not hold the artifact it belongs to")
    return ancestry


def gather(store_root: Path, artifact: Artifact | Mapping[str, str]) -> Ancestry:
    """Collect an artifact's ancestry from the store, as far as it is there.

    Args:
        store_root: ``$FOURSTAGE_HOME/store``.
        artifact: The artifact, or its ``{"kind", "key"}``.

    Returns:
        Its ancestry; `Ancestry.faults` says whether it is complete.

    Raises:
        BrokenLineage: If the artifact itself is not in the store.
    """
    if isinstance(artifact, Artifact):
        artifact = artifact.reference
    manifests: dict[str, Manifest] = {}
    folders: dict[str, Path] = {}
    missing: list[str] = []

    def visit(reference: Mapping[str, str]) -> None:
        key = reference["key"]
        if key in manifests:
            return
        folder = store_root / reference["kind"] / key
        try:
            manifest = _read(folder)
        except UNREADABLE as error:
            place = f"store/{reference['kind']}/{key[:12]}…/{MANIFEST}"
            missing.append(f"{place} can't be read: {type(error).__name__}")
            return
        for parent in manifest.inputs.values():
            visit(parent)
        manifests[key] = manifest
        folders[key] = folder

    visit(artifact)
    if artifact["key"] not in manifests:
        raise BrokenLineage(missing[-1])
    return Ancestry(artifact["key"], manifests, folders, tuple(missing))


def in_store(store_root: Path, made: Manifest) -> bool:
    """Whether a store says it has this very thing: other outputs may bear the same key."""
    try:
        return _read(store_root / made.kind / made.key).digest == made.digest
    except UNREADABLE:
        return False


def _read(folder: Path) -> Manifest:
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return Manifest(**{name: facts[name] for name in FIELDS})


def join(first: Ancestry, second: Ancestry) -> Ancestry:
    """The first ancestry, with what only the second holds beside it."""
    return Ancestry(
        first.root,
        {**second.manifests, **first.manifests},
        {**second.folders, **first.folders},
        first.missing + second.missing,
    )


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def made_as(artifact: Artifact | Manifest) -> str:
    """How an artifact came to be: ``trained``, ``imported`` or ``made``."""
    if artifact.kind != "stage":
        return "made"
    return "imported" if "init" in artifact.notes else "trained"
