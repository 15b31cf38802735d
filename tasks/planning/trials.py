"""Trials: plans of the finetune stage with other settings, seeds and parts of the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from fourstage.recipe.search import overrides_of, told
from models.metrics import best
from tasks.planning.layout import Plan, stage_settings
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact, Store
from tasks.store.divergence import remembered_divergence
from tasks.store.step_names import (
    WIDE,
    StepName,
    fold_step,
    measurement_step,
    stage_step,
    tokens_step,
)
from tasks.store.steps import Bound, Step, look_ahead

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage


@dataclass(frozen=True)
class Trial:
    """One training of the finetune stage.

    Attributes:
        name: The trial in words.
        seed: Seed of fine-tuning.
        fold: Number of the part of the training rows that is predicted, from 1; None: the dev rows
            are.
        plan: The recipe's plan with this trial's steps `train` and `measure`.
    """

    name: str
    seed: int
    fold: int | None
    plan: Plan

    @property
    def train(self) -> str:
        """Name of the step that trains the stage."""
        return stage_step(_finetune(self.plan).name)

    @property
    def measure(self) -> str:
        """Name of the step that predicts the rows that choose."""
        return measurement_step(_finetune(self.plan).name)


@dataclass(frozen=True)
class Combination:
    """One combination of settings.

    Attributes:
        point: The settings, by place in the finetune stage.
        plan: The recipe's plan with these settings.
        trials: Its trials at each seed and fold.
    """

    point: Mapping[str, Any]
    plan: Plan
    trials: tuple[Trial, ...]


def plan_search(
    plan: Plan, recipe: str, overrides: Sequence[str], smoke: bool, seed: int | None = None
) -> list[Combination]:
    """Every combination of a recipe's search with its trials.

    Args:
        plan: The recipe's plan; all steps before the finetune stage are taken from it.
        recipe: Name or path of the recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        seed: Replaces the recipe's seed.
    """
    search = plan.recipe.search
    assert search is not None, "a recipe with a search"
    found = []
    for point in search.points():
        more = overrides_of(point, _finetune(plan).name)
        tried = _with_finetune(plan, plan_recipe(recipe, (*overrides, *more), smoke, seed))
        final = _finetune(tried)
        trials: list[Trial] = []
        for each in search.seeds:
            stage, words = replace(final, seed=each), f"{told(point)}, seed {each}"
            trials += (
                _on_folds(tried, search.metric, stage, search.folds, words)
                if search.folds
                else [_trial(tried, search.metric, stage, words)]
            )
        found.append(Combination(point, tried, tuple(trials)))
    return found


def cross_validation(plan: Plan, metric: str, folds: int) -> list[Trial]:
    """A plan's finetune stage, trained once without each part of the training rows.

    Args:
        plan: The plan.
        metric: What scores the part that is left out.
        folds: K, number of the parts; 0 for no trials.
    """
    stage = _finetune(plan)
    return _on_folds(plan, metric, stage, folds, f"seed {stage.seed}")


def as_searched(
    plan: Plan, recipe: str, overrides: Sequence[str], smoke: bool, store: Store
) -> tuple[Plan, list[Plan]]:
    """A recipe's plan with what its search chose, if all trials are finished.

    A combination of which a trial diverged is left out, as the search leaves it out.

    Args:
        plan: The recipe's plan, with or without a search.
        recipe: Name or path of the recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        store: The store.

    Returns:
        The plan; and if trials are left, the plan as written and theirs.
    """
    if plan.recipe.search is None:
        return plan, []
    combinations = plan_search(plan, recipe, overrides, smoke)
    kept: list[tuple[Plan, list[float]]] = []
    left = []
    for each in combinations:
        outcomes = [_outcome(trial, store) for trial in each.trials]
        if "diverged" in outcomes:
            continue
        kept.append((each.plan, [score for score in outcomes if isinstance(score, float)]))
        left += [
            trial.plan for trial, score in zip(each.trials, outcomes, strict=True) if score is None
        ]
    if not kept:  # the search tries its last combination again
        left = [trial.plan for trial in combinations[-1].trials]
    if left:
        return plan, left
    best = best_of(plan.recipe.search.metric, [scores for _, scores in kept])
    return kept[best][0], []


def _outcome(trial: Trial, store: Store) -> float | Literal["diverged"] | None:
    """The score of a finished trial; None where it has to be trained or measured."""
    ahead = {each.step.name: each for each in look_ahead([*trial.plan.steps.values()], store)}
    measured, trained = ahead[trial.measure], ahead[trial.train]
    if isinstance(measured.found, Artifact):
        return float(measured.found.facts["task_metric"]["value"])
    if isinstance(trained.bound, Bound) and not trained.reused:
        if remembered_divergence(store.folder("stage", trained.bound.key)) is not None:
            return "diverged"
    return None


def best_of(metric: str, scores: Sequence[Sequence[float]]) -> int:
    """Number of the combination with the best mean score; of equal ones, the first.

    Args:
        metric: What chooses.
        scores: Of each combination, at its seeds and folds.
    """
    return best(metric, [fmean(of) for of in scores])


def _with_finetune(plan: Plan, tried: Plan) -> Plan:
    """A plan with another one's finetune stage and what follows from it."""
    trained = stage_step(_finetune(tried).name)
    names = {trained, measurement_step(_finetune(tried).name)}
    names |= {step.name for step in tried.of_kind("package", "evaluation")}
    steps: dict[str, Step] = {}
    for name, step in plan.steps.items():
        if name == trained:
            steps |= {wide.name: wide for wide in tried.of_kind(WIDE)}
        if step.kind != WIDE:
            steps[name] = tried.steps[name] if name in names else step
    return replace(plan, recipe=tried.recipe, steps=steps)


