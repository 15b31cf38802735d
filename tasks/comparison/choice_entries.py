"""A candidate of a choice at a round's budget and seeds, as settings and as an entry to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.comparison.budgets import scaled_budget
from tasks.comparison.choice_costs import costs_as_written
from tasks.comparison.choice_gate import not_below_baseline
from tasks.comparison.model_choice import ModelChoice
from tasks.comparison.participants import Entry, pretraining_stages
from tasks.planning.plan import plan_recipe


def scaled_overrides(
    choice: ModelChoice, name: str, factor: float, seeds: Sequence[int]
) -> tuple[str, ...]:
    """A candidate's settings, with scaled budgets before the labels.

    They differ once a text that no other candidate reads has been counted, so a round keeps them.

    Args:
        choice: The choice.
        name: The candidate.
        factor: On the tokens that these stages read as written; 1.0 leaves them as they are.
        seeds: Of fine-tuning.
    """
    made = choice.candidates[name].overrides
    if factor != 1.0:
        plan = choice.plans[name]
        costs = costs_as_written(plan)
        made += tuple(
            scaled_budget(stage, factor * tokens, tokens)
            for stage in pretraining_stages(plan.recipe)
            if (tokens := costs[stage.name].tokens)
        )
    return (*made, f"seeds={{values: {list(seeds)}, from: {choice.finetune.name}}}")


def entry_of(choice: ModelChoice, name: str, turn: Mapping[str, Any]) -> Entry:
    """A candidate of a round as an entry of a comparison, with what the choice asks of its gate."""
    seeds = turn["seeds"]
    made = (*turn["settings"][name], *not_below_baseline(choice.plans[name]))
    own = plan_recipe(choice.recipe, made, choice.smoke).recipe.name
    first = choice.finetune.name
    return Entry(own, choice.recipe, made, choice.smoke, tuple(seeds), first, len(seeds))
