"""Refuses, before any work, keys of the schema that are not implemented yet.

When one is implemented, its line here is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fourstage.recipe.messages import raise_all
from fourstage.recipe.schema import OptimizerSettings, Part, Recipe, Stage

TO_COME: Mapping[type[Part], tuple[str, ...]] = {
    Stage: ("lengths", "decode"),
    OptimizerSettings: ("groups",),
}


def check_supported(recipe: Recipe) -> None:
    """Refuse what is part of the schema but not implemented yet.

    Raises:
        RecipeError: One line for each, "not supported yet: …".
    """
    raise_all(
        [f"{recipe.where}: {place}: not supported yet: {what}" for place, what in _to_come(recipe)]
    )


def _to_come(recipe: Recipe) -> Iterator[tuple[str, str]]:
    for i, stage in enumerate(recipe.stages):
        for place, what in _in_stage(stage):
            yield f"stages[{i}].{place}", what


def _in_stage(stage: Stage) -> Iterator[tuple[str, str]]:
    for key in TO_COME[Stage]:
        if getattr(stage, key) is not None:
            yield key, f"the key {key!r}"
    if stage.long_rows not in (None, "head"):
        said = stage.long_rows if isinstance(stage.long_rows, str) else "windows"
        yield "long_rows", f"{said!r}; there is: head"
    if stage.optimizer is None:
        return
    for name in stage.optimizer.model_fields_set:
        settings = getattr(stage.optimizer, name)
        for key in TO_COME[OptimizerSettings] if settings is not None else ():
            if getattr(settings, key) is not None:
                yield f"optimizer.{name}.{key}", f"the key {key!r}"
