"""Scores by which recipes are compared, and their statistical tests on stored predictions.

Each metric of a fine-tuned model is a score of its run. A pre-trained network has the mean of its
probes over their datasets, and its accuracies by prototypes and on words in context; runs that
share a pre-training share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fourstage.errors import RecipeError
from models.answers.label import Label
from models.catalogue import answers_of
from models.metrics import OF_LIKELIHOOD, PERPLEXITY_A_WORD
from tasks.comparison.participants import SeedRun
from tasks.store.predictions import PREDICTIONS
from tasks.store.step_names import probe_step, prototypes_step, stage_step, word_in_context_step

if TYPE_CHECKING:
    from models.evaluation.comparison import AnsweredRows, Contest
    from models.protocols import Answers

PROBE_MEAN = "probe_mean"
Runs = Mapping[str, Sequence[SeedRun]]


@dataclass(frozen=True)
class DataSet:
    """A dataset with stored predictions of finished runs.

    Attributes:
        name: Name of the source.
        answers: Kind of answer.
        metric: Metric of the score.
        step: Step that stored the predictions.
        asked: Which of its predictions, where it stored several sets; its facts call the score so.
    """

    name: str
    answers: Answers
    metric: str
    step: str
    asked: str | None = None

    @property
    def fact(self) -> str:
        """Name of the score in the step's facts."""
        return self.asked or self.metric


def contests_of(
    runs: Runs, contrasts: Sequence[tuple[str, str]], cheap: str
) -> dict[str, tuple[list[DataSet], Contest]]:
    """Test each score: its datasets and its contest, by the score's name, main score first.

    Args:
        runs: Runs of each recipe, by its name.
        contrasts: (candidate, reference) by name. A contrast is skipped for scores that one of the
            two lacks.
        cheap: Name of the cheap baseline. In a contrast it stands for the one that learned from the
            same training rows as the recipe it is compared with (`baseline_names`).

    Raises:
        RecipeError: The runs were not evaluated on the same rows.
    """
    found = {}
    # Probes and prototypes of a dataset, and their baselines, learn from all its rows.
    called = dict.fromkeys(runs, cheap)
    probed = {name: _pretrainings(of) for name, of in runs.items() if of[0].probes}
    if probed:
        recipe = next(iter(probed.values()))[0].plan.recipe
        on = [
            DataSet(name, Label(), metric, probe_step(name))
            for name, metric in recipe.probes.items()
        ]
        found[PROBE_MEAN] = on, _contest(on, probed, contrasts, called)
    tuned = {name: of for name, of in runs.items() if of[0].plan.recipe.finetune}
    if tuned:
        plan = next(iter(tuned.values()))[0].plan
        first, *others = (of[0].plan.recipe for of in tuned.values())
        head, dataset = (s.head, s.dataset) if (s := first.finetune) else (None, None)
        for metric in first.metrics:
            if head and dataset and all(metric in other.metrics for other in others):
                answers = answers_of(head, plan.folders)
                on = [DataSet(dataset, answers, metric, "evaluation")]
                own = baseline_names(runs, cheap)
                against = [
                    (own[other] if one == cheap else one, own[one] if other == cheap else other)
                    for one, other in contrasts
                ]
                draws = {name: of_draws for name, of in tuned.items() if (of_draws := draws_of(of))}
                found[metric] = on, _contest(on, tuned, against, own, draws)
    recipes = [of[0].plan.recipe for of in runs.values()]
    for name in dict.fromkeys(name for recipe in recipes for name in recipe.prototypes):
        step = prototypes_step(name)
        told = {who: _pretrainings(of) for who, of in runs.items() if step in of[0].made}
        sets = [run.made[step].facts["metrics"] for run, *_ in told.values()]
        for asked in (each for each in sets[0] if all(each in of for of in sets)):
            on = [DataSet(name, Label(), "accuracy", step, asked)]
            found[f"prototypes/{name}/{asked}"] = on, _contest(on, told, contrasts, called)
    for name in dict.fromkeys(name for recipe in recipes for name in recipe.word_in_context):
        step = word_in_context_step(name)
        asked = {who: _pretrainings(of) for who, of in runs.items() if step in of[0].made}
        on = [DataSet(name, Label(), "accuracy", step)]
        found[f"word_in_context/{name}"] = on, _contest(on, asked, contrasts, called)
    return found


def words_read(run: SeedRun, contests: Mapping[str, tuple[list[DataSet], Contest]]) -> float | None:
    """Words of all targets, as far as a run's network has read them; None without a perplexity.

    Perplexities compare only where they are equal: targets are cut at ``target_length`` tokens.

    Args:
        run: The run.
        contests: As `contests_of` has them.
    """
    from models.answers.text import read_of

    on = next((on for metric, (on, _) in contests.items() if metric in OF_LIKELIHOOD), None)
    if on is None or on[0].step not in run.made:
        return None
    return sum(read_of(said, PERPLEXITY_A_WORD) or 0.0 for said in _table(run, on[0])["predicted"])


