"""What a comparison says of its own limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.answers.label import Label
from tasks.comparison.comparison_report import score_cells
from tasks.comparison.comparison_table import (
    baselines_of,
    shared_stages,
    too_early,
    unequal_times,
    unknown_words,
    unlike_objectives,
    unlike_targets,
    unlike_windows,
)
from tasks.comparison.contests import DataSet
from tasks.comparison.entries import entries_of
from tasks.comparison.participants import SeedRun
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact

IN_BLOCKS = """
name: blocks
family: bert
size: tiny
seeds: {values: [1, 2, 3, 4], from: finetune, together: 2}
stages:
  - {stage: general, corpora: {smoke_general: 1.0}, objectives: {masked_lm: {}}}
  - {stage: finetune, dataset: smoke_labels, head: {sequence_classification: {}}}
"""


def _recipe(read: list[str], **nats: float) -> dict[str, Any]:
    return {
        "name": "ours",
        "read": read,
        "heldout_window": 128,
        "measured_by": "causal_lm",
        "tokenizer": "pieces",
        "unknown_share": dict.fromkeys(nats, 0.0),
        "heldout_loss_a_character": dict.fromkeys(nats, 1.5),
        "unigram_loss": dict.fromkeys(nats, 6.0),
        "heldout_loss": {corpus: 6.0 + under for corpus, under in nats.items()},
    }


@pytest.mark.parametrize(
    ("read", "nats", "named"),
    [
        (["general"], {"general": -0.9}, "general"),
        (["general", "domain"], {"general": -1.5, "domain": -0.2}, "domain"),
        (["general"], {"general": -1.1, "labelled": 0.4}, None),  # it never read what is labelled
        ([], {"general": 0.1}, None),
        (["general"], {}, None),
    ],
)
def test_a_pre_training_is_judged_by_the_text_it_read(read, nats, named):
    notes = too_early([_recipe(read, **nats)])
    assert len(notes) == (named is not None)
    assert all(f" nats on {named} against" in note for note in notes)


def test_losses_in_windows_of_another_length_are_not_compared():
    ours, untrained = _recipe(["general"], general=-2.0), _recipe([]) | {"heldout_window": 64}
    assert unlike_windows([ours, ours, untrained]) == []  # it has no loss to compare
    shorter = ours | {"name": "shorter", "heldout_window": 64}
    (note,) = unlike_windows([ours, shorter])
    assert note.endswith("64 tokens in shorter; 128 tokens in ours")


def test_losses_of_unlike_objectives_are_not_compared():
    ours = _recipe(["general"], general=-2.0)
    untrained = _recipe([]) | {"measured_by": "masked_lm"}
    assert unlike_objectives([ours, ours, untrained]) == []
    masked = _recipe(["general"], general=-2.0) | {"name": "masked", "measured_by": "masked_lm"}
    (note,) = unlike_objectives([ours, masked])
    assert note.endswith("causal_lm in ours; masked_lm in masked")
    words = masked | {"tokenizer": "words", "heldout_loss_a_character": {}}  # none is shown
    assert unlike_objectives([ours, words]) == []


def test_perplexities_of_targets_that_were_cut_otherwise_are_not_compared():
    whole = _recipe([]) | {"target_words": 1234.0}
    labels = _recipe([]) | {"name": "labels", "target_words": None}
    assert unlike_targets([whole, whole | {"name": "other"}, labels]) == []
    (note,) = unlike_targets([whole, labels, whole | {"name": "cut", "target_words": 987.25}])
    assert note.endswith("target_length cuts them: 987.2 words in cut; 1,234.0 words in ours")


@pytest.mark.parametrize(("seconds", "told"), [(66, False), (67, True), (54, False), (53, True)])
def test_pre_training_that_did_not_take_equal_time_is_told(seconds: float, told: bool):
    recipes = [_recipe([]) | {"seconds_of_updates": taken} for taken in (60.0, seconds, 0.0)]
    notes = unequal_times(recipes)  # the last one, without pre-training, has no time to equal
    assert len(notes) == told
    assert all(f"took {seconds} seconds, that of ours 60:" in note for note in notes)


def test_unknown_words_make_a_loss_per_character_too_low():
    ours = _recipe(["general"], general=-2.0)
    words = ours | {"name": "words", "tokenizer": "words", "unknown_share": {"general": 0.05}}
    assert unknown_words([words, words]) == []  # of one tokenizer: losses per token compare
    (note,) = unknown_words([ours, words])
    assert note.startswith("words: unknown words are 5.0% of general;")
    unsaid = words | {"heldout_loss_a_character": {}}
    assert unknown_words([ours, unsaid]) == []


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (None, "each 2 share the stages before it, and the mean of those that share them is one"),
        ([1, 2, 3], "3 have 2 of the stages before it, and the mean of those that share them is"),
        ([1, 2], "what the stages before it owe to chance is in no deviation and no interval"),
        ([1, 3], ""),  # each has its own
        ([7, 8, 9, 10], "what the stages before it owe to chance"),  # all share those of seed 1
        ([1], ""),
    ],
)
def test_which_seeds_share_a_pre_training_is_told_of_those_that_ran(
    tmp_path: Path, home: Path, seeds: list[int] | None, said: str
):
    file = tmp_path / "blocks.yaml"
    file.write_text(IN_BLOCKS)
    (entry,) = entries_of([str(file)], seeds=seeds)
    runs = []
    for seed in entry.seeds:
        plan = plan_recipe(entry.recipe, entry.overrides, entry.smoke, seed)
        key = str(plan.recipe.stages[0].seed)  # all else is the same
        made = Artifact("stage", "", tmp_path, {}, {}, key, "stage general", {}, {}, {}, "")
        runs.append(SeedRun(plan, seed, {"stage general": made}))
    note = shared_stages(entry, runs)
    assert note.startswith(f"seeds differ from stage finetune on; {said}" if said else "")
    assert bool(note) is bool(said)


@pytest.mark.parametrize(
    ("each_seed", "mean", "cell"),
    [(False, 0.6, "0.6000"), (True, 0.75, "0.7500 ± 0.1291")],
)
def test_a_baseline_on_rows_of_each_seed_is_the_mean_over_them(
    tmp_path: Path, home: Path, each_seed: bool, mean: float, cell: str
):
    file = tmp_path / "blocks.yaml"
    drawn = f"training_rows: {{number: 8, each_seed: {str(each_seed).lower()}}}, "
    file.write_text(IN_BLOCKS.replace("head:", f"{drawn}head:"))
    (entry,) = entries_of([str(file)])
    runs = []
    for seed in entry.seeds:
        plan = plan_recipe(entry.recipe, entry.overrides, entry.smoke, seed)
        facts = {"baseline": {"accuracy": 0.5 + seed / 10}}
        made = Artifact("evaluation", "", tmp_path, {}, facts, "", "evaluation", {}, {}, {}, "")
        runs.append(SeedRun(plan, seed, {"evaluation": made}))
    contests = {"accuracy": ([DataSet("rows", Label(), "accuracy", "evaluation")], None)}
    (rival,) = baselines_of({"cheap": "baseline"}, [entry], {entry.name: runs}, contests)
    assert rival["metrics"] == pytest.approx({"accuracy": mean})
    assert rival["parts"]["accuracy"] == pytest.approx({"rows": mean})
    table = {"metrics": ["accuracy"], "recipes": [], "baselines": [rival]}
    assert cell in score_cells(table)[1][0]
