"""Plan a recipe: resolve its values, snapshot its sources, lay out its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.activity import activity
from fourstage.settings import search_folders
from tasks.planning.layout import Layout, Plan
from tasks.registry.stage_files import by_number

if TYPE_CHECKING:
    from data_contracts.sources import Source
    from fourstage.recipe.resolved import ResolvedRecipe


def resolve_recipe(
    recipe: str, overrides: Sequence[str] = (), smoke: bool = False, seed: int | None = None
) -> tuple[ResolvedRecipe, dict[str, Source], tuple[Path, ...]]:
    """Load a recipe and make every value explicit, without touching data files.

    This takes less than a second and imports neither Prefect nor TensorFlow. MLflow is needed only
    by a recipe that starts from a registered version.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        seed: Replaces the recipe's seed; with several seeds, that of the stages they differ in.

    Returns:
        The recipe, its sources, and the project folders, which are searched first.

    Raises:
        RecipeError: The recipe is invalid; the message lists every error, one per line.
    """
    from data_contracts.sources import load_source, source_names
    from fourstage.recipe.ledger import SourceFacts
    from fourstage.recipe.loading import find_recipe, load_recipe
    from fourstage.recipe.resolution import resolve

    folders = tuple(search_folders(find_recipe(recipe)))
    loaded, registered = by_number(load_recipe(recipe, overrides, smoke, folders))
    known = source_names(folders)  # only sources that the recipe names are loaded
    sources = {name: load_source(name, folders) for name in known if name in loaded.source_names}
    facts = {
        n: SourceFacts(sources[n].is_dataset, sources[n].answers) if n in sources else None
        for n in known
    }
    resolved = resolve(loaded, facts, folders, seed, registered)
    return resolved, {name: sources[name] for name in resolved.sources}, folders


def plan_recipe(
    recipe: str, overrides: Sequence[str] = (), smoke: bool = False, seed: int | None = None
) -> Plan:
    """Resolve a recipe, find its sources' files and lay out its steps.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        seed: Replaces the recipe's seed; with several seeds, that of the stages they differ in.

    Raises:
        RecipeError: The recipe is invalid; raised before any data file is touched.
        ContractViolation: A source's files can't be found or read.
    """
    return lay_out(*resolve_recipe(recipe, overrides, smoke, seed), smoke)


def lay_out(
    resolved: ResolvedRecipe,
    sources: Mapping[str, Source],
    folders: tuple[Path, ...],
    smoke: bool = False,
) -> Plan:
    """Find the files of a resolved recipe's sources and lay out its steps.

    Args:
        resolved: The recipe.
        sources: The sources it reads.
        folders: Project folders, searched first.
        smoke: Whether it is a smoke run.

    Raises:
        ContractViolation: A source's files can't be found or read.
    """
    from corpora.snapshot import take_snapshot
    from data_contracts.suite import joined, load_suite

    with activity("reading the recipe"):
        suites = {
            name: joined([load_suite(suite, folders) for suite in source.suites])
            for name, source in sources.items()
        }
        suites["tokens"] = load_suite("tokens", folders)
        snapshots = {name: take_snapshot(source, folders) for name, source in sources.items()}
        layout = Layout(resolved, sources, snapshots, suites, folders)
        return Plan(resolved, layout.steps(), folders, smoke)
