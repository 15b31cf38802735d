"""Refuses, before any work, keys of the schema that are not implemented yet.

When one is implemented, its line here is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fourstage.recipe import parts
from fourstage.recipe.messages import raise_all
from fourstage.recipe.schema import Recipe, Stage
from models.tokenizers.loading import CLASSES

OPTIMIZERS = ("adamw",)
SCHEMES = tuple(CLASSES)
STAGE_KEYS_TO_COME = ("lengths", "decode")
REMEDIES = ("layer_decay",)


def check_supported(recipe: Recipe, folders: Sequence[Path] = ()) -> None:
    """Refuse what is part of the schema but not implemented yet.

    Raises:
        RecipeError: One line for each, "not supported yet: …".
    """
    raise_all(
        [
            f"{recipe.where}: {place}: not supported yet: {what}"
            for place, what in _to_come(recipe, folders)
        ]
    )


def _to_come(recipe: Recipe, folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    families = {"family": recipe.family}
    families |= {f"stages[{i}].family": s.family for i, s in enumerate(recipe.stages) if s.family}
    for place, family in families.items():
        if parts.is_missing(family, "families", folders):
            there = ", ".join(parts.available("families", folders))
            yield place, f"the family {family!r}; there are: {there}"
    tokenizer = recipe.tokenizer
    if tokenizer and tokenizer.scheme and tokenizer.scheme not in SCHEMES:
        yield "tokenizer.scheme", f"{tokenizer.scheme!r}; there are: {', '.join(SCHEMES)}"
    for i, stage in enumerate(recipe.stages):
        for place, what in _in_stage(stage, folders):
            yield f"stages[{i}].{place}", what


def _in_stage(stage: Stage, folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for key in STAGE_KEYS_TO_COME:
        if getattr(stage, key) is not None:
            yield key, f"the key {key!r}"
    for kind, key in (("objectives", "objectives"), ("heads", "head")):
        for name in getattr(stage, key) or ():
            if parts.is_missing(name, kind, folders):
                there = ", ".join(parts.available(kind, folders))
                yield key, f"the {kind.removesuffix('s')} {name!r}; there are: {there}"
    for name in sorted(stage.remedies.model_fields_set if stage.remedies else ()):
        if name not in REMEDIES:
            yield "remedies", f"{name!r}; there is: {', '.join(REMEDIES)}"
    if stage.long_rows not in (None, "head"):
        said = stage.long_rows if isinstance(stage.long_rows, str) else "windows"
        yield "long_rows", f"{said!r}; there is: head"
    if stage.optimizer is None:
        return
    for name in stage.optimizer.model_fields_set:
        if name not in OPTIMIZERS:
            yield "optimizer", f"{name!r}; there is: {', '.join(OPTIMIZERS)}"
        settings = getattr(stage.optimizer, name)
        if settings is not None and settings.groups is not None:
            yield f"optimizer.{name}.groups", "the key 'groups'"
