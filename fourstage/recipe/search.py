"""The settings that a search tries."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import yaml

MOST_TRIALS = 1000
# Keys of a stage that say what it is rather than how it is trained.
FIXED = frozenset(
    {"stage", "name", "family", "size", "init", "dataset", "overlap", "training_rows", "refresh"}
)


@dataclass(frozen=True)
class ResolvedSearch:
    """A search with every value explicit.

    Attributes:
        grid: Values by place in the finetune stage.
        metric: What chooses.
        seeds: Seeds of fine-tuning at which each combination is tried.
        folds: Parts of the training rows for cross-validation; None: the dev rows decide.
    """

    grid: Mapping[str, tuple[Any, ...]]
    metric: str
    seeds: tuple[int, ...]
    folds: int | None = None

    def points(self) -> list[dict[str, Any]]:
        """Every combination of values; the last place varies fastest.

        Example: {batch_size: (8, 16), budget.epochs: (2, 3)} → [{batch_size: 8, budget.epochs: 2},
        {batch_size: 8, budget.epochs: 3}, {batch_size: 16, …}, …].
        """
        return [
            dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
        ]

    @property
    def trials(self) -> int:
        """How often the stage is trained."""
        points = 1
        for values in self.grid.values():
            points *= len(values)
        return points * len(self.seeds) * (self.folds or 1)


def overrides_of(point: Mapping[str, Any], stage: str) -> tuple[str, ...]:
    """A combination as ``--set`` takes it, without a search.

    Args:
        point: Values by place in the stage.
        stage: Name of the finetune stage.
    """
    return (*(f"stages.{stage}.{place}={in_yaml(v)}" for place, v in point.items()), "search=")


def told(point: Mapping[str, Any]) -> str:
    """A combination in words: ``batch_size 8, epochs 2``."""
    shown = (f"{place.rpartition('.')[2]} {_shown(value)}" for place, value in point.items())
    return ", ".join(shown) or "as written"


def in_yaml(value: object) -> str:
    """A value as ``--set`` reads it, which is YAML; JSON's 2e-05 would be text there."""
    return yaml.safe_dump([value], default_flow_style=True, width=math.inf).strip()[1:-1]


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value).strip('"')
