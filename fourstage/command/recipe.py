"""Resolves and checks the recipe of a command line before anything is started."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from fourstage.settings import search_folders

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe


def resolved_recipe(name: str, options: Namespace) -> ResolvedRecipe:
    """The resolved and fully checked recipe.

    This takes less than a second. What a flow would refuse is refused here, before Prefect, MLflow
    or TensorFlow are imported, except that a recipe that starts from a registered version needs
    MLflow.

    Args:
        name: Path or name of the recipe.
        options: With ``overrides`` and ``smoke``.

    Raises:
        RecipeError: The recipe is invalid; the message lists every error, one per line.
    """
    from data_contracts.sources import load_source, source_names
    from fourstage.recipe.ledger import SourceFacts
    from fourstage.recipe.loading import find_recipe, load_recipe
    from fourstage.recipe.resolution import resolve
    from tasks.registry.stage_files import by_number

    folders = search_folders(find_recipe(name))
    recipe, registered = by_number(load_recipe(name, options.overrides, options.smoke, folders))
    used = recipe.source_names
    facts = {
        source: SourceFacts(load_source(source, folders).is_dataset) if source in used else None
        for source in source_names(folders)
    }
    return resolve(recipe, facts, folders, registered=registered)
