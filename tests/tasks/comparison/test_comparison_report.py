"""A comparison as people read it, and who may take part in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fourstage.errors import RecipeError
from tasks.comparison.comparison_report import (
    difference_cells,
    headline,
    markdown,
    plot,
    probe_cells,
    score_cells,
)
from tasks.comparison.contests import PROBE_MEAN
from tasks.comparison.entries import check_equal, contrasts_of, entries_of

METRIC = "macro_f1"


def _recipe(name: str, *values: float) -> dict[str, Any]:
    mean = sum(values) / len(values)
    score = {
        "values": list(values),
        "mean": mean,
        "deviation": 0.01 if len(values) > 1 else None,
        "low": mean - 0.02,
        "high": mean + 0.02,
    }
    return {
        "name": name,
        "stages": ["general", "finetune"],
        "seeds": list(range(len(values))),
        "metrics": {METRIC: score},
        "steps": 300.0,
        "tokens": 1_234_567.0,
        "seconds": 90.0,
        "teachers": {"seconds": 0.0},
        "pretraining": {"seconds": 60.0},
        "finetuning": {"seconds": 30.0},
        "tokenizer": "a key",
        "baseline": "TF-IDF + linear SVM",
        "heldout_loss": {"encyclopedia": 6.5} if name == "ours" else {},
        "heldout_loss_a_character": {"encyclopedia": 1.6254} if name == "ours" else {},
        "unigram_loss": {"encyclopedia": 7.25} if name == "ours" else {},
        "precision": "float32",
    }


def _table(verdict: str) -> dict[str, Any]:
    difference = {
        "candidate": "ours",
        "reference": "TF-IDF + linear SVM",
        "difference": 0.05,
        "low": 0.01,
        "high": 0.09,
        "p": 0.0123,
        "trainings": 3,
        "smallest_detectable": 0.06,
        "verdict": verdict,
        "hierarchical": None,
    }
    return {
        "dataset": "rows",
        "split": "test",
        "rows": 100,
        "rows_clean": 98,
        "texts": 60,
        "probes": {},
        "metrics": [METRIC],
        "equal": None,
        "confidence": 0.95,
        "power": 0.8,
        "resamples": 2000,
        "recipes": [_recipe("ours", 0.6, 0.7), _recipe("theirs", 0.5)],
        "baselines": [
            {"name": "TF-IDF + linear SVM", "metrics": {METRIC: 0.6}, "deviations": {}},
            {"name": "majority class", "metrics": {METRIC: 0.1}, "deviations": {}},
        ],
        "differences": {METRIC: [difference]},
        "notes": ["theirs: one seed only"],
        "machine": {"processor": "a processor", "cores": 2, "system": "Linux"},
    }


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        (
            "better",
            "ours has the highest macro_f1, 0.650, beyond chance better than TF-IDF",
        ),
        ("worse", "TF-IDF + linear SVM wins"),
        ("not distinguishable", "No recipe is beyond chance better than TF-IDF + linear SVM"),
    ],
)
def test_the_first_sentence_says_whether_the_cheap_baseline_wins(verdict: str, begins: str) -> None:
    assert headline(_table(verdict)).startswith(begins)


def test_the_first_sentence_names_the_recipes_that_the_best_cannot_be_told_from():
    table = _table("better")
    contrast = table["differences"][METRIC][0]
    assert headline(table).endswith("TF-IDF + linear SVM, 0.600.")
    for candidate, reference in (("ours", "theirs"), ("theirs", "ours")):
        for verdict, ends in (
            ("not distinguishable", "SVM, 0.600; it can't be told from theirs."),
            ("better", "SVM, 0.600."),
        ):
            other = {"candidate": candidate, "reference": reference, "verdict": verdict}
            table["differences"][METRIC] = [contrast, contrast | other]
            assert headline(table).endswith(ends)


def test_a_recipe_that_beats_the_cheap_baseline_is_named_where_the_best_cannot_be_told_from_it():
    table = _table("not distinguishable")
    other = {"candidate": "TF-IDF + linear SVM", "reference": "theirs", "verdict": "worse"}
    table["differences"][METRIC].append(other)  # declared the other way round
    assert headline(table) == (
        "ours has the highest macro_f1, 0.650, but can't be told from TF-IDF + linear SVM, 0.600;"
        " beyond chance better than it: theirs, 0.500."
    )


def test_where_the_best_was_not_judged_against_the_cheap_baseline_the_first_sentence_says_so():
    table = _table("better")
    table["differences"][METRIC] = []
    assert "which it was not judged against" in headline(table)


def test_the_lowest_perplexity_is_the_best_and_no_baseline_has_one() -> None:
    table = _table("better")
    for recipe, mean in zip(table["recipes"], (30.0, 20.0), strict=True):
        recipe["metrics"] = {"perplexity": {"mean": mean, "deviation": None}}
    table |= {"metrics": ["perplexity"], "differences": {"perplexity": []}}
    assert headline(table) == "theirs has the lowest perplexity, 20.000."
    assert [row[3] for row in score_cells(table)[1]] == ["30.0000", "20.0000", "–", "–"]
    said = "perplexity: lower is better, so that a verdict of better means lower"
    assert said in markdown(table)
    assert said not in markdown(_table("better"))
    assert "corrected (Holm) for the one contrast" in markdown(_table("better"))
    table["baselines"][1]["metrics"] = {}
    for recipe, mean in zip(table["recipes"], (0.7, 0.5), strict=True):
        recipe["metrics"][METRIC] = {"mean": mean, "deviation": None}
    both = table | {"metrics": ["perplexity", METRIC]}
    both["differences"] = {"perplexity": [], **_table("worse")["differences"]}
    assert headline(both) == (
        "theirs has the lowest perplexity, 20.000. TF-IDF + linear SVM wins: macro_f1 0.600; the"
        " best recipe, ours, gets 0.700."
    )
    table["metrics"].append(METRIC)
    table["differences"] |= _table("better")["differences"]
    assert "corrected (Holm) for the contrasts of each metric" in markdown(table)
    assert "compare perplexity_a_word" not in markdown(table)
    table["recipes"][0]["tokenizer"] = "another"
    assert "compare perplexity_a_word" in markdown(table)


def test_the_tables_hold_scores_costs_and_baselines() -> None:
    head, body = score_cells(_table("better"))
    assert all(len(row) == len(head) for row in body)
    assert [row[0] for row in body][2:] == ["TF-IDF + linear SVM", "majority class"]
    ours, theirs = body[0], body[1]
    assert ours[3:] == ("0.6500 ± 0.0100", "1,234,567", "300", "90", "6.50 (-0.75)")
    assert (theirs[3], theirs[-1]) == ("0.5000", "–")
    head, body = difference_cells(_table("better"), METRIC)
    assert body == [
        (
            "ours",
            "TF-IDF + linear SVM",
            "+0.0500",
            "+0.0100 to +0.0900",
            "0.0123",
            "0.0600",
            "better",
        )
    ]


def test_losses_of_unlike_tokens_are_shown_in_nats_a_character() -> None:
    table = _table("better")
    assert "in nats a hidden token" in markdown(table)
    ours, theirs = table["recipes"]
    table["recipes"] += [
        ours | {"name": "words", "tokenizer": "another", "heldout_loss_a_character": {}}
    ]
    head, body = score_cells(table)
    assert head[-1] == "nats a character on encyclopedia"
    assert [row[-1] for row in body] == ["1.625", "–", "–", "–", "–"]
    assert "in nats a character, because tokens are not the same" in markdown(table)
    theirs["tokenizer"] = "another"  # which has no loss to compare
    assert score_cells(table | {"recipes": [ours, theirs]})[0][-1] == "loss on encyclopedia"


def test_a_baseline_has_no_score_of_what_only_networks_are_asked() -> None:
    table = _table("better")
    table["metrics"] = [METRIC, "word_in_context/senses"]
    _, body = score_cells(table)
    assert [row[4] for row in body] == ["–"] * 4


def test_of_two_trainings_no_interval_is_shown() -> None:
    table = _table("not distinguishable")
    table["differences"][METRIC][0] |= {"trainings": 2, "low": -1.1, "high": 0.82}
    ((*_, interval, p, detectable, verdict),) = difference_cells(table, METRIC)[1]
    assert (interval, p, detectable) == ("two are too few", "0.0123", "–")
    assert verdict == "not distinguishable"


def test_fine_tunings_within_pretrainings_have_an_interval_of_their_own() -> None:
    table = _table("not distinguishable")
    assert "ierarchical" not in markdown(table)
    table["differences"][METRIC][0] |= {"trainings": 2, "hierarchical": (-0.01, 0.08)}
    table["differences"][METRIC].append({**_table("worse")["differences"][METRIC][0]})
    head, (nested, flat) = difference_cells(table, METRIC)
    place = head.index("hierarchical bootstrap")
    assert (nested[place - 1], nested[place]) == ("two are too few", "-0.0100 to +0.0800")
    assert (flat[place - 1], flat[place]) == ("+0.0100 to +0.0900", "–")
    assert len(head) == len(nested) == len(flat)
    assert "With few pre-trainings it is too narrow" in markdown(table)


def test_the_page_explains_itself_and_shows_the_plot() -> None:
    page = markdown(_table("worse"), "plot.png")
    for said in (
        "![Scores and cost](plot.png)",
        "60 texts",
        "one seed only",
        "a processor, 2 cores",
    ):
        assert said in page
    assert plot(_table("worse")).startswith(b"\x89PNG")


def _probed() -> dict[str, Any]:
    """A table whose second recipe has no pre-training."""
    table = _table("better")
    ours = table["recipes"][0]
    ours["metrics"] = {
        PROBE_MEAN: ours["metrics"][METRIC]
        | {"trainings": (0.61, 0.69), "parts": {"first": 0.8, "second": 0.5}},
        **ours["metrics"],
    }
    for rival in table["baselines"]:
        rival["metrics"][PROBE_MEAN] = 0.4
        rival["parts"] = {PROBE_MEAN: {"first": 0.3, "second": 0.5}}
    table["probes"] = {
        "first": {"metric": "accuracy", "rows": 1000, "texts": 900},
        "second": {"metric": "macro_f1", "rows": 50, "texts": 50},
    }
    table["metrics"] = [PROBE_MEAN, METRIC]
    table["differences"][PROBE_MEAN] = table["differences"][METRIC]
    return table


def test_probes_come_first_with_each_data_set_and_each_pretraining() -> None:
    table = _probed()
    assert headline(table).startswith("ours has the highest probe_mean, 0.650, beyond chance")
    head, body = score_cells(table)
    assert head[3:5] == (PROBE_MEAN, METRIC)
    assert [row[3] for row in body] == ["0.6500 ± 0.0100", "–", "0.4000", "0.4000"]
    head, body = probe_cells(table)
    assert head == ("recipe", "each pre-training", "first accuracy", "second macro_f1")
    assert body[0] == ("ours", "0.6100  0.6900", "0.8000", "0.5000")
    assert [row[0] for row in body[1:]] == ["TF-IDF + linear SVM", "majority class"]
    page = markdown(table)
    assert "first (1,000; 900 texts), second (50; 50 texts)" in page
    assert page.index("### probes") < page.index(f"### {PROBE_MEAN}") < page.index(f"### {METRIC}")
    assert plot(table).startswith(b"\x89PNG")


def test_without_fine_tuned_models_nothing_is_said_of_them() -> None:
    table = _probed() | {"dataset": None, "metrics": [PROBE_MEAN]}
    assert "whose text is in no training row" in markdown(_probed())
    assert "whose text is in no training row" not in markdown(table)


LABELLED = """
name: {name}
family: bert
size: tiny
stages:
  - stage: finetune
    dataset: {dataset}
    head: {{sequence_classification: {{}}}}
