"""A version's lineage as a picture."""

from __future__ import annotations

from pathlib import Path

from tasks.registry.lineage import Hop, Trace
from tasks.registry.lineage_views import lineage_diagram
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
