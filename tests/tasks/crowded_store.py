"""A wide recipe, and a store with a long history of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fourstage.digests import digest
from tasks.store.artifacts import MANIFEST, Artifact, Findings, Store
from tasks.store.steps import Bound, Step, bind
from tests.flows.own_project import Project, document, recipe, stages


def wide_project(folder: Path, sources: int) -> tuple[Project, Path]:
    """A project whose recipe ``wide`` reads so many corpora; and that recipe."""
    project = Project(folder)
    names = [f"notes{number:03d}" for number in range(sources)]
    for number, name in enumerate(names):
        project.corpus(name, [document(10 * number + own) for own in range(3)])
    of = {"corpora": dict.fromkeys(names, 1.0)}
    wide = recipe("wide", stages=stages(general=of, domain=of), evaluate=None)
    return project, project.recipe(wide)


def make_small(store: Store, steps: Sequence[Step]) -> dict[str, Artifact]:
    """Make steps with next to nothing in them, the way a run does; by step name."""
    made: dict[str, Artifact] = {}
    for step in steps:
        bound = bind(step, made)
        assert isinstance(bound, Bound)

        def work(folder: Path, key: str = bound.key) -> Findings:
            (folder / "counts.json").write_text(key)
            return Findings()

        made[step.name], _ = store.make(step.kind, step.name, bound.preimage, work)
    return made


def age(store: Store, made: Iterable[Artifact], versions: int) -> None:
    """Older versions of entries: each with another setting, key and time, and equal outputs."""
    now = datetime.now(UTC)
    for artifact in made:
        facts = json.loads((artifact.folder / MANIFEST).read_text("utf-8"))
        settings = artifact.preimage["settings"]
        for version in range(1, versions + 1):
            facts["preimage"] = {**artifact.preimage, "settings": {**settings, "night": version}}
            facts["key"] = digest(facts["preimage"])
            facts["created"] = (now - timedelta(days=version)).isoformat(timespec="seconds")
            folder = store.folder(artifact.kind, facts["key"])
            folder.mkdir()
            for name in artifact.outputs:
                (folder / name).hardlink_to(artifact.folder / name)
            (folder / MANIFEST).write_text(json.dumps(facts, indent=1), "utf-8")
        # A link changes a file's times, so its digest is remembered anew, as after a run.
        store.find(artifact.kind, artifact.key)
