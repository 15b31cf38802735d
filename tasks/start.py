"""The network that a recipe's first stage is, where ``init`` names one trained elsewhere."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tasks.artifacts import Artifact
from tasks.steps import Bound, Step

READER = "models.interchange.start"


def has_start(step: Step) -> bool:
    """Whether a step takes what it makes from there."""
    return "start" in step.given


def read_start(step: Bound, *, weights: bool) -> Any:
    """The `Checkpoint`.

    Imported by name: so the reader's code enters the keys of steps that have it among their parts,
    and not that of every vocabulary ever learned.
    """
    start: Path = step.step.given["start"]
    return import_module(READER).read_start(start, weights=weights)


def made_as(artifact: Artifact) -> str:
    """How an artifact came to be: ``trained``, ``imported`` or ``made``."""
    if artifact.kind != "stage":
        return "made"
    return "imported" if "init" in artifact.details else "trained"
