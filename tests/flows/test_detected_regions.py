"""Pictures that only a detector has seen: its table goes through all stages, classes included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.corpora.test_region_readers import coded
from tests.flows.own_project import FIELDS, Project, recipe
from tests.flows.person import Answer, Person

pytestmark = pytest.mark.slow

THINGS, COLOURS = ("ball", "cup", "lamp"), ("red", "green")
DIM = 6
SIZE = {"num_layers": 1, "num_region_layers": 1, "num_cross_layers": 1, "hidden_dim": 32}
SIZE |= {"num_heads": 2, "intermediate_dim": 64, "region_dim": DIM}


def picture(number: int) -> tuple[str, str]:
    """Its line in LXMERT's ten columns, and a caption: a thing of one colour beside another one."""
    rng = np.random.default_rng(number)
    things, colours = rng.integers(0, 3, 2), rng.integers(0, 2, 2)
    corners = np.sort(rng.random((2, 2, 2)), axis=1).reshape(2, 4) * ([64, 48] * 2)
    features = np.concatenate([np.eye(3)[things], np.eye(3)[colours]], axis=1)
    sure = np.full(2, 0.9, np.float32)
    told = [coded(things), coded(sure), coded(colours), coded(sure), 2]
    seen = [coded(corners.astype(np.float32)), coded(features.astype(np.float32))]
    caption = f"A {COLOURS[colours[0]]} {THINGS[things[0]]} and a {THINGS[things[1]]}."
    return "\t".join(map(str, [number, 48, 64, *told, *seen])), caption


def written(folder: Path) -> Project:
    """A project of captions, half of them another picture's, and of the detector's table."""
    project = Project(folder)
    drawn = [picture(number) for number in range(260)]
    (folder / "data" / "regions.tsv").write_text("\n".join(line for line, _ in drawn) + "\n")
    for split, numbers in {
        "train": range(160),
        "dev": range(160, 210),
        "test": range(210, 260),
    }.items():
        rows = [
            {
                "id": f"c{n}",
                "text": drawn[n if n % 2 else (n + 7) % 260][1],
                "label": ("no", "yes")[n % 2],
                "picture": str(n),
            }
            for n in numbers
        ]
        project.lines(f"captions-{split}.jsonl", rows)
    shared = {
        "files": {s: f"data/captions-{s}.jsonl" for s in ("train", "dev", "test")},
        "fields": {**FIELDS, "label": "label", "picture": "picture"},
        "pictures": {
            "files": ["data/regions.tsv"],
            "region_dim": DIM,
            "object_classes": len(THINGS),
            "attribute_classes": len(COLOURS),
        },
    }
    project.source("captions", **shared)
    project.source("true_captions", where={"label": "yes"}, **shared)
    return project


def done(answer: Answer) -> list[str]:
    """What was done with the stages that the recipe has."""
    statuses = [stage["status"] for stage in answer.json["stages"]]
    return [status for status in statuses if status != "skipped"]


def test_what_a_detector_told_is_learned_and_rows_with_its_regions_are_answered(
    person: Callable[..., Person], tmp_path: Path
):
    project = written(tmp_path / "own")
    learned = {"detected": [len(THINGS), len(COLOURS)]}
    stages = [
        {
            "stage": "general",
            "corpora": {"true_captions": 1.0},
            "objectives": {"masked_lm": {}, "image_text_match": {}, "region_class": learned},
            "sequence_length": 16,
            "batch_size": 16,
            "budget": {"steps": 60},
        },
        {
            "stage": "finetune",
            "dataset": "captions",
            "head": {"sequence_classification": {}},
            "batch_size": 16,
            "budget": {"epochs": 2},
        },
    ]
    evaluate = {"metrics": ["accuracy"], "forgetting_on": []}
    changes = {"family": "lxmert", "size": SIZE, "stages": stages, "evaluate": evaluate}
    project.recipe(recipe("seen", promote=None, **changes))
    viewer = person(project.folder)
    answer = viewer.types("run", "seen", "--json")
    assert answer.code == 0, answer.told()
    assert done(answer) == ["trained", "trained"]
    heads = [*viewer.home.glob("store/stage/*/heads/region_class.safetensors")]
    learned_biases = [load_file(head)["output/bias"] for head in heads]
    # Learned in the first stage and kept by the second.
    assert [bias.shape for bias in learned_biases] == [(len(THINGS) + len(COLOURS),)] * 2
    assert all(np.any(bias != 0) for bias in learned_biases)
    assert done(viewer.types("run", "seen", "--json")) == ["reused", "reused"]

    stages[0]["objectives"]["region_class"] = {"detected": [len(THINGS) + 1, len(COLOURS)]}
    project.recipe(recipe("other", promote=None, **changes))
    refused = viewer.types("run", "other")
    assert refused.code == 2, refused.told()
    assert "the pictures of true_captions have 3 object classes and 2 attributes" in refused.err
