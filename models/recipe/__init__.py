"""Recipes: the one YAML that says everything about a run.

`load_recipe` reads and checks a file, `resolve` makes every value explicit, `stage_spec` is the
part of a stage that enters its key. ``python -m models.recipe`` writes the JSON schema.
"""

from models.recipe.ledger import SourceFacts
from models.recipe.loading import find_recipe, load_recipe, recipe_names
from models.recipe.resolution import resolve
from models.recipe.resolved import ResolvedRecipe, ResolvedStage, as_recipe, stage_spec
from models.recipe.schema import Recipe
from models.recipe.support import check_supported

__all__ = [
    "Recipe",
    "ResolvedRecipe",
    "ResolvedStage",
    "SourceFacts",
    "as_recipe",
    "check_supported",
    "find_recipe",
    "load_recipe",
    "recipe_names",
    "resolve",
    "stage_spec",
]
