"""Versions of registered models, and the home's copy of them.

If MLflow's database is lost, the store still has a version's artifacts, but does not know which
version was the champion. The copy does.
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
        number: Version number, from 1.
        key: Key of its package.
        model_id: Its logged model, ``m-…``.
        run_id: Lifecycle run that registered it.
        aliases: Its current aliases.
        tags: Its tags.
        created: Whether this call registered it.
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
    """The versions as last saved; empty if they never were or can't be read.

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
    """Save a model's versions with their current aliases."""
    write_atomically(_file(folder, name), json.dumps([asdict(each) for each in versions], indent=1))


def _file(folder: Path, name: str) -> Path:
    plain = re.sub(r"[^\w.-]", "_", name)
    return folder / "registry" / f"{plain}.json"
