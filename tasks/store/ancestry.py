"""Ancestry of an artifact: its manifest and those of all its ancestors.

It is logged to MLflow with every model, so a version can be traced even without the store. It holds
facts about texts (digests, counts, licences), never a text.
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
from tasks.store.step_names import STAGE_BEFORE

FILE = "lineage/manifests.json"  # ancestry in a logged model


class BrokenLineage(EnvironmentFault):
    """An ancestor of a version is missing or does not match its digest."""


@dataclass(frozen=True)
class Manifest:
    """The manifest of one artifact.

    Attributes:
        kind: Kind of the artifact.
        key: Its key, 64 hex digits.
        digest: Digest of its outputs and facts.
        name: Name of its step.
        outputs: sha256 of each file.
        facts: Facts about the outputs, as in `Findings`.
        notes: Notes on the run that made it, as in `Findings`.
        inputs: Kind, key, digest and name of each parent, by role.
        preimage: The JSON whose digest is the key.
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
        """The step's settings, from the preimage."""
        return self.preimage.get("settings", {})

    @property
    def stage(self) -> str | None:
        """Name of the stage; None for other kinds."""
        if self.kind != "stage":
            return None
        return str(self.settings.get("name") or self.notes.get("stage") or self.name)

    @property
    def weights_digest(self) -> str | None:
        """Digest of the network's weights; None if it has none."""
        return self.facts.get("weights_digest") or self.outputs.get(NETWORK)

    @property
    def source(self) -> Mapping[str, Any]:
        """The source a corpus or dataset comes from: its name, language, licence and origins."""
        return self.notes.get("source", {})

    def faults(self) -> list[str]:
        """Internal contradictions: a key or digest that does not match its contents."""
        found = []
        if digest(dict(self.preimage)) != self.key:
            found.append(f"{self.kind} {self.key[:12]}: its preimage does not give its key")
        if content_digest(self.kind, self.outputs, self.facts) != self.digest:
            found.append(f"{self.kind} {self.key[:12]}: its outputs do not give its digest")
        return found


UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # raised by an unreadable manifest
FIELDS = tuple(Manifest.__dataclass_fields__)


@dataclass(frozen=True)
class Ancestry:
    """An artifact with all its ancestors.

    Attributes:
        root: Key of the artifact.
        manifests: Manifests by key, parents before children.
        folders: Folders of the artifacts that were read from a store, by key.
        missing: One message for each manifest that could not be read.
    """

    root: str
    manifests: Mapping[str, Manifest]
    folders: Mapping[str, Path] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def artifact(self) -> Manifest:
        """Manifest of the artifact itself."""
        return self.manifests[self.root]

    def of_kind(self, *kinds: str) -> list[Manifest]:
        """Manifests of the given kinds, parents first."""
        return [manifest for manifest in self.manifests.values() if manifest.kind in kinds]

    def parent_stage(self) -> Manifest | None:
        """The stage that a stage starts from, or that a package or evaluation belongs to."""
        inputs = self.artifact.inputs
        found = inputs.get(STAGE_BEFORE) or inputs.get("stage")
        return self.manifests.get(found["key"]) if found else None

    def vocabularies(self) -> list[Manifest]:
        """The artifact's own vocabulary, or its stage's, without those of other networks."""
        stage = self.parent_stage()
        inputs = {**(stage.inputs if stage else {}), **self.artifact.inputs}
        found = self.manifests.get(inputs.get("tokenizer", {}).get("key", ""))
        return [found] if found else self.of_kind("tokenizer")[:1]

    def teachers(self) -> list[Manifest]:
        """The stages that a stage learns from otherwise: teachers and what its parts start from."""
        return [
            self.manifests[reference["key"]]
            for role, reference in self.artifact.inputs.items()
            if role.startswith(("teacher of ", "start of "))
            and reference["kind"] == "stage"
            and reference["key"] in self.manifests
        ]

    def read_by(self, child: Manifest, *kinds: str) -> list[Manifest]:
        """The artifacts of some kinds that a stage read itself, without those of earlier stages."""
        found: dict[str, Manifest] = {}

        def visit(manifest: Manifest) -> None:
            for reference in manifest.inputs.values():
                parent = self.manifests.get(reference["key"])
                if parent is None or parent.kind in ("stage", "tokenizer"):
                    continue
                if parent.kind in kinds:
                    found[parent.key] = parent
                # Parents of a text are what it was decontaminated against; the stage never read it.
                if parent.kind not in ("corpus", "dataset"):
                    visit(parent)

        visit(child)
        return list(found.values())

    def licences(self) -> list[str]:
        """Licences of all texts in it, sorted."""
        found = {str(m.source["licence"]) for m in self.manifests.values() if "licence" in m.source}
        return sorted(found)

    def languages(self) -> list[str]:
        """Languages of all texts in it, sorted."""
        found = (str(m.source.get("language") or "") for m in self.of_kind("corpus", "dataset"))
        return sorted({language for language in found if language})

    def digests(self) -> dict[str, str]:
        """Description by digest: of every key, content, snapshot, origin and weights digest."""
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
        """Reasons why the ancestry is incomplete or inconsistent; empty if it is sound."""
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
        """Plain JSON for `from_json`, without paths."""
        return {
            "root": self.root,
            "manifests": [
                {name: _plain(getattr(manifest, name)) for name in FIELDS}
                for manifest in self.manifests.values()
            ],
        }


