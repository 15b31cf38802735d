"""A model's card, from the manifests of a small lifecycle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.registry.version_card import LONGEST, fitting
from tasks.reports.model_card import MOST_NAMED, model_card, score_intervals
from tasks.reports.score_plots import ClassifierAnswers
from tasks.store.ancestry import gather, join
from tasks.store.model_facts import ModelFacts, facts_of
from tests.tasks.lifecycle import Lifecycle


@pytest.fixture
def facts(home: Path, saved_model: Path) -> ModelFacts:
    made = Lifecycle(home, package=saved_model)
    root = made.store.root
    found = facts_of(join(gather(root, made["package"]), gather(root, made["evaluation"])))
    assert found is not None
    return found


def answers(names: list[str], rows: int = 400) -> ClassifierAnswers:
    labels = np.arange(rows) % len(names)
    wrong = np.arange(rows) % 10 == 0
    predicted = np.where(wrong, (labels + 1) % len(names), labels)
    baseline = np.zeros(rows, np.int64)
    return ClassifierAnswers(tuple(names), labels, predicted, np.full(rows, 0.9), baseline)


def test_a_card_names_licences_scores_and_stages(facts: ModelFacts):
    card = model_card(facts, "relations version 1", called="relations/1")
    for told in ("CC-BY-SA-4.0", "CC0-1.0", "CC-BY-4.0", "general → domain → task → finetune"):
        assert told in card
    assert f"| accuracy | {facts.scores['metrics']['accuracy']:.3f} | 0.500 |" in card
    assert "zqxcanary" not in card


def test_a_card_has_scores_of_new_texts_only_where_there_are_any(facts: ModelFacts):
    def told(rows: int, **scores: float) -> str:
        assert facts.evaluation is not None
        found = {**facts.scores, "rows_clean": rows, "metrics_clean": scores}
        evaluation = replace(facts.evaluation, facts=found)
        return model_card(replace(facts, evaluation=evaluation), "relations")

    assert "On the 2 rows whose text no training row has: accuracy 0.500." in told(2, accuracy=0.5)
    assert "whose text no training row has" not in told(0)
    assert "A training row has the text of each of them" in told(0)


def test_a_card_names_what_parts_started_from_and_all_text_behind_it(facts: ModelFacts):
    last = facts.stages[-1]
    inputs = dict(last.inputs)
    inputs["start of encoder"] = inputs.pop("stage before")
    settings = {**last.settings, "starts_from": {"embeddings": "1" * 64}}
    last = replace(last, inputs=inputs, preimage={**last.preimage, "settings": settings})
    begun = replace(facts, stages=(last,))
    card, whole = model_card(begun, "pair"), model_card(facts, "whole")
    assert (
        "by the stages finetune. Parts of it did not start at random: its embeddings from a file"
        in card
    )
    assert "its encoder from stage task." in card

    def told(text: str) -> list[str]:
        return [line for line in text.splitlines() if "CC" in line or "tokens in all" in line]

    assert told(card) == told(whole) != []


def test_a_card_counts_the_labels_that_no_row_and_no_answer_has(facts: ModelFacts):
    evaluation = facts.evaluation
    assert evaluation is not None
    assert "one of 2 labels: `a`, `c`." in model_card(facts, "two", answers=answers(["a", "c"]))
    evaluation = replace(evaluation, facts={**evaluation.facts, "labels_left_out": ["b"]})
    card = model_card(replace(facts, evaluation=evaluation), "three", answers=answers(["a", "c"]))
    assert "one of 3 labels: `a`, `b`, `c`." in card


def test_a_network_that_no_one_can_ask_has_no_address(facts: ModelFacts):
    assert "How to call it" not in model_card(facts, "Stage finetune")


def test_intervals_hold_the_score_and_the_difference():
    ours, theirs, apart = score_intervals(answers(["a", "b"]), ["accuracy"])["accuracy"]
    assert (ours.value, theirs.value) == (0.9, 0.5)
    assert ours.low < 0.9 < ours.high
    assert 0.2 < apart.low < 0.4 < apart.high  # far from equal: the rows say so


def test_rows_of_one_text_are_drawn_together_in_an_interval():
    one = answers(["a", "b"])
    four = replace(
        one,
        **{n: np.repeat(getattr(one, n), 4) for n in ("labels", "predicted", "baseline")},
        texts=np.repeat(np.arange(len(one.labels)), 4),
    )
    widths = [
        [each.high - each.low for each in score_intervals(of, ["accuracy"])["accuracy"]]
        for of in (one, four, replace(four, texts=None))
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)  # the same texts, four times
    assert max(np.divide(widths[2], widths[0])) < 0.65


def test_labels_without_end_leave_a_card_that_can_be_read(facts: ModelFacts):
    names = [f"label `{i}`\n" + "x" * 200 for i in range(300)]
    card = model_card(facts, "many", called="many/1", answers=answers(names, 900))
    assert f"and {300 - MOST_NAMED} more" in card
    assert " of them are right; expected calibration error 0." in card
    assert max(map(len, card.splitlines())) < 5000


def test_a_description_is_cut_before_a_section_and_says_so(facts: ModelFacts):
    card = model_card(facts, "relations version 1")
    description = fitting(card + "\n## More\n\n" + "x" * LONGEST)
    assert len(description) <= LONGEST
    assert description.startswith(card.rstrip())
    assert description.endswith("among the files of its logged model.\n")
    assert "x" * 10 not in description


def test_a_card_that_fits_is_the_whole_description(facts: ModelFacts):
    card = model_card(facts, "relations version 1")
    assert fitting(card) == card
