"""Entries and contrasts of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fourstage.errors import RecipeError, UnknownNameError
from tasks.comparison.participants import Entry, pretraining_stages
from tasks.comparison.variants import parse_variants, variant_overrides
from tasks.planning.plan import plan_recipe
from tasks.registry.gate import BASELINE


def entries_of(
    recipes: Sequence[str],
    overrides: Sequence[str] = (),
    smoke: bool = False,
    seeds: Sequence[int] | None = None,
    variants: Sequence[str] = (),
    accepted: Sequence[str] = (),
) -> list[Entry]:
    """Turn recipes into entries, and check before any work that they can be compared.

    Args:
        recipes: Names or paths.
        overrides: ``a.b=c`` settings that override those of all recipes.
        smoke: Whether to keep only their structure, at size tiny, on embedded data.
        seeds: Seeds that replace the recipes' own.
        variants: ``NAME:a.b=c`` settings of further entries, each recipe's own after it.
        accepted: Stages to reuse although their code has changed, where a recipe has them.

    Raises:
        UnknownNameError: An accepted stage is in no recipe.
        RecipeError: A seed comes twice, two recipes share a name, none answers rows, or they have
            different rows or probes, or no metric in common. A recipe that answers none beside
            others that do has its losses in the table.
    """
    if seeds and len(set(seeds)) < len(seeds):
        raise RecipeError("compare: seeds: expected different seeds, got one twice")
    varied = parse_variants(variants)
    entries: list[Entry] = []
    asked: dict[tuple[str, str], str] = {}
    metrics: dict[str, Sequence[str]] = {}
    contexts = False
    there: dict[str, None] = {}  # stages of all recipes
    probed: dict[tuple[tuple[str, str], ...], str] = {}
    participants = [
        (recipe, settings)
        for recipe in recipes
        for settings in _settings(recipe, tuple(overrides), smoke, varied)
    ]
    for recipe, settings in participants:
        resolved = plan_recipe(recipe, settings, smoke).recipe
        if resolved.name in [entry.name for entry in entries]:
            raise RecipeError(
                f"{resolved.where}: name: another recipe is called {resolved.name!r} too; give each"
                " recipe its own name"
            )
        if resolved.pretrained is not None:
            probed.setdefault(tuple(sorted(resolved.probes.items())), resolved.name)
        if resolved.finetune or resolved.probes:
            labelled = (resolved.finetune and resolved.finetune.dataset) or "no dataset"
            asked.setdefault((labelled, resolved.evaluation_split), resolved.name)
        if resolved.finetune:
            metrics[resolved.name] = resolved.metrics
        contexts |= bool(resolved.word_in_context or resolved.prototypes)
        stages = [stage.name for stage in resolved.stages]
        there |= dict.fromkeys(stages)
        entries.append(
            Entry(
                resolved.name,
                recipe,
                settings,
                smoke,
                tuple(seeds or resolved.seeds),
                resolved.seeds_from or resolved.stages[0].name,
                resolved.seeds_together or len(seeds or resolved.seeds),
                accepted=tuple(name for name in accepted if name in stages),
            )
        )
    for name in accepted:
        if name not in there:
            raise UnknownNameError("--accept-code-change", name, "a stage of a recipe", there)
    if not asked and not contexts:
        raise RecipeError(
            f"{', '.join(entry.name for entry in entries)}: compare needs a stage finetune,"
            " evaluate.probes, evaluate.prototypes or evaluate.word_in_context in at least one"
            " recipe, because it compares answers to labelled rows"
        )
    if metrics and not (contexts or any(probed) or set.intersection(*map(set, metrics.values()))):
        told = "; ".join(f"{who}: {', '.join(of)}" for who, of in metrics.items())
        raise RecipeError(f"compare: expected a metric that all recipes have, got {told}")
    if len(asked) > 1:
        told = "; ".join(f"{who}: {split} rows of {name}" for (name, split), who in asked.items())
        raise RecipeError(f"compare: expected one dataset and split, got {told}")
    if len(probed) > 1:
        told = "; ".join(
            f"{who}: {', '.join(map(': '.join, probes)) or 'none'}"
            for probes, who in probed.items()
        )
        raise RecipeError(
            f"compare: expected the same evaluate.probes in all recipes, got {told}; --set"
            " 'evaluate.probes={DATASET: METRIC}' gives them to all"
        )
    return entries


def _settings(
    recipe: str, overrides: tuple[str, ...], smoke: bool, varied: Mapping[str, Sequence[str]]
) -> list[tuple[str, ...]]:
    """Overrides of a recipe as it is, and of its variants."""
    whole = plan_recipe(recipe, overrides, smoke).recipe
    return [
        overrides,
        *((*overrides, *variant_overrides(whole, *variant)) for variant in varied.items()),
    ]


def contrasts_of(
    entries: Sequence[Entry], declared: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """The contrasts that a comparison tests, as (candidate, reference) names.

    Verdicts are corrected for the number of contrasts, so each additional one reduces the power of
    all others.

    Args:
        entries: The recipes in order.
        declared: Contrasts ``CANDIDATE:REFERENCE``. Default: every recipe against the first one
            and against the cheap baseline.

    Raises:
        UnknownNameError: A contrast names no recipe of the comparison.
        RecipeError: A contrast does not name two different recipes.
    """
    names = [entry.name for entry in entries]
    if not declared:
        first, *others = names
        return [(name, first) for name in others] + [(name, BASELINE) for name in names]
    found = []
    for contrast in declared:
        candidate, colon, reference = contrast.partition(":")
        if not colon or candidate == reference:
            raise RecipeError(
                f"--contrast: expected CANDIDATE:REFERENCE, two of {', '.join([*names, BASELINE])};"
                f" got {contrast[:80]!r}"
            )
        for name in (candidate, reference):
            if name not in (*names, BASELINE):
                raise UnknownNameError(
                    "--contrast", name, "a recipe of this comparison", [*names, BASELINE]
                )
        found.append((candidate, reference))
    return list(dict.fromkeys(found))


def check_equal(entries: Sequence[Entry], equal: str | None) -> None:
    """Check that budgets can be equalised to the first recipe.

    Raises:
        RecipeError: The first recipe has no pre-training.
    """
    if equal is None:
        return
    first = plan_recipe(entries[0].recipe, entries[0].overrides, entries[0].smoke).recipe
    if not pretraining_stages(first):
        raise RecipeError(
            f"{first.where}: --equal {equal} scales pre-training to that of the first recipe, and"
            " this one has none; name another recipe first"
        )