def from_json(facts: Mapping[str, Any]) -> Ancestry:
    """Read the ancestry of a logged model.

    Raises:
        BrokenLineage: The JSON is not an ancestry.
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
    """Collect an artifact's ancestry from the store, as far as the store has it.

    Args:
        store_root: ``$FOURSTAGE_HOME/store``.
        artifact: The artifact, or its ``{"kind", "key"}``.

    Returns:
        Its ancestry, perhaps incomplete; see `Ancestry.faults`.

    Raises:
        BrokenLineage: The artifact itself is not in the store.
    """
    if isinstance(artifact, Artifact):
        artifact = artifact.reference
    manifests: dict[str, Manifest] = {}
    folders: dict[str, Path] = {}
    missing: list[str] = []

    # No recursion: a stage that continues every night has a stage before it for each of them.
    waiting: list[tuple[Mapping[str, str], Manifest | None]] = [(artifact, None)]
    while waiting:
        reference, manifest = waiting.pop()
        key = reference["key"]
        folder = store_root / reference["kind"] / key
        if manifest is not None:  # its parents are there now
            manifests[key] = manifest
            folders[key] = folder
        elif key not in manifests:
            try:
                manifest = _read(folder)
            except UNREADABLE as error:
                place = f"store/{reference['kind']}/{key[:12]}…/{MANIFEST}"
                missing.append(f"{place} can't be read: {type(error).__name__}")
                continue
            waiting.append((reference, manifest))
            waiting += [(parent, None) for parent in reversed([*manifest.inputs.values()])]
    if artifact["key"] not in manifests:
        raise BrokenLineage(missing[-1])
    return Ancestry(artifact["key"], manifests, folders, tuple(missing))


def in_store(store_root: Path, made: Manifest) -> bool:
    """Whether a store has this artifact, with the same digest: a key may have other outputs."""
    try:
        return _read(store_root / made.kind / made.key).digest == made.digest
    except UNREADABLE:
        return False


def _read(folder: Path) -> Manifest:
    facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return Manifest(**{name: facts[name] for name in FIELDS})


def join(first: Ancestry, second: Ancestry) -> Ancestry:
    """The first ancestry, plus the manifests that only the second has."""
    return Ancestry(
        first.root,
        {**second.manifests, **first.manifests},
        {**second.folders, **first.folders},
        first.missing + second.missing,
    )


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value


def made_as(artifact: Artifact | Manifest) -> str:
    """How an artifact was made: ``trained``, ``imported``, ``copied`` (its weights) or ``made``."""
    if artifact.kind != "stage":
        return "made"
    if "weights_of" in artifact.notes:
        return "copied"
    return "imported" if "init" in artifact.notes else "trained"