"""
PRETRAINED = """
name: pretrained
family: bert
size: tiny
stages:
  - stage: general
    corpora: {python_scientific: 1.0}
    objectives: {masked_lm: {}}
  - stage: finetune
    dataset: python_libraries
    head: {sequence_classification: {}}
"""
UNLABELLED = """
name: unlabelled
family: bert
size: tiny
stages:
  - stage: general
    corpora: {python_scientific: 1.0}
    objectives: {masked_lm: {}}
"""


def _write(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def test_recipes_that_cannot_be_compared_are_refused_before_any_work(home: Path) -> None:
    one = _write(home, "one", LABELLED.format(name="one", dataset="python_libraries"))
    same = _write(home, "same", LABELLED.format(name="one", dataset="python_libraries"))
    with pytest.raises(RecipeError, match="another recipe is called 'one' too"):
        entries_of([one, same])
    with pytest.raises(RecipeError, match="expected different seeds, got one twice"):
        entries_of([one], seeds=[1, 2, 1])
    unlabelled = _write(home, "unlabelled", UNLABELLED)
    with pytest.raises(RecipeError, match="needs a stage finetune"):
        entries_of([unlabelled])
    assert [entry.name for entry in entries_of([one, unlabelled])] == ["one", "unlabelled"]
    rows = LABELLED.format(name="rows", dataset="python_libraries")
    probed = _write(home, "probed", PRETRAINED + "evaluate: {probes: {smoke_labels: accuracy}}\n")
    plain = _write(home, "plain", PRETRAINED.replace("pretrained", "plain"))
    none = _write(home, "none", rows + "evaluate: {probes: {python_libraries: accuracy}}\n")
    told = "expected the same evaluate.probes in all recipes, got pretrained: smoke_labels: acc"
    with pytest.raises(RecipeError, match=told):
        entries_of([probed, plain])
    assert len(entries_of([none, plain])) == 2  # without pre-training there is nothing to probe
    dev = _write(
        home,
        "dev",
        LABELLED.format(name="dev", dataset="python_libraries") + "evaluate: {split: dev}\n",
    )
    with pytest.raises(RecipeError, match="expected one dataset and split, got one: test rows of"):
        entries_of([one, dev])
    with pytest.raises(RecipeError, match="scales pre-training to that of the first recipe"):
        check_equal(entries_of([one]), "tokens")
    assert not (home / "store").exists()


def test_contrasts_are_those_asked_for_or_all_against_the_first_and_the_cheap_baseline(
    home: Path,
) -> None:
    paths = [
        _write(home, name, LABELLED.format(name=name, dataset="python_libraries"))
        for name in ("one", "two")
    ]
    entries = entries_of(paths)
    assert contrasts_of(entries) == [
        ("two", "one"),
        ("one", "cheap_baseline"),
        ("two", "cheap_baseline"),
    ]
    assert contrasts_of(entries, ["one:two", "one:two"]) == [("one", "two")]
    with pytest.raises(RecipeError, match="'tow' is not a recipe of this comparison; did you mean"):
        contrasts_of(entries, ["one:tow"])
    for wrong in ("one", "one:one"):
        with pytest.raises(RecipeError, match="expected CANDIDATE:REFERENCE"):
            contrasts_of(entries, [wrong])


def test_seeds_of_the_command_take_the_place_of_the_recipes(home: Path) -> None:
    several = LABELLED.format(name="several", dataset="python_libraries")
    path = _write(home, "several", several + "seeds: {values: [4, 5], from: finetune}\n")
    assert entries_of([path])[0].seeds == (4, 5)
    assert entries_of([path], seeds=[1, 2, 3])[0].seeds == (1, 2, 3)
    alone = _write(home, "alone", LABELLED.format(name="alone", dataset="python_libraries"))
    assert (entries_of([alone])[0].seeds, entries_of([alone])[0].seeds_from) == ((17,), "finetune")
