"""The table of a comparison: scores over seeds, costs, tested differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from fourstage.digests import digest
from models.evaluation.rivals import SEES, names_of
from tasks.comparison.contests import (
    PROBE_MEAN,
    baseline_names,
    contests_of,
    draws_of,
    words_read,
)
from tasks.comparison.participants import Entry, SeedRun, pretraining_stages, scored_steps
from tasks.registry.gate import BASELINE
from tasks.reports.learned import LEARNED, against_frequency, beyond_pretraining
from tasks.reports.search_table import found as searched
from tasks.steps.heldout_losses import a_character, a_word, unigram_losses
from tasks.store.provenance import git_state, machine
from tasks.store.step_names import (
    EVALUATION,
    as_texts,
    measurement_step,
    stage_step,
    tokens_step,
)

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage

UNEQUAL = 0.1  # share by which pre-training that was to take equal time may differ untold
UNKNOWN = 0.001  # share of the tokens from which a loss per character is told to be too low


def judge(
    entries: Sequence[Entry],
    runs: Mapping[str, Sequence[SeedRun]],
    equal: str | None,
    contrasts: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """Build the table of a comparison, as plain JSON.

    Args:
        entries: The recipes in order.
        runs: Runs of each entry, by its name, in the order of its seeds.
        equal: ``tokens``, ``time`` or None.
        contrasts: Contrasts to test, from `tasks.comparison.entries.contrasts_of`.

    Raises:
        RecipeError: The runs were not evaluated on the same rows.
    """
    from models.evaluation.comparison import CONFIDENCE, POWER, RESAMPLES

    first_runs = [runs[entry.name][0] for entry in entries]
    a_run = next((run for run in first_runs if run.scores), first_runs[0])
    recipe, facts = a_run.plan.recipe, a_run.scores
    kinds = [facts["answers"]] if facts else []
    cheap, majority = names_of([*kinds, *(["label"] if recipe.probes else [])])
    declared = [
        (cheap if candidate == BASELINE else candidate, cheap if other == BASELINE else other)
        for candidate, other in contrasts
    ]
    contests = contests_of({entry.name: runs[entry.name] for entry in entries}, declared, cheap)
    called = baseline_names(runs, cheap)
    recipes = [
        {**_recipe(entry, runs[entry.name], contests), "baseline": called[entry.name]}
        for entry in entries
    ]
    probed = contests.get(PROBE_MEAN)
    labelled = next((found for on, found in contests.values() if on[0].step == "evaluation"), None)
    return {
        "digest": comparison_digest(entries, runs, equal, contrasts),
        "dataset": recipe.finetune.dataset if recipe.finetune else None,
        "split": recipe.evaluation_split,
        "rows": facts.get("rows", 0),
        "rows_clean": facts.get("rows_clean", 0),
        "texts": labelled.groups[0] if labelled else 0,
        "probes": {
            on.name: {"metric": on.metric, "rows": rows, "texts": texts}
            for on, rows, texts in zip(probed[0], probed[1].rows, probed[1].groups, strict=True)
        }
        if probed
        else {},
        "metrics": list(contests),
        "equal": equal,
        "confidence": CONFIDENCE,
        "power": POWER,
        "resamples": RESAMPLES,
        "recipes": recipes,
        "baselines": baselines_of(
            {cheap: "baseline", SEES: "seeing_baseline", majority: "majority"},
            entries,
            runs,
            contests,
        )
        + _of_other_rows(cheap, entries, runs, contests),
        "differences": {
            metric: [asdict(difference) for difference in found.differences]
            for metric, (_, found) in contests.items()
        },
        "notes": _notes(entries, runs, contests, equal)
        + [f"{entry.name}: {searched(entry.search)}" for entry in entries if entry.search]
        + (unequal_times(recipes) if equal == "time" and not entries[0].smoke else [])
        + _guessed_before(recipes)
        + unlike_windows(recipes)
        + unlike_objectives(recipes)
        + unlike_targets(recipes)
        + unknown_words(recipes)
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
    runs: Mapping[str, Sequence[SeedRun]],
    equal: str | None,
    contrasts: Sequence[tuple[str, str]],
) -> str:
    """Digest that identifies a comparison."""
    from tasks.store.code import closure_digest, module_file

    evaluations = [
        [
            entry.name,
            [
                [run.seed, *(run.made[name].key for name in scored_steps(run.plan))]
                for run in runs[entry.name]
            ],
        ]
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


def baselines_of(
    called: Mapping[str, str],
    entries: Sequence[Entry],
    runs: Mapping[str, Sequence[SeedRun]],
    contests: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Scores of the baselines, which are the same for every recipe that has them.

    Where each seed has drawn rows of its own, they are means over seeds with their ``deviations``.
    """
    found = []
    for rival, told in called.items():
        parts, deviations = {}, {}
        for metric, (on, _) in contests.items():
            name = next(e.name for e in entries if on[0].step in runs[e.name][0].made)
            drawn = on[0].step == EVALUATION and draws_of(runs[name])
            made = [run.made for run in (runs[name] if drawn else runs[name][:1])]
            if any(told not in made[0][each.step].facts for each in on):
                continue  # what words mean in context is asked of vectors alone
            if any(each.fact not in made[0][each.step].facts[told] for each in on):
                continue  # a project's own kind of answer, or one of likelihoods, has no baseline
            scores = np.array(
                [[of[each.step].facts[told][each.fact] for each in on] for of in made]
            )  # (runs, data sets)
            mean_of_each = scores.mean(axis=0).tolist()
            parts[metric] = dict(zip((each.name for each in on), mean_of_each, strict=True))
            if len(scores) > 1:
                deviations[metric] = float(np.std(scores.mean(axis=1), ddof=1))
        means = {metric: float(np.mean(list(of.values()))) for metric, of in parts.items()}
        if means:
            found.append(
                {"name": rival, "metrics": means, "deviations": deviations, "parts": parts}
            )
    return found


