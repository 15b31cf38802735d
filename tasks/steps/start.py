"""The network that a recipe's first stage is, where ``init`` names one trained elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from fourstage.errors import located
from tasks.store.ancestry import Manifest
from tasks.store.artifacts import Artifact
from tasks.store.steps import Bound, Step

READER = "models.interchange.start"


def has_start(step: Step) -> bool:
    """Whether a step takes what it makes from there."""
    return "start" in step.given


def brought_tokenizer(step: Bound, texts: Iterable[str]) -> Any:
    """The network's tokenizer, with as many words of the texts behind its pieces as are wanted."""
    return _reader().tokenizer_of(
        step.step.given["start"], texts, step.step.settings.get("add_words", 0)
    )


def brought_network(step: Bound, tokenizer: Any) -> Any:
    """The network as a `Checkpoint`, with a row for each piece of the tokenizer."""
    return _reader().with_tokenizer(_reader().read_start(step.step.given["start"]), tokenizer)


def by_number(recipe: Any) -> tuple[Any, dict[str, Path]]:
    """The registered version that a recipe starts from, looked up where it names one.

    Args:
        recipe: As `load_recipe` returns it.

    Returns:
        The recipe, which names the version by its number instead of an alias, so that what it made
        says which it was; and where the version's files lie, by that address.

    Raises:
        RecipeError: There is no such version, or nothing of it was pre-trained.
        EnvironmentFault: Its weights are nowhere, or MLflow does not answer.
    """
    first, *later = recipe.stages
    if first.init is None or not first.init.startswith("models:/"):
        return recipe, {}
    from tasks.registry.stage_files import pretrained_stage

    with located(f"{recipe.where}: stages[0].init"):
        address, folder = pretrained_stage(first.init)
    first = first.model_copy(update={"init": address})
    return recipe.model_copy(update={"stages": (first, *later)}), {address: folder}


def _reader() -> Any:
    """What reads such a network, imported by name.

    So its code enters the keys of steps that have it among their parts, and of no others.
    """
    return import_module(READER)


def made_as(artifact: Artifact | Manifest) -> str:
    """How an artifact came to be: ``trained``, ``imported`` or ``made``."""
    if artifact.kind != "stage":
        return "made"
    return "imported" if "init" in artifact.notes else "trained"
