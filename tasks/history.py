"""What the last finished run of a recipe was made of, where ``refresh`` goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from fourstage.digests import write_atomically
from fourstage.settings import home
from tasks.artifacts import Artifact, Store


def remember(recipe: str, made: Mapping[str, Artifact]) -> None:
    """Write down a finished run's artifacts by step name."""
    facts = {name: artifact.reference for name, artifact in made.items()}
    write_atomically(_file(recipe), json.dumps(facts, indent=1))


def last_references(recipe: str) -> dict[str, dict[str, str]]:
    """Kind, key and digest of each step of the last finished run; empty where there was none."""
    try:
        return json.loads(_file(recipe).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def remembered() -> Iterator[dict[str, str]]:
    """Kind, key and digest of every artifact of each recipe's last finished run."""
    for path in sorted((home() / "recipes").glob("*.json")):
        yield from last_references(path.stem).values()


def last_artifacts(recipe: str, store: Store) -> dict[str, Artifact]:
    """Those of the last finished run's artifacts that the store still has, whole."""
    found: dict[str, Artifact] = {}
    for name, reference in last_references(recipe).items():
        artifact = store.find(reference["kind"], reference["key"])
        if isinstance(artifact, Artifact):
            found[name] = artifact
    return found


def _file(recipe: str) -> Path:
    return home() / "recipes" / f"{recipe}.json"
