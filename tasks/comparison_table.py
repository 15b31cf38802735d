"""From finished runs to the table of a comparison: scores over seeds, costs, real differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fourstage.digests import digest
from fourstage.errors import RecipeError
from models.evaluation.baseline import CHEAP, MAJORITY
from tasks.entries import BASELINE, Entry, Run, pretraining_stages
from tasks.evaluate_model import PREDICTIONS
from tasks.learned import LEARNED, against_frequency, beyond_pretraining
from tasks.provenance import git_state, machine
from tasks.tokenize_corpus import a_character, unigram_losses


def judge(
    entries: Sequence[Entry],
    runs: Mapping[str, Sequence[Run]],
    equal: str | None,
    contrasts: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """Everything a comparison has to say, as plain JSON.

    Args:
        entries: The recipes in order.
        runs: Those of each entry, by its name, in the order of its seeds.
        equal: ``tokens``, ``time`` or None.
        contrasts: What is judged, from `tasks.entries.contrasts_of`.

    Raises:
        RecipeError: If the runs were not evaluated on the same rows.
    """
    from models.evaluation.comparison import CONFIDENCE, POWER, RESAMPLES, Contender, contest

    tables = {entry.name: [_predictions(run) for run in runs[entry.name]] for entry in entries}
    first = tables[entries[0].name][0]
    _check_same_rows(tables, first)
    a_run = runs[entries[0].name][0]
    rows = _rows(a_run)
    seen = [row.label for row in rows if row.split == "train"]
    names = sorted({*seen, *(n for of in tables.values() for t in of for n in _labels_of(t))})
    number = {name: i for i, name in enumerate(names)}

    def ids(column: Sequence[str]) -> np.ndarray:
        return np.array([number[name] for name in column], np.int64)

    labels = ids(first["label"])
    contenders = [Contender(CHEAP, ids(first["baseline"])[None], random=False)]
    contenders += [
        Contender(
            entry.name,
            np.array([ids(t["predicted"]) for t in tables[entry.name]]),
            _starts(runs[entry.name]),
        )
        for entry in entries
    ]
    declared = [
        (CHEAP if candidate == BASELINE else candidate, CHEAP if other == BASELINE else other)
        for candidate, other in contrasts
    ]
    groups = np.array(first["text"])
    metrics = [
        metric
        for metric in a_run.plan.recipe.metrics
        if all(metric in runs[entry.name][0].plan.recipe.metrics for entry in entries)
    ]
    contests = {
        metric: contest(
            labels, contenders, len(names), metric=metric, contrasts=declared, groups=groups
        )
        for metric in metrics
    }
    facts = a_run.evaluation.facts
    recipes = [_recipe(entry, runs[entry.name], contests) for entry in entries]
    return {
        "digest": comparison_digest(entries, runs, equal, contrasts),
        "dataset": a_run.plan.recipe.finetune.dataset,
        "split": facts["split"],
        "rows": facts["rows"],
        "rows_clean": facts["rows_clean"],
        "texts": contests[metrics[0]].groups,
        "metrics": metrics,
        "equal": equal,
        "confidence": CONFIDENCE,
        "power": POWER,
        "resamples": RESAMPLES,
        "recipes": recipes,
        "baselines": [
            {"name": name, "metrics": {metric: facts[of][metric] for metric in metrics}}
            for name, of in ((CHEAP, "baseline"), (MAJORITY, "majority"))
        ],
        "differences": {
            metric: [asdict(difference) for difference in found.differences]
            for metric, found in contests.items()
        },
        "notes": _notes(entries, contests[metrics[0]].one_seed, equal)
        + _guessed_before(recipes)
        + unlike_windows(recipes)
        + [
            f"{entry.name}: {note}"
            for entry in entries
            for note in beyond_pretraining(runs[entry.name][0].plan.recipe)
        ]
        + too_early(recipes),
        "machine": machine(),
        "git": git_state(),
    }


def comparison_digest(
    entries: Sequence[Entry],
    runs: Mapping[str, Sequence[Run]],
    equal: str | None,
    contrasts: Sequence[tuple[str, str]],
) -> str:
    """Names a comparison: equal ones share it."""
    from tasks.code import closure_digest, module_file

    evaluations = [
        [entry.name, [[run.seed, run.evaluation.key] for run in runs[entry.name]]]
        for entry in entries
    ]
    code = closure_digest(module_file("models.evaluation.comparison"))
    return digest(
        {
            "evaluations": evaluations,
            "equal": equal,
            "contrasts": [list(pair) for pair in contrasts],
            "code": code,
        }
    )


def _starts(runs: Sequence[Run]) -> tuple[str, ...]:
    """What tells a recipe's runs apart: the first stage of the network that is not the same in all.

    Runs that share it share their luck; recipes that share it are compared start by start.
    """
    for stage in runs[0].plan.recipe.last_network:
        keys = tuple(run.made[f"stage {stage.name}"].key for run in runs)
        if len(set(keys)) > 1:
            return keys
    return ()


def _recipe(entry: Entry, runs: Sequence[Run], contests: Mapping[str, Any]) -> dict[str, Any]:
    scores = {
        metric: next(s for s in found.scores if s.name == entry.name)
        for metric, found in contests.items()
    }
    last = [run.stages[-1][2].facts["heldout_loss"] for run in runs]
    guessed, before = runs[0].last_guess[0], [run.last_guess[1] for run in runs]
    recipe = runs[0].plan.recipe
    stages, pretraining = recipe.stages, pretraining_stages(recipe)
    return {
        "name": entry.name,
        "recipe": entry.recipe,
        "stages": [stage.name for stage in stages],
        "seeds": list(entry.seeds),
        "seeds_from": entry.seeds_from,
        "seeds_together": entry.together,
        "metrics": {
            metric: {k: v for k, v in asdict(score).items() if k != "name"}
            for metric, score in scores.items()
        },
        "metrics_clean": _means([run.evaluation.facts["metrics_clean"] for run in runs]),
        **_spent(runs),
        "pretraining": _spent(runs, pretraining),
        "finetuning": _spent(runs, [recipe.finetune]),
        "teachers": _spent(runs, [stage for stage in stages if stage not in recipe.last_network]),
        "read": sorted({corpus for stage in pretraining for corpus in stage.corpora}),
        "heldout_loss": _means(before),
        "heldout_loss_a_character": a_character(
            _means(before), {name: runs[0].made[f"tokens {name}"] for name in before[0]}
        ),
        "heldout_loss_after": guessed,
        "heldout_window": runs[0].stages[-1][2].preimage["settings"]["sequence_length"],
        "unigram_loss": unigram_losses(runs[0].made, before[0]),
        "heldout_loss_at_the_end": _means(last),
        "budgets": {stage.name: {stage.budget.unit: stage.budget.amount} for stage in stages},
        "precision": runs[0].stages[-1][1].preimage["settings"]["precision"],
        "evaluations": {str(run.seed): run.evaluation.key for run in runs},
    }


def _notes(entries: Sequence[Entry], one_seed: Sequence[str], equal: str | None) -> list[str]:
    of: dict[str, list[str]] = {}  # recipes that share a note share its line
    for name in one_seed:
        of.setdefault(
            "one seed only: the interval knows nothing of the spread over seeds", []
        ).append(name)
    for entry in entries:
        if len(entry.seeds) > 1 and entry.seeds_from != _first_stage(entry):
            of.setdefault(_shared(entry), []).append(entry.name)
    notes = [f"{', '.join(names)}: {note}" for note, names in of.items()]
    if equal and any(entry.smoke for entry in entries):
        notes.append(f"--smoke: budgets are as small as can be, --equal {equal} changes nothing")
    return notes


def _shared(entry: Entry) -> str:
    """What sharing the stages before `entry.seeds_from` means for deviations and intervals."""
    said = f"seeds differ from stage {entry.seeds_from} on; "
    if entry.together >= len(entry.seeds):
        return said + "what the stages before it owe to chance is in no deviation and no interval"
    return said + f"each {entry.together} share the stages before it, and their mean is one value"


def _guessed_before(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whose losses are not of the end of pre-training."""
    return [
        f"{recipe['name']}: losses are of the end of stage {recipe['heldout_loss_after']}, the last"
        " that guessed hidden tokens"
        for recipe in recipes
        if recipe["heldout_loss_after"] not in ("", *recipe["stages"][-2:-1])
    ]


