"""Artifacts of each recipe's last finished run, from which ``refresh`` continues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from fourstage.digests import write_atomically
from fourstage.errors import EnvironmentFault
from fourstage.settings import home
from tasks.store.artifacts import Artifact

REFERENCE = ("kind", "key", "digest")


def remember(recipe: str, made: Mapping[str, Artifact]) -> None:
    """Save the references of a finished run's artifacts, by step name."""
    facts = {name: artifact.reference for name, artifact in made.items()}
    write_atomically(_file(recipe), json.dumps(facts, indent=1))


def last_references(recipe: str) -> dict[str, dict[str, str]]:
    """Kind, key and digest of each step of the last finished run; empty if there is none."""
    file = _file(recipe)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {name: {key: each[key] for key in REFERENCE} for name, each in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EnvironmentFault(
            f"{file}: can't read the artifacts of the last run of {recipe}"
            f" ({type(error).__name__}). Run the recipe again to rewrite the file, or remove it:"
            " then nothing continues from that run, and `gc` may remove its artifacts."
        ) from error


def remembered() -> Iterator[dict[str, str]]:
    """Kind, key and digest of every artifact of each recipe's last finished run."""
    for path in sorted((home() / "recipes").glob("*.json")):
        yield from last_references(path.stem).values()


def _file(recipe: str) -> Path:
    return home() / "recipes" / f"{recipe}.json"
