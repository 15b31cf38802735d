"""What a choice's stages cost: as measured in this very choice so far, else by the formula.

What a stage costs beside its training (tracing, saving, records) grows on a busy machine, as test
rows and registration do.
"""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING

from fourstage.digests import canonical, digest
from tasks.comparison.halving import Expense
from tasks.comparison.model_choice import ModelChoice
from tasks.comparison.participants import pretraining_stages
from tasks.planning.forecast import Cost, costs_from_scratch, stage_costs, tokens_per_second
from tasks.planning.layout import Plan, stage_settings
from tasks.store.artifacts import store
from tasks.store.step_names import stage_step
from tasks.store.steps import PreviousArtifacts, Prospect, look_ahead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage
    from tasks.planning.trials import Trial

BESIDE = 10.0  # seconds of a stage beside its training until that is measured
ASKED = 2.0  # seconds to answer the dev rows until that is measured
LEAST_TOKENS = 500_000  # before the labels; with less a network has learned too little to judge it
MOST_PASSES = 20.0  # over a text


def seconds_beside(choice: ModelChoice) -> float:
    """Seconds that a stage costs beside its training, the mean of those made so far."""
    tried = (of for turn in choice.state["rounds"] for of in turn["tried"].values())
    found = [seconds for of in tried for seconds in of["beside"]]
    return fmean(found) if found else BESIDE


def seconds_asking(choice: ModelChoice) -> float:
    """Seconds that answering the dev rows has cost, at most, of what has only labels.

    Of a network that reads text before, the same step measures its losses, too.
    """
    first = next((turn["tried"] for turn in choice.state["rounds"]), {})
    return max((s for tried in first.values() for s in tried["asking"]), default=ASKED)


def pace(choice: ModelChoice) -> float:
    """How many times as long as the formula says a stage of the recipe's network takes here.

    So far as it was measured, else 1. A busy machine slows the networks that were not measured
    as well.
    """
    recipe, costs = choice.whole.recipe, costs_as_written(choice.whole)
    found = [
        _by_formula(recipe, stage) / costs[stage.name].tokens_per_second
        for stage in recipe.last_network
        if stage.name in costs and costs[stage.name].measured
    ]
    return median(found) if found else 1.0


def training_seconds(choice: ModelChoice, cost: Cost) -> float:
    """Estimated training time of a stage."""
    return (cost.seconds or 0.0) * (1.0 if cost.measured else pace(choice))


def expected_seconds(choice: ModelChoice, plan: Plan, trials: Sequence[Trial] = ()) -> float:
    """Seconds that stages of a plan and of its cross-validation may take, if they are not made.

    Args:
        choice: The choice.
        plan: The plan.
        trials: Its finetune stage without parts of the training rows.
    """
    of_plan = stage_costs(*_known(plan))
    of_trials = [
        cost
        for trial in trials
        for cost in stage_costs(*_known(trial.plan))
        if stage_step(cost.stage) == trial.train
    ]
    costs = [*of_plan, *of_trials]
    seconds = sum(seconds_beside(choice) + training_seconds(choice, cost) for cost in costs)
    return seconds + seconds_asking(choice) * (bool(of_plan) + len(of_trials))


def expense(choice: ModelChoice, name: str, seeds: int, folds: int = 0) -> Expense:
    """What a candidate costs as written.

    Args:
        choice: The choice.
        name: The candidate.
        seeds: How many seeds it is fine-tuned at in the round.
        folds: How often at each of them for cross-validation, beside once with all rows.
    """
    plan = choice.plans[name]
    costs = costs_as_written(plan)
    finetune, before = plan.recipe.finetune, pretraining_stages(plan.recipe)
    assert finetune is not None
    chain, stages = [], {}
    for stage in before:
        chain.append(dict(stage_settings(stage)))
        stages[digest(chain)] = training_seconds(choice, costs[stage.name])
    read = [costs[stage.name] for stage in before]
    tokens = sum(cost.tokens or 0.0 for cost in read)
    passes = max((n for cost in read for n in cost.passes.values()), default=0.0)
    most = max(1.0, MOST_PASSES / passes) if passes else 1.0
    least = LEAST_TOKENS / tokens if tokens else 0.0
    beside = seconds_beside(choice)
    finetuning = training_seconds(choice, costs[finetune.name]) + beside + seconds_asking(choice)
    times = 1 + folds
    if not stages:
        # Of its first seed some are trained already.
        turns = [turn for turn in choice.state["rounds"] if name in turn["tried"]]
        times -= min(times, max((1 + turn["folds"] for turn in turns), default=0)) / seeds
    finetuning *= times
    network = canonical({"family": plan.recipe.family, **plan.recipe.network})
    return Expense(stages, finetuning, network, least, most, beside)


def costs_as_written(plan: Plan) -> dict[str, Cost]:
    """The cost as written of each stage, by its name, as if none were in the store."""
    return {cost.stage: cost for cost in costs_from_scratch(*_known(plan))}


def _known(plan: Plan) -> tuple[ResolvedRecipe, list[Prospect], PreviousArtifacts]:
    """What costs are estimated by."""
    prospects = list(look_ahead(list(plan.steps.values()), store()))
    return plan.recipe, prospects, PreviousArtifacts(store())


def _by_formula(recipe: ResolvedRecipe, stage: ResolvedStage) -> float:
    """Tokens per second of a stage on a machine of which nothing is known."""
    vocabulary = (stage.tokenizer or recipe.tokenizer).vocabulary_size
    speed, _ = tokens_per_second(
        stage.family, stage.network, vocabulary, (), trains_itself=stage.trains_itself
    )
    return speed
