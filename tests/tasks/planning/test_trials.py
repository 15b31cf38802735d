"""What a plan knows of the trials of a search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fourstage.command import main
from tasks.planning.plan import plan_recipe
from tasks.planning.trials import Trial, as_searched, plan_search
from tasks.store.artifacts import Findings, Store
from tasks.store.divergence import remember_divergence
from tasks.store.steps import Bound, bind

ASKED = ("quickstart", ["search={grid: {batch_size: [4, 8]}}"], True)
FACTS = {"tokens": {"train": 900}, "counts": {"splits": {"train": 90, "dev": 9}}}


def trials_of(home: Path) -> tuple[Store, list[Trial]]:
    """A store, and the two trials of the quickstart's search."""
    of = plan_search(plan_recipe(*ASKED), *ASKED)
    return Store(home), [trial for each in of for trial in each.trials]


def pretend(store: Store, trial: Trial, *but: str, score: float = 0.5) -> Bound:
    """Enter a trial's steps into the store without their work, but for some.

    Returns:
        The step that trains it.
    """
    facts, made = FACTS | {"task_metric": {"value": score}}, {}
    wanted = {trial.train, trial.measure, *trial.plan.steps[trial.measure].inputs.values()}
    for name, step in trial.plan.steps.items():
        if name in wanted or step.kind not in ("package", "evaluation", "measurement"):
            bound = bind(step, made)
            if name == trial.train:
                train = bound
            if name in but:
                break
            assert isinstance(bound, Bound)
            made[name], _ = store.make(
                step.kind, name, bound.preimage, lambda _: Findings(facts), bound.made_from
            )
    assert isinstance(train, Bound)
    return train


def test_trials_that_lack_only_their_measurement_cost_no_training(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    store, trials = trials_of(home)
    for trial in trials:
        pretend(store, trial, trial.measure)
    asked = ["plan", "quickstart", "--smoke", "--json", "--set", *ASKED[1]]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["costs"] == []
    (search,) = (row for row in found["steps"] if row["step"] == "search")
    assert search["why"] == ["2 of 2 trials are not trained yet"]


def test_settings_that_diverged_are_left_out_as_the_search_leaves_them_out(home: Path):
    store, (wild, tame) = trials_of(home)
    plan = plan_recipe(*ASKED)
    stage = pretend(store, wild, wild.train)
    assert len(as_searched(plan, *ASKED, store)[1]) == 2
    remember_divergence(store.folder("stage", stage.key), "not finite at step 9")
    assert as_searched(plan, *ASKED, store)[1] == [tame.plan]
    pretend(store, tame)
    chosen, left = as_searched(plan, *ASKED, store)
    assert left == []
    assert chosen.recipe.finetune is not None
    assert chosen.recipe.finetune.batch_size == 8
    pretend(store, wild)  # once it is finished, that it diverged is forgotten
    chosen, left = as_searched(plan, *ASKED, store)
    assert left == []
    assert chosen.recipe.finetune is not None
    assert chosen.recipe.finetune.batch_size == 4


def test_a_search_of_which_all_settings_diverged_has_one_left(home: Path):
    store, trials = trials_of(home)
    for trial in trials:
        stage = pretend(store, trial, trial.train)
        remember_divergence(store.folder("stage", stage.key), "not finite at step 9")
    assert as_searched(plan_recipe(*ASKED), *ASKED, store)[1] == [trials[-1].plan]
