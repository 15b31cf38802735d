"""Drift references: the state of a source that the champion or the last run was trained on.

They are read from the home's own records of models and runs, not from MLflow, so that ``plan`` and
``explain`` agree with ``run``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.digests import digest
from fourstage.errors import EnvironmentFault
from fourstage.settings import home
from fourstage.terminal import say
from tasks.store.ancestry import BrokenLineage, gather
from tasks.store.artifacts import Artifact, Store
from tasks.store.history import last_references
from tasks.store.kept import QUARANTINED
from tasks.store.registry_memory import CHAMPION, remembered_versions
from tasks.store.step_names import whole_step

if TYPE_CHECKING:
    import pandas as pd

    from fourstage.recipe.resolved import ResolvedRecipe

PROFILE = "profile.parquet"


@dataclass(frozen=True)
class Reference:
    """An earlier state of a source.

    Attributes:
        profile: File of its profile.
        quarantined: File with the ids of its quarantined rows.
        digest: Digest of both files.
    """

    profile: Path
    quarantined: Path
    digest: str

    def kept(self) -> pd.DataFrame:
        """The profile without quarantined rows."""
        import json

        import pandas

        profile = pandas.read_parquet(self.profile)
        quarantined = json.loads(self.quarantined.read_text(encoding="utf-8"))
        return profile.loc[~profile["id"].isin(list(quarantined))]


class DriftReferences:
    """The drift references of a recipe's sources, from records that are read once.

    A source has its state in the lineage of the model's champion, otherwise in the recipe's last
    finished run.

    Args:
        recipe: The resolved recipe.
    """

    def __init__(self, recipe: ResolvedRecipe):
        self._recipe = recipe
        self._store = Store(home())

    def of(self, contract: str) -> Reference | None:
        """The reference of a source, by the name of its contract step.

        None if neither has it or the store no longer does.
        """
        for made in self._records():
            # Kept under the name of the step that made it first, in a recipe that learned from few.
            held = _found(made.get(contract) or made.get(whole_step(contract)), self._store)
            data = _found(held.inputs.get("data"), self._store) if held else None
            if held and data:
                profile, quarantined = data.outputs[PROFILE], held.outputs[QUARANTINED]
                return Reference(
                    data.path(PROFILE),
                    held.path(QUARANTINED),
                    digest({PROFILE: profile, QUARANTINED: quarantined}),
                )
        return None

    def _records(self) -> Iterator[Mapping[str, Mapping[str, str]]]:
        """Kind and key by step name. The last run's are read only where the champion has none."""
        yield self._of_champion
        yield self._of_last_run

    @cached_property
    def _of_champion(self) -> Mapping[str, Mapping[str, str]]:
        """Kind and key of the champion's ancestors, by step name."""
        return _of_champion(self._recipe.model, self._store)

    @cached_property
    def _of_last_run(self) -> Mapping[str, Mapping[str, str]]:
        """Kind and key of the last run's steps, by name; none if the record of it is damaged."""
        try:
            return last_references(self._recipe.name)
        except EnvironmentFault as damage:  # which the next run puts right
            say(f"{damage} Drift since that run is not measured.")
            return {}


def _of_champion(model: str | None, store: Store) -> Mapping[str, Mapping[str, str]]:
    """Kind and key of the champion's ancestors, by step name; empty without a champion."""
    versions = remembered_versions(home(), model) if model else []
    for version in versions:
        if CHAMPION in version.aliases and version.key:
            return dict(_made_from(version.key, store))
    return {}


def _made_from(key: str, store: Store) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        ancestry = gather(store.root, {"kind": "package", "key": key})
    except BrokenLineage:  # the store was emptied since
        return
    # Oldest first: of a refreshed model, the latest state of each source wins.
    for manifest in sorted(ancestry.manifests.values(), key=lambda made: made.created):
        yield manifest.name, {"kind": manifest.kind, "key": manifest.key}


def _found(reference: Mapping[str, str] | None, store: Store) -> Artifact | None:
    found = store.find(reference["kind"], reference["key"]) if reference else None
    return found if isinstance(found, Artifact) else None
