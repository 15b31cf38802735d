"""What the gate of a choice asks beside the cheap baseline.

A recipe whose gate names the baseline keeps its rule. For any other a choice asks that the winner
is not the worse one. Counted n-grams are the baseline's own kind in a form that can be served, so
that where they win no lead over it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.metrics import of_answers
from tasks.registry.gate import ABOVE, BASELINE, NOT_BELOW_BASELINE
from tasks.store.step_names import EVALUATION

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe
    from tasks.planning.layout import Plan

COUNTED = "tfidf"  # the family


def without_lead(recipe: ResolvedRecipe) -> tuple[str, ...]:
    """Settings that remove each rule ``above: cheap_baseline`` of a recipe's gate."""
    asked = {name: rule for name, rule in recipe.require.items() if ABOVE in rule}
    return tuple(
        f"promote.require.{name}" + (f".{ABOVE}=" if len(rule) > 1 else "=")
        for name, rule in asked.items()
    )


def not_below_baseline(plan: Plan) -> tuple[str, ...]:
    """Settings by which the gate refuses a winner that the cheap baseline beats, if any."""
    metric = _asked(plan)
    return (f"promote.require.{metric}.{NOT_BELOW_BASELINE}={BASELINE}",) if metric else ()


def told(plan: Plan) -> str:
    """What a choice has done to the gate of its winner, in a sentence; empty for nothing.

    Args:
        plan: The winner's, without what the choice asks.
    """
    recipe = plan.recipe
    if recipe.model is None or plan.smoke or _names_baseline(recipe):
        return ""
    if _is_counted(recipe):
        return (
            "Counted n-grams are the cheap baseline's own kind, in a form that can be served, so"
            " that the gate asks for no lead over it."
        )
    if metric := _asked(plan):
        return (
            "The recipe's gate asks nothing beside the cheap baseline, so that the choice asks for"
            f" {metric} no lower than the baseline's (`{NOT_BELOW_BASELINE}: {BASELINE}`)."
        )
    return "There is no cheap baseline with such a score, beside which the gate could hold it."


def _asked(plan: Plan) -> str:
    """The metric in which a winner must not be below the cheap baseline; empty for none."""
    recipe = plan.recipe
    if recipe.model is None or plan.smoke or _is_counted(recipe) or _names_baseline(recipe):
        return ""
    if "baseline" not in plan.steps[EVALUATION].inputs:
        return ""
    return next(iter(of_answers(recipe.metrics)), "")


def _is_counted(recipe: ResolvedRecipe) -> bool:
    return recipe.finetune is not None and recipe.finetune.family == COUNTED


def _names_baseline(recipe: ResolvedRecipe) -> bool:
    return any({ABOVE, NOT_BELOW_BASELINE} & {*rule} for rule in recipe.require.values())
