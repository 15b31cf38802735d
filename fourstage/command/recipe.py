"""The recipe of a command line, checked before anything is started for it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from fourstage.settings import search_folders

if TYPE_CHECKING:
    from models.recipe import ResolvedRecipe


def resolved_recipe(name: str, options: Namespace) -> ResolvedRecipe:
    """Every value of a recipe, after all that can be wrong with it has been looked for.

    This takes less than a second: what a flow would also refuse is refused here, before Prefect,
    MLflow or TensorFlow are even imported; but where the recipe starts from a registered version,
    MLflow is asked for it.

    Args:
        name: Path or name of the recipe.
        options: With ``overrides`` and ``smoke``.

    Raises:
        RecipeError: Everything that is wrong, a line each.
    """
    from data_contracts.sources import load_source, source_names
    from models.recipe import SourceFacts, find_recipe, load_recipe, resolve
    from tasks.start import by_number

    folders = search_folders(find_recipe(name))
    recipe, registered = by_number(load_recipe(name, options.overrides, options.smoke, folders))
    used = recipe.source_names
    facts = {
        source: SourceFacts(load_source(source, folders).is_dataset) if source in used else None
        for source in source_names(folders)
    }
    return resolve(recipe, facts, folders, registered=registered)
