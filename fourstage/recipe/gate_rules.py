"""What the gate may require of a model version, checked before anything is trained."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe.schema import NonInferiority, Promote, Requirement
from models.metrics import LOWER_IS_BETTER, OF_LIKELIHOOD

TEST = {"confidence": 0.95, "resamples": 2000, "seed": 17}
RULES: Mapping[str, tuple[str, ...]] = {
    "forgetting": ("at_most",),
    "latency_ms": ("p50_at_most", "p95_at_most"),
    "size_mb": ("at_most",),
}
METRIC_RULES = ("at_least", "at_most", "above", "not_below", "not_below_champion_by")
SLICE_RULES = ("at_least", "at_most")
LOWER_RULES = ("at_most", "not_above_champion_by")  # of a metric of which lower is better
TESTS = ("not_below_champion_by", "not_above_champion_by")


@dataclass(frozen=True)
class Computed:
    """What a recipe measures, and so what its gate can require.

    Attributes:
        metrics: Those it computes.
        known: Those it could compute.
        slices: Groups of rows with a score of their own.
        forgetting_on: Corpora whose loss is held against that of earlier stages.
    """

    metrics: Sequence[str]
    known: Collection[str]
    slices: Sequence[str]
    forgetting_on: Sequence[str]


def slice_names() -> tuple[str, ...]:
    """The groups of rows that can have their own score."""
    from models.evaluation.slices import SLICES

    return tuple(SLICES)


def explicit(promote: Promote) -> dict[str, dict[str, Any]]:
    """The gate with every value explicit, in the form that the gate reads."""
    require = {name: _explicit(rule) for name, rule in (promote.require or {}).items()}
    if promote.require_slices:
        require["slices"] = {
            name: {metric: _explicit(rule) for metric, rule in rules.items()}
            for name, rules in promote.require_slices.items()
        }
    return require


def defaults_of_tests(promote: Promote) -> Iterator[str]:
    """The places below ``require`` of what a test against the champion leaves to its defaults."""
    for name, rule in (promote.require or {}).items():
        for test in TESTS:
            said = getattr(rule, test)
            given = said.model_fields_set if isinstance(said, NonInferiority) else ()
            missing = TEST.keys() - given if said is not None else ()
            yield from (f"{name}.{test}.{key}" for key in missing)


def _explicit(rule: Requirement) -> dict[str, Any]:
    said = rule.model_dump(exclude_none=True)
    for name in TESTS:
        if (test := said.get(name)) is not None:
            given = test if isinstance(test, Mapping) else {"margin": test}
            said[name] = {**TEST, **given}
    return said


def faults(where: str, promote: Promote, computed: Computed) -> list[RecipeError]:
    """Requirements that nothing computes or that no version can meet.

    Args:
        where: Name of the recipe in messages.
        promote: The key ``promote`` of the recipe.
        computed: What the recipe measures.
    """
    found: list[RecipeError] = []
    place = f"{where}: promote.require"
    for name, rule in (promote.require or {}).items():
        if name == "forgetting" and not computed.forgetting_on:
            found.append(
                RecipeError(
                    f"{place}: forgetting is measured only on corpora that "
                    "evaluate.forgetting_on lists; list one"
                )
            )
        elif name in RULES:
            found += _rule_faults(f"{place}.{name}", name, rule, RULES[name])
        elif name not in computed.metrics:
            found.append(_not_computed(place, name, [*computed.metrics, *RULES], computed))
        else:
            allowed = LOWER_RULES if name in LOWER_IS_BETTER else METRIC_RULES
            found += _rule_faults(f"{place}.{name}", name, rule, allowed)
    place = f"{where}: promote.require_slices"
    for name, rules in (promote.require_slices or {}).items():
        if name.split("/")[0] not in computed.slices:
            found.append(
                UnknownNameError(
                    place, name, "a slice that this recipe scores", computed.slices,
                    "evaluate.slices lists them.",
                )
            )  # fmt: skip
        for metric, rule in rules.items():
            if metric not in computed.metrics:
                found.append(
                    _not_computed(f"{place}.{name}", metric, list(computed.metrics), computed)
                )
            else:
                allowed = LOWER_RULES[:1] if metric in LOWER_IS_BETTER else SLICE_RULES
                found += _rule_faults(f"{place}.{name}.{metric}", metric, rule, allowed)
    return found


def _not_computed(
    place: str, name: str, known: Sequence[str], computed: Computed
) -> UnknownNameError:
    known = [n for n in known if n != "forgetting" or computed.forgetting_on]
    hint = "evaluate.metrics lists what this recipe computes."
    if name in computed.known:
        hint = "Add it to evaluate.metrics."
    return UnknownNameError(place, name, "a metric that this recipe computes", known, hint)


def _rule_faults(
    place: str, name: str, rule: Requirement, allowed: Sequence[str]
) -> list[RecipeError]:
    hint = f"Of {name} lower is better." if name in LOWER_IS_BETTER else ""
    if name in OF_LIKELIHOOD:
        hint += " The cheap baseline has none."
    found: list[RecipeError] = [
        UnknownNameError(place, key, f"a rule for {name}", allowed, hint)
        for key in sorted(rule.model_fields_set)
        if key not in allowed
    ]
    if name in OF_LIKELIHOOD:
        if rule.at_most is not None and rule.at_most < 1:
            found.append(
                RecipeError(f"{place}.at_most: a perplexity is 1 or more, got {rule.at_most}")
            )
    elif name not in RULES:
        for key in ("at_least", "at_most"):
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
