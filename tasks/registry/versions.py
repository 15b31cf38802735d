"""Versions in MLflow's registry: names, lookup, aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fourstage.errors import RecipeError
from tasks.store.registry_memory import CHAMPION, Version, remember
from tasks.tracking.connection import Tracking, answered, every
from tasks.tracking.logged_files import lost_folder
from tasks.tracking.tags import FILES, KEY

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

CHALLENGER = "challenger"
PREVIOUS = "previous"
SMOKE = "-smoke"
SMOKE_TAG = "fourstage.smoke"
MODEL_TAG = "fourstage.model_id"
EVALUATION_TAG = "fourstage.evaluation_key"


def registered_name(name: str, smoke: bool) -> str:
    """Name of the registered model. Smoke runs get a name of their own.

    Raises:
        RecipeError: A real run uses a name that is reserved for smoke runs.
    """
    if smoke:
        return name if name.endswith(SMOKE) else name + SMOKE
    if name.endswith(SMOKE):
        raise RecipeError(
            f"promote.model: {name!r} ends in {SMOKE!r}, which is reserved for --smoke runs;"
            " choose another name."
        )
    return name


@answered
def find_version(tracking: Tracking, name: str, key: str) -> ModelVersion | None:
    """The first version of a model with a package's key and a listing of its files."""
    found = tracking.client.search_model_versions(f"tags.`{KEY}` = '{key}'")
    ours = [each for each in found if each.name == name and FILES in each.tags]
    return min(ours, key=lambda candidate: int(candidate.version), default=None)


@answered
def version(tracking: Tracking, name: str, number: int) -> Version:
    """A version with its aliases, which MLflow's own searches leave out."""
    found = tracking.client.get_model_version(name, str(number))
    return _pointed_to(found, aliases(tracking, name))


def _pointed_to(found: ModelVersion, there: Mapping[str, int]) -> Version:
    """MLflow's version, with those of its model's aliases that point to it."""
    number = int(found.version)
    return Version(
        name=found.name,
        number=number,
        key=found.tags.get(KEY, ""),
        # Open-source MLflow does not store the logged model of a version.
        model_id=found.tags.get(MODEL_TAG),
        run_id=found.run_id,
        aliases=tuple(sorted(alias for alias, at in there.items() if at == number)),
        tags=dict(found.tags),
    )


@answered
def aliases(tracking: Tracking, name: str) -> dict[str, int]:
    """Version number of each alias of a model."""
    found = tracking.client.get_registered_model(name).aliases
    return {alias: int(number) for alias, number in found.items()}


@answered
def registered_names(tracking: Tracking) -> list[str]:
    """Names of all registered models."""
    return [model.name for model in every(tracking.client.search_registered_models)]


def lost_champion(pointing: Mapping[str, int]) -> int | None:
    """The previous champion's number if the champion alias was removed."""
    return None if CHAMPION in pointing else pointing.get(PREVIOUS)


@answered
def without_champion(tracking: Tracking) -> dict[str, int]:
    """The previous champion's number for each model whose champion alias was removed."""
    found = {
        model.name: lost_champion(model.aliases)
        for model in every(tracking.client.search_registered_models)
    }
    return {name: int(previous) for name, previous in found.items() if previous is not None}


@answered
def without_files(tracking: Tracking) -> dict[str, str]:
    """Why its champion's files are lost, for each model of ours."""
    found = {}
    for model in every(tracking.client.search_registered_models):
        if CHAMPION in model.aliases:
            champion = version(tracking, model.name, int(model.aliases[CHAMPION]))
            if champion.model_id and (why := lost_folder(tracking, champion.model_id)):
                found[model.name] = f"version {champion.number}: {why}"
    return found


@answered
def remember_versions(tracking: Tracking, name: str) -> None:
    """Save a model's versions and current aliases in the home."""
    # All at once: for each one, MLflow would read all versions of the model to name its aliases.
    found = every(tracking.client.search_model_versions, f"name = '{name}'", max_results=1000)
    there = aliases(tracking, name)
    remember(tracking.folder, name, (_pointed_to(each, there) for each in found))
