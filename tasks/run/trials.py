"""Run the trials of a search and choose by the dev rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

from corpora.prepared import prepared_rows
from fourstage.errors import Diverged, RecipeError
from fourstage.recipe.search import ResolvedSearch, told
from fourstage.terminal import say
from tasks.planning.trials import Combination, Trial, best_of, plan_search
from tasks.run.recipe_run import RecipeRun, raise_if_not_measurable
from tasks.store.artifacts import Artifact, store
from tasks.store.divergence import remember_divergence, remembered_divergence
from tasks.store.step_names import dataset_step
from tasks.tracking.trial_runs import finish_trial


def choose(
    run: RecipeRun, recipe: str, overrides: Sequence[str], smoke: bool, seed: int | None = None
) -> dict[str, Any]:
    """Train every trial of the recipe's search and give the run the best settings.

    Finished trials are reused, so a killed search goes on where it was. One that diverged before is
    not trained again, unless all others did, too. Test rows are not read.

    Args:
        run: A run of the recipe; its plan becomes that of the best settings.
        recipe: Name or path of the recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        seed: Replaces the recipe's seed.

    Returns:
        The table as plain JSON: ``metric``, ``rows``, ``seeds``, ``folds``, ``chosen`` and
        ``points``, each with its ``settings``, ``scores`` and their ``mean`` and ``deviation``;
        the settings of which a trial ``diverged``; ``at_the_edge`` as `at_the_edge`.

    Raises:
        Diverged: Every combination does.
        RecipeError: There are no dev rows to choose by.
        ContractViolation: A combination needs dev rows when it goes on, and there are none.
    """
    search = run.plan.recipe.search
    assert search is not None, "a recipe with a search"
    _check_rows(run, search)
    combinations = plan_search(run.plan, recipe, overrides, smoke, seed)
    raise_if_none_could_go_on(combinations, run.made)
    runs, diverged = [], []
    for each in combinations:
        last = len(diverged) == len(combinations) - 1
        try:
            runs.append([_tried(run, trial, again=last) for trial in each.trials])
        except Diverged as fault:
            if last:
                raise
            say(f"{told(each.point)} is left out: {fault}")
            diverged.append(each)
    combinations = [each for each in combinations if each not in diverged]
    scores = [
        [_score(tried, trial) for tried, trial in zip(of, each.trials, strict=True)]
        for of, each in zip(runs, combinations, strict=True)
    ]
    best = best_of(search.metric, scores)
    run.plan = combinations[best].plan
    final = run.plan.recipe.finetune
    assert final is not None
    for number, (combination, of) in enumerate(zip(combinations, runs, strict=True)):
        for trial, tried in zip(combination.trials, of, strict=True):
            made = tried.made[trial.train]
            if number == best and trial.seed == final.seed and trial.fold is None:
                # It goes on, and is recorded as a stage.
                run.made[trial.train], run.status[trial.train] = made, tried.status[trial.train]
            else:
                score = _score(tried, trial)
                finish_trial(run.tracking, made.key, trial.name, search.metric, score)
    return _table(search, combinations, scores) | {
        "diverged": [dict(each.point) for each in diverged]
    }


def _check_rows(run: RecipeRun, search: ResolvedSearch) -> None:
    """Check that there are dev rows, before anything is trained."""
    stage = run.plan.recipe.finetune
    assert stage is not None
    assert stage.dataset is not None
    rows = prepared_rows(run.make(dataset_step(stage.dataset)).folder)
    if not search.folds and not any(row.split == "dev" for row in rows):
        raise RecipeError(
            f"{run.plan.recipe.where}: search: {stage.dataset} has no dev rows to choose by; add"
            " some to the source, or `folds: 5` for cross-validation on its training rows"
        )


def raise_if_none_could_go_on(
    combinations: Sequence[Combination], made: Mapping[str, Artifact]
) -> None:
    """Check before any trial that each combination could be trained on all rows, were it chosen.

    A trial of cross-validation has dev rows; what goes on has those of the dataset, if any.

    Args:
        combinations: Those of the search.
        made: Artifacts so far, with the dataset.

    Raises:
        ContractViolation: It chooses weights or a threshold by rows that are not there.
    """
    for each in combinations:
        stage = each.plan.recipe.finetune
        assert stage is not None
        assert stage.dataset is not None
        raise_if_not_measurable(each.plan, stage.dataset, made[dataset_step(stage.dataset)])


@contextmanager
def beside(run: RecipeRun, trial: Trial) -> Iterator[RecipeRun]:
    """A run of a trial, which leaves the steps it replaces to the run as they are."""
    own = {trial.train, trial.measure, *(trial.plan.steps.keys() - run.plan.steps.keys())}
    before = {name: made for name, made in run.made.items() if name not in own}
    tried = replace(run, plan=trial.plan, made=before, status=dict(run.status), pages={})
    yield tried
    run.taken = tried.taken
    for name in tried.made.keys() - own:  # what the stage reads; the next trial reads it, too
        run.made[name], run.status[name] = tried.made[name], tried.status[name]


def _tried(run: RecipeRun, trial: Trial, again: bool) -> RecipeRun:
    """Train and measure a trial beside the run, which keeps what it had.

    Args:
        run: The run.
        trial: The trial.
        again: Whether to train it although it diverged before.

    Raises:
        Diverged: It does, or did before.
    """
    say(f"trial: {trial.name}")
    with beside(run, trial) as tried:
        _train(tried, trial.train, again)
        tried.make(trial.measure)
    metric = trial.plan.steps[trial.measure].settings["metric"]
    say(f"trial: {metric} {_score(tried, trial):.4f}")
    return tried


def _train(tried: RecipeRun, name: str, again: bool) -> None:
    """Train a trial's stage, and remember it if it diverges."""
    bound = tried.bound(name)
    folder = store().folder("stage", bound.key)
    if not again and not isinstance(store().find("stage", bound.key), Artifact):
        if before := remembered_divergence(folder):
            raise Diverged(before)
    try:
        tried.make(name)
    except Diverged as fault:
        remember_divergence(folder, str(fault))
        raise


def _score(tried: RecipeRun, trial: Trial) -> float:
    return tried.made[trial.measure].facts["task_metric"]["value"]


def _table(
    search: ResolvedSearch,
    combinations: Sequence[Combination],
    scores: Sequence[Sequence[float]],
) -> dict[str, Any]:
    points = [
        {
            "settings": dict(each.point),
            "scores": list(of),
            "mean": fmean(of),
            "deviation": stdev(of) if len(of) > 1 else None,
        }
        for each, of in zip(combinations, scores, strict=True)
    ]
    best = best_of(search.metric, scores)
    return {
        "metric": search.metric,
        "rows": f"{search.folds} folds of the training rows" if search.folds else "dev rows",
        "seeds": list(search.seeds),
        "folds": search.folds,
        "chosen": best,
        "points": points,
        "at_the_edge": at_the_edge(search.grid, combinations[best].point),
    }


def at_the_edge(grid: Mapping[str, Sequence[Any]], chosen: Mapping[str, Any]) -> dict[str, str]:
    """Places whose chosen value is the ``smallest`` or ``largest`` of three or more numbers."""
    found = {}
    for place, values in grid.items():
        if len(values) < 3 or not all(type(value) in (int, float) for value in values):
            continue
        for word, edge in (("smallest", min(values)), ("largest", max(values))):
            if chosen[place] == edge:
                found[place] = word
    return found
