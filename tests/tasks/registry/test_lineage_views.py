"""A version's lineage as a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tasks.registry.lineage import Hop, Trace
from tasks.registry.lineage_views import lineage_diagram, text
from tasks.reports.plots import LARGEST
from tasks.store.registry_memory import Version
from tests.tasks.lifecycle import Lifecycle


def test_a_lineage_diagram_is_a_picture_and_mermaid(
    lifecycle: Lifecycle, home: Path, saved_model: Path
):
    from tasks.store.ancestry import gather

    whole = Lifecycle(home, 1, saved_model)
    ancestry = gather(whole.store.root, whole["package"])
    hops = tuple(Hop(manifest, None, None, ("store",)) for manifest in ancestry.manifests.values())
    version = Version("relations", 2, ancestry.root, None, None, ("champion",), {})
    diagram = lineage_diagram(Trace(version, hops, "store"))
    assert "data:image/png;base64," in diagram
    assert "```mermaid\nflowchart TD" in diagram
    assert "stage finetune" in diagram
    assert len(diagram) < LARGEST


@pytest.mark.parametrize(("nights", "texts"), [(150, 1), (1, 500)])
def test_a_large_lineage_is_drawn_in_part(lifecycle: Lifecycle, nights: int, texts: int):
    """A stage that continues every night has as many before it, and reads a text of each."""
    from tasks.store.ancestry import gather

    whole = gather(lifecycle.store.root, lifecycle["stage general"])
    (text,) = whole.of_kind("corpus")[:1]
    hops: list[Hop] = []
    before: dict[str, dict[str, str]] = {}
    for night in range(nights):
        read = [replace(text, key=f"{night}-{n}", inputs={}) for n in range(texts)]
        inputs = before | {each.key: {"kind": "corpus", "key": each.key} for each in read}
        stage = replace(whole.artifact, key=f"stage {night}", inputs=inputs)
        before = {"stage before": {"kind": "stage", "key": stage.key}}
        hops += [Hop(each, None, None, ("store",)) for each in (*read, stage)]
    version = Version("relations", 2, stage.key, None, None, (), {})
    diagram = lineage_diagram(Trace(version, tuple(hops), "store"))
    assert "data:image/png;base64," in diagram
    assert diagram.count("-->") == nights * texts + nights  # of Mermaid, with that to the version


def test_a_stage_names_the_version_that_a_part_started_from(lifecycle: Lifecycle):
    from tasks.store.ancestry import gather

    found = gather(lifecycle.store.root, lifecycle["stage domain"])
    noted = {"versions": {"embeddings": "models:/words/3"}}
    manifests = [
        replace(each, notes={**each.notes, **noted}) if each.stage == "domain" else each
        for each in found.manifests.values()
    ]
    hops = tuple(Hop(each, "run" if each.stage else None, None, ("store",)) for each in manifests)
    said = text(Trace(Version("x", 1, found.root, None, None, (), {}), hops, "store"))
    (line,) = [line for line in said.splitlines() if "models:/words/3" in line]
    assert line.startswith("  stage domain ")
    assert "its embeddings from models:/words/3," in line
    starts = {hop.manifest.stage: hop.to_json().get("starts_from") for hop in hops}
    assert starts["domain"] == {"embeddings": "models:/words/3"}
    assert starts["general"] is None
