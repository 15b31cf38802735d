"""Variants of a recipe in a comparison: the same recipe, but for the settings named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fourstage.errors import RecipeError
from fourstage.recipe.paths import parse_path
from fourstage.recipe.resolved import OF_PRETRAINED
from fourstage.recipe.search import in_yaml
from fourstage.strict_yaml import parse_document

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe

OPTION = "--variant"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def parse_variants(given: Sequence[str], option: str = OPTION) -> dict[str, tuple[str, ...]]:
    """Settings of each variant, by its name.

    Args:
        given: ``NAME:PATH=VALUE``; a name that comes again adds a setting.
        option: Where they were given, for the message.

    Raises:
        RecipeError: One has another form.
    """
    found: dict[str, tuple[str, ...]] = {}
    for variant in given:
        name, _, setting = variant.partition(":")
        if not NAME.fullmatch(name) or "=" not in setting:
            raise RecipeError(
                f"{option} {variant[:80]}: expected NAME:PATH=VALUE, the name in lower-case"
                " letters, digits, - and _, such as no-domain:stages.domain="
            )
        found[name] = (*found.get(name, ()), setting)
    return found


def variant_overrides(recipe: ResolvedRecipe, name: str, settings: Sequence[str]) -> list[str]:
    """Overrides that make a recipe its variant.

    What the recipe derives from a stage that the variant leaves out stays as it was, so that only
    the named settings differ: the vocabulary, and what a later stage inherits. A setting of the
    variant may still change it.

    Args:
        recipe: The whole recipe.
        name: The variant's name, which is added to the recipe's.
        settings: ``PATH=VALUE``, as of ``--set``; ``stages.NAME=`` leaves a stage out.

    Raises:
        RecipeError: A setting has no path, its value is no YAML, or it leaves out a stage by its
            number.
    """
    found = {"name": f"{recipe.name}-{name}"}
    gone = _left_out(name, settings)
    names = [stage.name for stage in recipe.stages]
    if gone & set(names) and recipe.stages[0].init is None:
        found["tokenizer.learn_from"] = in_yaml(list(recipe.tokenizer.learn_from))
    first = recipe.seeds_from
    if first is not None and first in gone:
        later = [name for name in names[names.index(first) :] if name not in gone]
        found["seeds.from"] = next(iter(later), first)
    for i, stage in enumerate(recipe.stages):
        for key, value in _inherited(recipe, i, gone).items():
            found[f"stages.{stage.name}.{key}"] = value
    read = {stage.name for stage in recipe.pretraining}
    if read and read <= gone:  # no network is left that could be asked what it knows, or forgets
        if recipe.forgetting_on:
            found["evaluate.forgetting_on"] = "[]"
        if "forgetting" in recipe.require:
            found["promote.require.forgetting"] = ""
        asked = [key for key in OF_PRETRAINED if key != "probes" and getattr(recipe, key)]
        found |= {f"evaluate.{key}": "" for key in asked}  # probes are the same in all recipes
    return [*(f"{path}={value}" for path, value in found.items()), *settings]


def _left_out(name: str, settings: Sequence[str]) -> set[str]:
    """Names of the stages set to nothing: ``stages.task=``, ``stages.task=null``."""
    gone = set()
    for setting in settings:
        option = f"{OPTION} {name}:{setting[:80]}"
        path, _, text = setting.partition("=")
        place = parse_path(path.strip(), option)
        if len(place) == 2 and place[0] == "stages" and parse_document(text, option).value is None:
            if isinstance(place[1], int):  # the resolved recipe may have fewer stages than its file
                raise RecipeError(
                    f"{option}: expected the name of the stage that is left out, as in"
                    f" `stages.task=`, got its number {place[1]}"
                )
            gone.add(place[1])
    return gone


def _inherited(recipe: ResolvedRecipe, i: int, gone: set[str]) -> Mapping[str, str]:
    """What stage `i` has from a stage that is left out, as text of YAML."""
    stage = recipe.stages[i]
    if stage.name in gone:
        return {}
    written = {
        "sequence_length": (f"stages[{i}].phases", str(stage.sequence_length)),
        "precision": (f"stages[{i}].precision", str(stage.precision)),
        "objectives": (f"stages[{i}].objectives", _objectives(stage.objectives, stage.weights)),
        "alternate": (f"stages[{i}].alternate", in_yaml(stage.alternate)),
    }
    origins = {f"inherited from stage {name}" for name in gone}
    return {
        key: value for key, (path, value) in written.items() if recipe.origins.get(path) in origins
    }


def _objectives(objectives: Mapping[str, Mapping], weights: Mapping[str, float]) -> str:
    return in_yaml({n: {**settings, "weight": weights[n]} for n, settings in objectives.items()})
