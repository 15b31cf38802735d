"""Tries a candidate of a choice in a round: trained, scored, charged for."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fourstage.errors import Diverged, Interrupted
from fourstage.terminal import say
from tasks.comparison.choice_costs import expected_seconds
from tasks.comparison.choice_meter import Meter
from tasks.comparison.choice_reserve import seconds_left
from tasks.comparison.choice_rounds import round_name, rows_that_choose
from tasks.comparison.model_choice import ModelChoice
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.planning.trials import Trial, cross_validation
from tasks.run.recipe_run import open_run
from tasks.run.trials import beside
from tasks.store.step_names import measurement_step, stage_step


def try_candidate(choice: ModelChoice, turn: Mapping[str, Any], name: str) -> None:
    """Train a candidate with a round's budget and score it, if there is time.

    Its score is that on the dev rows, or where they are few, on these and the training rows: each
    part of them is answered by a training without it.

    A seed that may take longer than what is left is not begun, and one that does is stopped; a
    candidate without any is left out, as is one whose training diverges. What it costs is written
    down step by step. Of an attempt that is killed inside a stage, the updates up to the last
    checkpoint are paid for when the stage is finished.

    Raises:
        Diverged: There is no candidate whose training does not.
    """
    if any(name in turn[end] for end in ("tried", "left_out", "diverged")):
        return
    # The first of all has no limit: there has to be one that can be chosen.
    bounded = any(each["tried"] for each in choice.state["rounds"])
    where = f"{round_name(turn)}: {name}"
    say(where)
    tried = {"scores": [], "tokens": 0, "seconds": 0.0, "beside": [], "asking": []}
    made = turn["settings"][name]
    missing, diverged = 0.0, None
    with Meter(choice, name) as meter:
        for number, seed in enumerate(turn["seeds"]):
            plan = plan_recipe(choice.recipe, made, choice.smoke, seed)
            meter.begin(f"plan at seed {seed}")
            trials = cross_validation(plan, choice.metric, turn["folds"])
            meter.lap()
            left = max(seconds_left(choice, number + 1), 0.0) if bounded or number else None
            if left is not None and (missing := expected_seconds(choice, plan, trials) - left) > 0:
                break
            try:
                _train(plan, trials, choice.state["rows"], meter, tried, left)
            except Interrupted as interruption:
                meter.lap()
                time_is_over = left is not None and seconds_left(choice, number + 1) <= 0
                if interruption.signal_number or not time_is_over:
                    raise
                break
            except Diverged as fault:
                meter.lap()
                if not _others(choice, name):
                    raise
                diverged = fault
                break
    state = choice.state
    if diverged:
        say(f"{where} is left out: {diverged}")
        state["rounds"][-1]["diverged"][name] = str(diverged)
    elif tried["scores"]:
        score = f"{choice.metric} {fmean(tried['scores']):.4f}"
        say(f"{where}: {score} on {rows_that_choose(turn)}")
        state["rounds"][-1]["tried"][name] = tried
    else:
        needs = (
            f"needs {missing:.0f} s more than are left" if missing > 0 else "did not end in time"
        )
        say(f"{where} is left out: it {needs}")
        state["rounds"][-1]["left_out"][name] = max(missing, 0.0)
    choice.keep(state)


def _others(choice: ModelChoice, name: str) -> bool:
    """Whether something has been tried, or a candidate is still to be."""
    turns = choice.state["rounds"]
    failed = {name, *turns[-1]["diverged"]}
    coming = choice.candidates if turns[-1]["number"] == 0 else turns[-1]["factors"]
    return any(turn["tried"] for turn in turns) or not failed.issuperset(coming)


def _train(
    plan: Plan,
    trials: Sequence[Trial],
    rows: Mapping[str, int],
    meter: Meter,
    tried: dict[str, Any],
    limit: float | None,
) -> None:
    """Train a candidate at a seed and score it, in so many seconds.

    Args:
        plan: Its plan at the seed.
        trials: Its cross-validation on the training rows.
        rows: How many there are, by split.
        meter: What is charged.
        tried: Gets its score and what it took: ``seconds`` of training, those ``beside`` the
            training of each stage that was made, and those of ``asking`` about the dev rows.
        limit: Seconds after which no stage may train any more.

    Raises:
        Interrupted: The seconds have passed.
    """
    finetune = plan.recipe.finetune
    assert finetune is not None
    at = f"at seed {finetune.seed}"
    stages = []
    # The choice's minutes hold, not those the recipe sets for a run of its own.
    with open_run(plan, math.inf if limit is None else time.monotonic() + limit) as run:
        for stage in plan.recipe.stages:
            step = stage_step(stage.name)
            meter.begin(f"{step} {at}")
            stages.append(run.make(step))
            trained = stages[-1].notes["seconds"]
            if run.status[step] == "made":
                tried["beside"].append(max(meter.lap(least=trained) - trained, 0.0))
            else:
                meter.lap()
        step = measurement_step(finetune.name)
        meter.begin(f"{step} {at}")
        scores = {"dev": run.make(step).facts["task_metric"]["value"]}
        passed = meter.lap()
        if run.status[step] == "made":
            tried["asking"].append(passed)
        if trials:
            parts = []
            for trial in trials:
                meter.begin(f"{trial.train} {at}, fold {trial.fold}")
                with beside(run, trial) as part:
                    part.make(trial.train)
                    measured = part.make(trial.measure)
                meter.lap()
                parts.append(measured.facts["task_metric"]["value"])
            scores["train"] = fmean(parts)
    counted = stages[-1:] if tried["scores"] else stages  # the seeds share what is before
    tried["seconds"] += sum(stage.notes["seconds"] for stage in counted)
    tried["tokens"] = sum(stage.facts["tokens"] for stage in stages)
    weights = [rows[split] for split in scores]
    tried["scores"].append(fmean(scores.values(), weights))