def baseline_names(runs: Runs, cheap: str) -> dict[str, str]:
    """What the cheap baseline of each recipe is called, by the recipe's name.

    It is `cheap` for the training rows of the first recipe with labels. One that learned from other
    rows of the dataset (`training_rows`) is another baseline, and says how many they are. Draws for
    each seed are one baseline, with a run at each.
    """
    drawn = {
        name: recipe.finetune.training_rows
        for name, of in runs.items()
        if (recipe := of[0].plan.recipe).finetune
    }
    first = next(iter(drawn.values()), None)
    found = {}
    for name in runs:
        rows = drawn.get(name, first)
        if rows == first:
            found[name] = cheap
        elif rows is None:
            found[name] = f"{cheap} on all rows"
        else:
            which = (
                ", of each seed" if rows.each_seed else f", seed {rows.seed}" if rows.seed else ""
            )
            found[name] = f"{cheap} on {rows.number:,} rows{which}"
    return found


def _pretrainings(runs: Sequence[SeedRun]) -> list[SeedRun]:
    """One run of each pre-training."""
    stage = runs[0].plan.recipe.pretrained
    assert stage is not None, "probes ask a pre-trained network"
    return list({run.made[stage_step(stage.name)].key: run for run in runs}.values())


def _contest(
    on: Sequence[DataSet],
    runs: Runs,
    contrasts: Sequence[tuple[str, str]],
    called: Mapping[str, str],
    draws: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> Contest:
    from models.evaluation.comparison import Contender, contest

    answers = [_answers(data_set, runs, called, draws) for data_set in on]
    learned = {called[name]: draws.get(name, ()) for name in reversed([*runs])}
    contenders = [
        Contender(
            cheap,
            [said[cheap] for _, said in answers],
            random=bool(learned[cheap]),
            draws=learned[cheap],
        )
        for cheap in dict.fromkeys(called[name] for name in runs)
        if all(cheap in said for _, said in answers)
    ]
    contenders += [
        Contender(
            name,
            [said[name] for _, said in answers],
            _starts(of),
            draws=draws.get(name, ()),
        )
        for name, of in runs.items()
    ]
    there = [c.name for c in contenders]
    judged = [(one, other) for one, other in contrasts if one in there and other in there]
    return contest([rows for rows, _ in answers], contenders, contrasts=judged)


def _starts(runs: Sequence[SeedRun]) -> tuple[str, ...]:
    """Key of each run's first stage that differs between the recipe's runs; empty if none differs.

    Runs with the same key are not independent. Recipes that share keys are compared in pairs.
    """
    for stage in runs[0].plan.recipe.last_network:
        keys = tuple(run.made[stage_step(stage.name)].key for run in runs)
        if len(set(keys)) > 1:
            return keys
    return ()


def draws_of(runs: Sequence[SeedRun]) -> tuple[int, ...]:
    """Seed of the training rows of each run, where they have rows of their own; else empty."""
    finetune = runs[0].plan.recipe.finetune
    if finetune is None or finetune.training_rows is None or not finetune.training_rows.each_seed:
        return ()
    return tuple(run.seed for run in runs)


def _answers(
    on: DataSet,
    runs: Runs,
    called: Mapping[str, str],
    draws: Mapping[str, tuple[int, ...]],
) -> tuple[AnsweredRows, dict[str, list[list[str]]]]:
    """The rows, and the predictions of each contender, (runs, rows)."""
    from models.evaluation.comparison import AnsweredRows

    tables = {name: [_table(run, on) for run in of] for name, of in runs.items()}
    first = next(iter(tables.values()))[0]
    _check_same_rows(on, tables, first)
    texts = first.get("text", first["id"])  # rows of one text count as one
    rows = AnsweredRows(on.answers, first["label"], on.metric, np.array(texts))
    said = {name: [table["predicted"] for table in of] for name, of in tables.items()}
    rivals = {
        called[name]: [table["baseline"] for table in (of if name in draws else of[:1])]
        for name, of in reversed(tables.items())  # of one baseline, the first recipe's
        if "baseline" in of[0] and on.metric not in OF_LIKELIHOOD  # of which it has none
    }
    return rows, {**rivals, **said}


def _table(run: SeedRun, on: DataSet) -> dict[str, list[Any]]:
    import pandas

    table = pandas.read_parquet(run.made[on.step].path(PREDICTIONS))
    if on.asked is not None:
        table = table[table["asked"] == on.asked]
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
