"""Versions of registered models, and what a home remembers of them.

Where MLflow's database is lost, the store still has all that a version was made of, but not which
version was the champion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fourstage.digests import write_atomically

CHAMPION = "champion"
METRICS_TAG = "fourstage.metrics"


@dataclass(frozen=True)
class Version:
    """A version in the registry.

    Attributes:
        name: The registered model.
        number: The version, from 1.
        key: Key of the package it holds.
        model_id: Its logged model, ``m-…``.
        run_id: The lifecycle's run that registered it.
        aliases: Aliases that point to it now.
        tags: Its tags.
        created: Whether the call made it.
    """

    name: str
    number: int
    key: str
    model_id: str | None
    run_id: str | None
    aliases: tuple[str, ...]
    tags: Mapping[str, str]
    created: bool = False

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of its evaluation."""
        return json.loads(self.tags.get(METRICS_TAG, "{}"))

    def to_json(self) -> dict[str, Any]:
        """As ``run --json`` prints it."""
        return {"name": self.name, "version": self.number, "aliases": list(self.aliases)}


def remembered_versions(folder: Path, name: str) -> list[Version]:
    """The versions as they were last written down; none where they never were.

    Args:
        folder: The home.
        name: The registered model.
    """
    try:
        facts = json.loads(_file(folder, name).read_text(encoding="utf-8"))
        return [Version(**{**each, "aliases": tuple(each["aliases"])}) for each in facts]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def every_remembered_version(folder: Path) -> Iterator[Version]:
    """The remembered versions of all models."""
    for path in sorted((folder / "registry").glob("*.json")):
        yield from remembered_versions(folder, path.stem)


def remember(folder: Path, name: str, versions: Iterable[Version]) -> None:
    """Write down a model's versions with their aliases, as they are now."""
    write_atomically(_file(folder, name), json.dumps([asdict(each) for each in versions], indent=1))


def _file(folder: Path, name: str) -> Path:
    plain = re.sub(r"[^\w.-]", "_", name)
    return folder / "registry" / f"{plain}.json"
