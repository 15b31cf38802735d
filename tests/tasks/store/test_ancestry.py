"""Ancestries that are longer than Python's stack."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tasks.store.ancestry import FIELDS, gather
from tasks.store.artifacts import MANIFEST


def test_a_stage_that_continued_every_night_has_an_ancestry(tmp_path: Path):
    nights = sys.getrecursionlimit() + 100
    for night in range(nights):
        inputs = {"before": {"kind": "stage", "key": f"k{night - 1}"}} if night else {}
        folder = tmp_path / "stage" / f"k{night}"
        folder.mkdir(parents=True)
        about = dict.fromkeys(FIELDS, "") | {"kind": "stage", "key": f"k{night}", "inputs": inputs}
        (folder / MANIFEST).write_text(json.dumps(about))
    found = gather(tmp_path, {"kind": "stage", "key": f"k{nights - 1}"})
    assert not found.missing
    assert list(found.manifests) == list(found.folders) == [f"k{n}" for n in range(nights)]
