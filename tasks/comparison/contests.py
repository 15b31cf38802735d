"""By which scores recipes are compared, and what each contest is held on: finished runs' answers.

A fine-tuned model's metrics are scores of its runs. What a network knows after pre-training is one
score, the mean of its probes over their data sets, and runs that share a pre-training share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fourstage.errors import RecipeError
from models.answers.label import Label
from models.catalogue import answers_of
from models.evaluation.baseline import CHEAP
from tasks.comparison.participants import SeedRun
from tasks.store.predictions import PREDICTIONS
from tasks.store.step_names import probe_step, stage_step

if TYPE_CHECKING:
    from models.evaluation.comparison import AnsweredRows, Contest
    from models.protocols import Answers

PROBE_MEAN = "probe_mean"
Runs = Mapping[str, Sequence[SeedRun]]


@dataclass(frozen=True)
class DataSet:
    """The rows of a data set that finished runs have answered.

    Attributes:
        name: Of the source.
        answers: What its rows ask for.
        metric: By which answers are scored.
        step: Whose answers.
    """

    name: str
    answers: Answers
    metric: str
    step: str


def contests_of(
    runs: Runs, contrasts: Sequence[tuple[str, str]]
) -> dict[str, tuple[list[DataSet], Contest]]:
    """By score, the most telling one first, what it is measured on and who is better.

    Args:
        runs: Of each recipe, by its name.
        contrasts: (candidate, reference) by name; of a score that one of them has not, none.

    Raises:
        RecipeError: If the runs were not evaluated on the same rows.
    """
    found = {}
    probed = {name: _pretrainings(of) for name, of in runs.items() if of[0].probes}
    if probed:
        recipe = next(iter(probed.values()))[0].plan.recipe
        on = [
            DataSet(name, Label(), metric, probe_step(name))
            for name, metric in recipe.probes.items()
        ]
        found[PROBE_MEAN] = on, _contest(on, probed, contrasts)
    plan = next(iter(runs.values()))[0].plan
    first, *others = (of[0].plan.recipe for of in runs.values())
    head, dataset = (s.head, s.dataset) if (s := first.finetune) else (None, None)
    for metric in first.metrics:
        if head and dataset and all(metric in other.metrics for other in others):
            answers = answers_of(head, plan.folders)
            on = [DataSet(dataset, answers, metric, "evaluation")]
            found[metric] = on, _contest(on, runs, contrasts)
    return found


def _pretrainings(runs: Sequence[SeedRun]) -> list[SeedRun]:
    """One run of each pre-training."""
    stage = runs[0].plan.recipe.pretrained
    assert stage is not None, "probes ask a pre-trained network"
    return list({run.made[stage_step(stage.name)].key: run for run in runs}.values())


def _contest(on: Sequence[DataSet], runs: Runs, contrasts: Sequence[tuple[str, str]]) -> Contest:
    from models.evaluation.comparison import Contender, contest

    answers = [_answers(data_set, runs) for data_set in on]
    contenders = []
    if all(CHEAP in said for _, said in answers):
        contenders.append(Contender(CHEAP, [said[CHEAP] for _, said in answers], random=False))
    contenders += [
        Contender(name, [said[name] for _, said in answers], _starts(of))
        for name, of in runs.items()
    ]
    there = [c.name for c in contenders]
    judged = [(one, other) for one, other in contrasts if one in there and other in there]
    return contest([rows for rows, _ in answers], contenders, contrasts=judged)


def _starts(runs: Sequence[SeedRun]) -> tuple[str, ...]:
    """What tells a recipe's runs apart: the first stage of the network that is not the same in all.

    Runs that share it share their luck; recipes that share it are compared start by start.
    """
    for stage in runs[0].plan.recipe.last_network:
        keys = tuple(run.made[stage_step(stage.name)].key for run in runs)
        if len(set(keys)) > 1:
            return keys
    return ()


def _answers(on: DataSet, runs: Runs) -> tuple[AnsweredRows, dict[str, list[list[str]]]]:
    """The rows, and by contender what its runs answer, (runs, rows)."""
    from models.evaluation.comparison import AnsweredRows

    tables = {name: [_table(run, on) for run in of] for name, of in runs.items()}
    first = next(iter(tables.values()))[0]
    _check_same_rows(on, tables, first)
    rows = AnsweredRows(on.answers, first["label"], on.metric, np.array(first["text"]))
    said = {name: [table["predicted"] for table in of] for name, of in tables.items()}
    rival = {CHEAP: [first["baseline"]]} if "baseline" in first else {}
    return rows, {**rival, **said}


def _table(run: SeedRun, on: DataSet) -> dict[str, list[Any]]:
    import pandas

    table = pandas.read_parquet(run.made[on.step].path(PREDICTIONS))
    return {name: table[name].tolist() for name in table if name != "probability"}


def _check_same_rows(
    on: DataSet,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    first: Mapping[str, Any],
) -> None:
    for name, all_of in tables.items():
        for table in all_of:
            if table["id"] != first["id"] or table["label"] != first["label"]:
                raise RecipeError(
                    f"compare: {name} was evaluated on {len(table['id'])} rows of {on.name} that"
                    f" are not the {len(first['id'])} of {next(iter(tables))}; give all recipes the"
                    " same dataset, evaluate.split and overlap"
                )