def unlike_windows(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whose losses cannot be held against whose: a longer window has more to guess from."""
    of: dict[int, list[str]] = {}
    for recipe in recipes:
        if recipe["heldout_loss"]:
            of.setdefault(recipe["heldout_window"], []).append(recipe["name"])
    if len(of) < 2:
        return []
    told = "; ".join(f"{length} tokens in {', '.join(of[length])}" for length in sorted(of))
    return [f"losses compare only where windows are of one length: {told}"]


def too_early(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whose pre-training is too short for what it says about an objective.

    It is judged by the text it read; of other text it need not know more than frequencies.
    """
    notes = []
    for recipe in recipes:
        nats = against_frequency(recipe["heldout_loss"], recipe["unigram_loss"], recipe["read"])
        if nats and max(nats.values()) > -LEARNED:
            corpus = max(nats, key=nats.__getitem__)
            notes.append(
                f"{recipe['name']}: {nats[corpus]:+.2f} nats on {corpus} against guessing by"
                f" frequency; above -{LEARNED:.0f} little can be said of its pre-training but that"
                " it is too short, or forgotten since"
            )
    return notes


def _first_stage(entry: Entry) -> str:
    from tasks.plan import plan_recipe

    return plan_recipe(entry.recipe, entry.overrides, entry.smoke).recipe.stages[0].name


def _predictions(run: Run) -> dict[str, list[str]]:
    import pandas

    table = pandas.read_parquet(run.evaluation.path(PREDICTIONS))
    return {name: table[name].tolist() for name in ("id", "text", "label", "predicted", "baseline")}


def _labels_of(table: Mapping[str, Sequence[str]]) -> set[str]:
    return {*table["label"], *table["predicted"], *table["baseline"]}


def _check_same_rows(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], first: Mapping[str, Any]
) -> None:
    for name, all_of in tables.items():
        for table in all_of:
            if table["id"] != first["id"] or table["label"] != first["label"]:
                raise RecipeError(
                    f"compare: {name} was evaluated on {len(table['id'])} rows that are not the"
                    f" {len(first['id'])} of {next(iter(tables))}; give all recipes the same"
                    " dataset, evaluate.split and overlap"
                )


def _rows(run: Run) -> list[Any]:
    from corpora.prepared import prepared_rows

    dataset = run.plan.recipe.finetune.dataset
    return list(prepared_rows(run.made[f"dataset {dataset}"].folder))


def _spent(runs: Sequence[Run], stages: Sequence[Any] | None = None) -> dict[str, float]:
    return {
        what: float(np.mean([run.spent(what, stages) for run in runs]))
        for what in ("steps", "tokens", "seconds")
    }


def _means(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([table[name] for table in tables])) for name in tables[0]}
