"""What a home remembers of its registered models, for the day MLflow's database is lost.

The store then still has all that a version was made of, but not which version was the champion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from fourstage.digests import write_atomically
from tasks.registry.register_model import Version, version
from tasks.tracking.connection import Tracking, answered


@answered
def remember_versions(tracking: Tracking, name: str) -> None:
    """Write down a model's versions with their aliases, as they are now."""
    found = tracking.client.search_model_versions(f"name = '{name}'")
    facts = [asdict(version(tracking, name, int(each.version))) for each in found]
    write_atomically(_file(tracking.folder, name), json.dumps(facts, indent=1))


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


def _file(folder: Path, name: str) -> Path:
    plain = re.sub(r"[^\w.-]", "_", name)
    return folder / "registry" / f"{plain}.json"
