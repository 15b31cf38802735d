"""What the gate may ask of a model version, checked before anything is trained for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from fourstage.errors import RecipeError, UnknownNameError
from models.recipe.schema import Bootstrap, Requirement

BOOTSTRAP = Bootstrap().model_dump()
RULES = {
    "forgetting": ("at_most",),
    "latency_ms": ("p95_at_most",),
    "size_mb": ("at_most",),
}
METRIC_RULES = ("at_least", "at_most", "above", "not_below_champion_by")


@cache
def metric_names() -> tuple[str, ...]:
    """The metrics of labelled rows."""
    import importlib.util

    if importlib.util.find_spec("models.evaluation.classification") is None:
        return ("accuracy", "macro_f1", "micro_f1")
    from models.evaluation.classification import METRICS

    return tuple(METRICS)


def faults(
    where: str,
    require: Mapping[str, Requirement],
    metrics: Iterable[str],
    forgetting_on: Iterable[str],
) -> list[RecipeError]:
    """What a gate asks for and nothing would compute.

    Args:
        where: How messages call the recipe.
        require: The gate, by metric.
        metrics: What the recipe computes.
        forgetting_on: Corpora on which it measures forgetting.
    """
    metrics, found = list(metrics), []
    computed = [*metrics, *(["forgetting"] if list(forgetting_on) else []), "latency_ms", "size_mb"]
    for name, rule in require.items():
        place = f"{where}: promote.require"
        if name == "forgetting" and name not in computed:
            found.append(
                RecipeError(
                    f"{place}: forgetting is measured only on corpora that "
                    "evaluate.forgetting_on lists"
                )
            )
        elif name not in computed:
            hint = (
                "Add it to evaluate.metrics."
                if name in metric_names()
                else "These are the ones this recipe computes (evaluate.metrics)."
            )
            found.append(
                UnknownNameError(place, name, "a metric that this recipe computes", computed, hint)
            )
        else:
            found += _rule_faults(f"{place}.{name}", name, rule)
    return found


def _rule_faults(place: str, name: str, rule: Requirement) -> list[RecipeError]:
    allowed = RULES.get(name, METRIC_RULES)
    found: list[RecipeError] = [
        UnknownNameError(place, key, f"a rule for {name}", allowed)
        for key in sorted(rule.model_fields_set)
        if key not in allowed
    ]
    if name not in RULES:
        for key in ("at_least", "at_most", "not_below_champion_by"):
            value = getattr(rule, key)
            if value is not None and not -1 <= value <= 1:
                found.append(
                    RecipeError(f"{place}.{key}: expected a share, at most 1, got {value}")
                )
    if rule.at_least is not None and rule.at_most is not None and rule.at_least > rule.at_most:
        found.append(
            RecipeError(
                f"{place}: at_least {rule.at_least} is above at_most {rule.at_most}; nothing passes"
            )
        )
    return found
