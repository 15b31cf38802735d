"""Stages whose weights another one has: only how their heads turn outputs into answers differs.

Such a stage is not trained. It gets the other's weights and history, and its own settings.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.catalogue import literals
from models.stage_format import CONFIG, METRICS
from tasks.store.artifacts import MANIFEST, NOTES, Artifact, Findings, Store
from tasks.store.steps import Bound, Prospect, Unbound

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage


def chooses_threshold(stage: ResolvedStage, folders: Sequence[Path]) -> bool:
    """Whether a stage's head has its threshold from the dev rows."""
    setting = literals("heads", stage.head, folders).get("THRESHOLD") if stage.head else None
    return setting is not None and stage.head_settings[setting] == "dev"


def stage_of_same_weights(step: Bound, store: Store) -> Artifact | None:
    """The newest intact stage with the weights that a step would train.

    None where answers of dev rows choose the weights (`select`, `stop`) or the threshold.

    Args:
        step: The step of a stage.
        store: The store to look in.
    """
    stage, folders = step.step.given["stage"], step.step.given["folders"]
    if stage.head is None or stage.select or stage.stop:
        return None
    of_answers = literals("heads", stage.head, folders).get("ANSWER_SETTINGS", ())
    if not of_answers or chooses_threshold(stage, folders):
        return None
    wanted = _without(step.preimage, of_answers)
    for entry in reversed(list(store.entries("stage"))):
        if entry.key != step.key and _without(entry.preimage, of_answers) == wanted:
            found = store.find("stage", entry.key)
            if isinstance(found, Artifact):
                return found
    return None


def is_copied(prospect: Prospect, store: Store) -> bool:
    """Whether a step that is not in the store would take the weights of another stage."""
    if prospect.reused or prospect.step.kind != "stage" or isinstance(prospect.bound, Unbound):
        return False
    return stage_of_same_weights(prospect.bound, store) is not None


def take_weights(step: Bound, other: Artifact, folder: Path) -> Findings:
    """Write a stage with the weights of another and its own settings.

    Args:
        step: The step of the stage.
        other: The stage of the same weights.
        folder: The stage's folder, empty.
    """
    stage = step.step.given["stage"]
    shutil.copytree(
        other.folder, folder, ignore=shutil.ignore_patterns(MANIFEST), dirs_exist_ok=True
    )
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    config["head"] = {stage.head: dict(stage.head_settings)}
    metrics = {key: said for key, said in other.notes["metrics"].items() if key != "threshold"}
    for path, content in ((folder / CONFIG, config), (folder / NOTES / METRICS, metrics)):
        text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
        path.write_text(text + "\n", "utf-8")
    notes = {**other.notes, "metrics": metrics, "stage": stage.name, "weights_of": other.key}
    return Findings(other.facts, notes)


def _without(preimage: Mapping[str, Any], of_answers: Collection[str]) -> dict[str, Any]:
    """A preimage without those settings of its head."""
    heads = preimage["settings"].get("head") or {}
    kept = {
        head: {name: value for name, value in said.items() if name not in of_answers}
        for head, said in heads.items()
    }
    return {**preimage, "settings": {**preimage["settings"], "head": kept}}
