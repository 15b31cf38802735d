"""From a recipe to its plan: every value resolved, its sources as they are now, its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fourstage.errors import RecipeError
from fourstage.settings import search_folders
from tasks.planning.layout import Layout, Plan, has_pairs
from tasks.registry.stage_files import by_number


def plan_recipe(
    recipe: str, overrides: Sequence[str] = (), smoke: bool = False, seed: int | None = None
) -> Plan:
    """Load a recipe, find its sources' files and lay out its steps.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings laid over it.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        seed: In place of the recipe's; where it has several, of the stages they differ in.

    Raises:
        RecipeError: If the recipe can't be run; before any file of data is touched.
        ContractViolation: If a source's files can't be found or read.
    """
    from corpora.snapshot import take_snapshot
    from data_contracts.sources import load_source, source_names
    from data_contracts.suite import joined, load_suite
    from fourstage.recipe.ledger import SourceFacts
    from fourstage.recipe.loading import find_recipe, load_recipe
    from fourstage.recipe.resolution import resolve

    folders = tuple(search_folders(find_recipe(recipe)))
    loaded, registered = by_number(load_recipe(recipe, overrides, smoke, folders))
    known = source_names(folders)
    sources = {name: load_source(name, folders) for name in known if name in _named(loaded)}
    facts = {n: SourceFacts(sources[n].is_dataset) if n in sources else None for n in known}
    resolved = resolve(loaded, facts, folders, seed, registered)
    used = {name: sources[name] for name in resolved.sources}
    _check_servable(resolved, used)
    suites = {
        name: joined([load_suite(suite, folders) for suite in source.suites])
        for name, source in used.items()
    }
    suites["tokens"] = load_suite("tokens", folders)
    snapshots = {name: take_snapshot(source, folders) for name, source in used.items()}
    layout = Layout(resolved, used, snapshots, suites, folders)
    return Plan(resolved, layout.steps(), folders)


def _check_servable(recipe: Any, sources: Mapping[str, Any]) -> None:
    """A registered model takes one text a call."""
    if recipe.model is not None and has_pairs(sources[recipe.finetune.dataset]):
        raise RecipeError(
            f"{recipe.where}: promote: not supported yet: a model for rows with two texts, as"
            f" source {recipe.finetune.dataset} has them (fields.text_pair). Leave `promote` out:"
            " all stages and the evaluation run without it."
        )


def _named(recipe: Any) -> set[str]:
    """Sources a recipe names, so that a folder of 300 costs the reading of these."""
    names = {*(recipe.decontaminate or ())}
    names |= set((recipe.tokenizer and recipe.tokenizer.learn_from) or ())
    names |= set((recipe.evaluate and recipe.evaluate.forgetting_on) or ())
    names |= set((recipe.evaluate and recipe.evaluate.probes) or ())
    for stage in recipe.stages:
        names |= {*(stage.corpora or {}), *([stage.dataset] if stage.dataset else [])}
    return names