def _on_folds(plan: Plan, metric: str, stage: ResolvedStage, folds: int, words: str) -> list[Trial]:
    numbers = range(1, folds + 1)
    return [_trial(plan, metric, stage, words, (number, folds)) for number in numbers]


def _trial(
    plan: Plan,
    metric: str,
    stage: ResolvedStage,
    words: str,
    fold: tuple[int, int] | None = None,
) -> Trial:
    train, measure = (plan.steps[of(stage.name)] for of in (stage_step, measurement_step))
    given = {**train.given, "stage": stage}
    # The loss on held-out text chooses nothing, so it is not measured.
    measured = {**measure.settings, "metric": metric, "objective": None}
    steps = {
        train.name: replace(train, settings=stage_settings(stage), given=given),
        measure.name: replace(measure, settings=measured),
    }
    if fold is not None:
        steps, words = _on_fold(plan, stage, steps, *fold), f"{words}, fold {fold[0]}"
    before = {name: step for name, step in plan.steps.items() if name not in steps}
    trial = replace(plan, steps={**before, **steps})
    return Trial(words, stage.seed, fold[0] if fold else None, trial)


def _on_fold(
    plan: Plan, stage: ResolvedStage, steps: Mapping[str, Step], fold: int, folds: int
) -> dict[str, Step]:
    """The steps of a trial with one part of the training rows in place of the dev rows."""
    assert stage.dataset is not None
    whole = tokens_step(stage.dataset)
    usual = plan.steps[whole]
    settings = {**usual.settings, "fold": [fold, folds]}
    moved: dict[str, StepName] = {whole: fold_step(whole, fold, folds)}
    made = {moved[whole]: replace(usual, name=moved[whole], settings=settings)}
    for wide in plan.of_kind(WIDE):
        name = fold_step(wide.name, fold, folds)
        made[name] = replace(wide, name=name, inputs=_moved(wide, moved))
        moved[wide.name] = name
    read = {name: replace(step, inputs=_moved(step, moved)) for name, step in steps.items()}
    return {**made, **read}


def _moved(step: Step, moved: Mapping[str, StepName]) -> dict[str, StepName]:
    """Inputs of a step, with other steps in the place of some."""
    return {role: moved.get(name, name) for role, name in step.inputs.items()}


def _finetune(plan: Plan) -> ResolvedStage:
    assert plan.recipe.finetune is not None, "a recipe with a search has labels"
    return plan.recipe.finetune