def _of_other_rows(
    cheap: str,
    entries: Sequence[Entry],
    runs: Mapping[str, Sequence[SeedRun]],
    contests: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Scores of the cheap baselines that learned from other training rows than the first."""
    found: list[dict[str, Any]] = []
    for name, called in baseline_names(runs, cheap).items():
        if called == cheap or called in [rival["name"] for rival in found]:
            continue
        of = [entry for entry in entries if entry.name == name]
        there = {
            metric: contest
            for metric, contest in contests.items()
            if contest[0][0].step == "evaluation"
        }
        found += baselines_of({called: "baseline"}, of, runs, there)
    return found


def _recipe(entry: Entry, runs: Sequence[SeedRun], contests: Mapping[str, Any]) -> dict[str, Any]:
    scores = {
        metric: {
            **{name: value for name, value in asdict(score).items() if name != "name"},
            "parts": {each.name: part for each, part in zip(on, score.parts, strict=True)},
        }
        for metric, (on, found) in contests.items()
        for score in found.scores
        if score.name == entry.name
    }
    guessed, before = runs[0].last_guess[0], [run.last_guess[1] for run in runs]
    plan, texts = runs[0].plan, as_texts(runs[0].made)
    recipe, last = plan.recipe, plan.recipe.last_network[-1]
    stages, pretraining = recipe.stages, pretraining_stages(recipe)
    return {
        "name": entry.name,
        "recipe": entry.recipe,
        "stages": [stage.name for stage in stages],
        "pretrained": recipe.pretrained.name if recipe.pretrained else "",
        "seeds": list(entry.seeds),
        "seeds_from": entry.seeds_from,
        "seeds_together": entry.together,
        "metrics": scores,
        "metrics_clean": _means([run.scores.get("metrics_clean", {}) for run in runs]),
        **_spent(runs),
        "pretraining": _spent(runs, pretraining),
        "seconds_of_updates": float(np.mean([r.seconds_of_updates(pretraining) for r in runs])),
        "finetuning": _spent(runs, [stage for stage in stages if stage.kind == "finetune"]),
        "teachers": _spent(runs, [stage for stage in stages if stage not in recipe.last_network]),
        "read": sorted({corpus for stage in pretraining for corpus in stage.corpora}),
        "tokenizer": runs[0].made["tokenizer"].key,
        "measured_by": recipe.measured_by,
        "heldout_loss": _means(before),
        "heldout_loss_a_character": a_character(
            _means(before), texts, recipe.measured_by, plan.folders
        ),
        "heldout_loss_a_word": a_word(_means(before), texts, recipe.measured_by, plan.folders),
        "unknown_share": {
            name: texts[tokens_step(name)].facts["unknown_share"] for name in before[0]
        },
        "heldout_loss_after": guessed,
        "heldout_window": plan.steps[measurement_step(last.name)].settings["sequence_length"],
        "unigram_loss": unigram_losses(texts, before[0], recipe.measured_by, plan.folders),
        "budgets": {stage.name: {stage.budget.unit: stage.budget.amount} for stage in stages},
        "target_words": words_read(runs[0], contests),
        "precision": runs[0].made[stage_step(last.name)].preimage["settings"]["precision"],
        "evaluations": {
            str(run.seed): run.made["evaluation"].key for run in runs if "evaluation" in run.made
        },
    }


def _notes(
    entries: Sequence[Entry],
    runs: Mapping[str, Sequence[SeedRun]],
    contests: Mapping[str, Any],
    equal: str | None,
) -> list[str]:
    of: dict[str, list[str]] = {}  # {note: recipes}
    for metric, (_, found) in contests.items():
        what = "pre-training" if metric == PROBE_MEAN else "seed"
        for name in found.one_seed:
            note = f"one {what} only: the interval knows nothing of the spread over {what}s"
            if name not in of.setdefault(note, []):
                of[note].append(name)
    for entry in entries:
        if draws_of(runs[entry.name]):
            note = (
                "each seed learns from labelled rows of its own draw, so that these vary, too;"
                " runs with the same draw are compared in pairs"
            )
            of.setdefault(note, []).append(entry.name)
        if note := shared_stages(entry, runs[entry.name]):
            of.setdefault(note, []).append(entry.name)
        if entry.accepted:
            note = "accepted as made by other code, where there is one: "
            of.setdefault(note + ", ".join(entry.accepted), []).append(entry.name)
    notes = [f"{', '.join(names)}: {note}" for note, names in of.items()]
    if equal and any(entry.smoke for entry in entries):
        notes.append(f"--smoke: budgets are as small as can be, --equal {equal} changes nothing")
    return notes


def shared_stages(entry: Entry, runs: Sequence[SeedRun]) -> str:
    """Note on how stages that seeds share affect deviations and intervals; empty if they do not.

    Which seeds share them is seen in the runs: ``--seeds`` may ask for others than the recipe's.
    """
    stages = runs[0].plan.recipe.stages
    first = [stage.name for stage in stages].index(entry.seeds_from)
    if not first:
        return ""
    name = stage_step(stages[first - 1].name)
    sizes = Counter(run.made[name].key for run in runs).values()
    if max(sizes) == 1:
        return ""
    said = f"seeds differ from stage {entry.seeds_from} on; "
    if len(sizes) == 1:
        return said + "what the stages before it owe to chance is in no deviation and no interval"
    even = f"each {max(sizes)} share" if len({*sizes}) == 1 else ""
    have = even or f"{len(runs)} have {len(sizes)} of"
    return f"{said}{have} the stages before it, and the mean of those that share them is one value"


def unequal_times(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes on recipes whose pre-training did not take the time of the first's.

    Their speed is measured in a few updates, and the machine may be busier then, or later. Seconds
    are means over seeds, of updates and word vectors.
    """
    first = recipes[0]["seconds_of_updates"]
    return [
        f"{recipe['name']}: its pre-training took {took:,.0f} seconds, that of {recipes[0]['name']}"
        f" {first:,.0f}: the times are not equal; was the machine busy in some of the runs?"
        for recipe in recipes[1:]
        if (took := recipe["seconds_of_updates"]) and abs(took - first) > UNEQUAL * first
    ]


def _guessed_before(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes on recipes whose losses are not from the end of pre-training."""
    return [
        f"{recipe['name']}: losses are of the end of stage {recipe['heldout_loss_after']}, the last"
        " that guessed hidden tokens"
        for recipe in recipes
        if recipe["heldout_loss_after"] not in ("", recipe["pretrained"])
    ]


def unlike_windows(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Note on incomparable losses: a longer window gives more context."""
    of: dict[int, list[str]] = {}
    for recipe in recipes:
        if recipe["heldout_loss"]:
            of.setdefault(recipe["heldout_window"], []).append(recipe["name"])
    if len(of) < 2:
        return []
    told = "; ".join(f"{length} tokens in {', '.join(of[length])}" for length in sorted(of))
    return [f"losses compare only where windows are of one length: {told}"]


def unlike_objectives(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Note on incomparable losses: objectives ask unlike questions."""
    of: dict[str, list[str]] = {}
    told = "heldout_loss_a_character" if unlike_tokenizers(recipes) else "heldout_loss"
    for recipe in recipes:
        if recipe[told]:
            of.setdefault(recipe["measured_by"], []).append(recipe["name"])
    if len(of) < 2:
        return []
    told = "; ".join(f"{objective} in {', '.join(names)}" for objective, names in of.items())
    return [f"losses compare only within an objective: {told}"]


def unlike_targets(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Note on incomparable perplexities: of unlike parts of the targets."""
    of: dict[float, list[str]] = {}
    for recipe in recipes:
        if recipe["target_words"] is not None:
            of.setdefault(recipe["target_words"], []).append(recipe["name"])
    if len(of) < 2:
        return []
    told = "; ".join(f"{words:,.1f} words in {', '.join(of[words])}" for words in sorted(of))
    return [
        "perplexities compare only where the same is read of each target, and target_length cuts"
        f" them: {told}"
    ]


def unlike_tokenizers(recipes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether losses are of unlike tokens, so that only those per character compare."""
    return len({recipe["tokenizer"] for recipe in recipes if recipe["heldout_loss"]}) > 1


def unknown_words(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Note on losses per character that are too low: an unknown word is one token, not spelled."""
    if not unlike_tokenizers(recipes):
        return []
    of: dict[str, list[str]] = {}
    for recipe in recipes:
        shares = {
            name: share
            for name, share in recipe["unknown_share"].items()
            if share >= UNKNOWN and name in recipe["heldout_loss_a_character"]
        }
        if shares:
            told = ", ".join(f"{share:.1%} of {name}" for name, share in shares.items())
            of.setdefault(told, []).append(recipe["name"])
    return [
        f"{', '.join(names)}: unknown words are {told}; each is predicted as one token, for less"
        " than its spelling would cost, so a loss per character is too low"
        for told, names in of.items()
    ]


def too_early(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes on recipes whose pre-training is too short to judge their objectives.

    Only the loss on text that the pre-training read counts.
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


def _spent(
    runs: Sequence[SeedRun], stages: Sequence[ResolvedStage] | None = None
) -> dict[str, float]:
    return {
        what: float(np.mean([run.spent(what, stages) for run in runs]))
        for what in ("steps", "tokens", "seconds")
    }


def _means(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([table[name] for table in tables])) for name in tables[0]}
