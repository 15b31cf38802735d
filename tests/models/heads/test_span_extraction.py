"""The question-answering head: slots of answers, the best part of a passage, no answer."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.families.bert import SIZES, Bert
from models.heads.span_extraction import SpanExtraction
from models.protocols import Context
from models.scored_positions import where_read
from tests.models.inputs.test_passages import Rows
from tests.models.memory_corpus import PlainTokenizer

TEXTS = ["a big $5 bill", "a b c d e f g h"]


class Texts(Rows):
    """Rows with a passage of their own."""

    def passage(self, i):
        return TEXTS[i]


ROWS = Texts(
    [
        ([9], [11, 12, 13, 14, 15], json.dumps([[7, "5"], [2, "big"]])),
        ([9], range(20, 28), json.dumps([[10, "f g"]])),
    ],
    [[1, 1, 1, 1, 1], [1] * 8],
)
CONTEXT = Context(PlainTokenizer(50), 9, ("no_answer",), ROWS)  # room for 5 tokens of a passage
RNG = np.random.default_rng(0)


def test_the_first_answer_is_learned_where_it_is_in_the_window_and_nothing_elsewhere():
    head = SpanExtraction(CONTEXT)
    entries = head.index(ROWS, RNG).entries
    assert entries.tolist() == [(0, 0, 5), (1, 0, 5), (1, 2, 7), (1, 4, 8)]
    made = head.segments(ROWS, entries, RNG)
    assert made["start_labels"].tolist() == [4, 0, 4, 2]
    assert made["end_labels"].tolist() == [4, 0, 5, 3]


def said(head: SpanExtraction, row: int, *windows: tuple[list[float], list[float]]):
    return head.answer(
        ROWS, row, [{"start_logits": np.array(a), "end_logits": np.array(b)} for a, b in windows]
    )


SURE = ([0, 0, 5, 0, 0, 0], [0, 0, 0, 0, 4, 0])


def test_the_answer_is_the_text_as_written_from_the_best_start_to_the_best_end():
    answer = said(SpanExtraction(CONTEXT), 0, SURE)
    assert json.loads(answer.text) == [[2, "big $5"]]
    assert answer.details["no_answer"] == -9
    scores = [a + b for i, a in enumerate(SURE[0][1:]) for b in SURE[1][1 + i :]] + [0.0]
    assert answer.probability == pytest.approx(np.exp(9) / np.exp(scores).sum())


def test_an_answer_runs_forward_and_is_not_too_long():
    backward = ([0, 0, 0, 0, 5, 0], [0, 0, 5, 0, 0, 0])
    assert json.loads(said(SpanExtraction(CONTEXT), 0, backward).text) != []
    short = SpanExtraction(CONTEXT, longest_answer=2)
    assert json.loads(said(short, 0, SURE).text) == [[2, "big"]]
    with pytest.raises(RecipeError, match="longest_answer: expected 1 or more"):
        SpanExtraction(CONTEXT, longest_answer=0)


def test_no_answer_wins_if_it_scores_higher_by_more_than_the_threshold():
    nothing = ([6, 0, 5, 0, 0, 0], [6, 0, 0, 0, 4, 0])
    assert said(SpanExtraction(CONTEXT), 0, nothing).text == "[]"
    assert said(SpanExtraction(CONTEXT, no_answer_threshold=3.0), 0, nothing).text != "[]"
    assert said(SpanExtraction(CONTEXT, no_answer_threshold=-10.0), 0, SURE).text == "[]"
    always = SpanExtraction(replace(CONTEXT, label_names=()))  # all training rows have an answer
    assert json.loads(said(always, 0, nothing).text) == [[2, "big $5"]]


class Copies(Texts):
    """The first text, again and again."""

    def passage(self, i):
        return TEXTS[0]


@pytest.mark.parametrize("names", [("no_answer",), ()])
def test_the_thresholds_on_offer_come_with_what_the_head_answers_under_them(names):
    context = replace(CONTEXT, label_names=names)
    rows = Copies([ROWS.rows[0]] * 4, [[1] * 5] * 4)
    logits = [(0, 4), (6, 4), (1, 9), (1, 8)]  # "no answer" starts here, the answer ends there
    outputs = [
        [{"start_logits": np.array([a, 0, 5, 0, 0, 0]), "end_logits": np.array([a, 0, 0, 0, b, 0])}]
        for a, b in logits
    ]
    offered = dict(SpanExtraction(context, no_answer_threshold="dev").thresholds(rows, outputs))
    assert len(offered) == (5 if names else 1)
    counts = [texts.count("[]") for _, texts in sorted(offered.items())]
    assert counts == ([4, 3, 2, 1, 0] if names else [0])
    for threshold, texts in offered.items():
        head = SpanExtraction(context, no_answer_threshold=threshold)
        assert texts == [head.answer(rows, row, own).text for row, own in enumerate(outputs)]


def test_the_least_no_answer_of_all_windows_counts_and_a_word_only_where_it_has_most_context():
    first = ([1, 0, 0, 0, 0, 9], [1, 0, 0, 0, 0, 9])  # its last word has more context later
    second = ([8, 0, 0, 7, 0, 0], [8, 0, 0, 0, 7, 0])
    third = ([8, 0, 0, 0, 0], [8, 0, 0, 0, 0])
    answer = said(SpanExtraction(CONTEXT), 1, first, second, third)
    assert json.loads(answer.text) == [[8, "e f"]]
    assert answer.details["no_answer"] == 2 - 14


def test_slots_without_a_word_are_never_chosen_and_the_loss_is_the_mean_of_both_borders():
    head = SpanExtraction(CONTEXT)
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    made = head.segments(ROWS, head.index(ROWS, RNG).entries, RNG)
    scores, predictions = head.attach(network)(made, network(made))
    logits = [np.asarray(predictions[name], np.float64) for name in ("start_logits", "end_logits")]
    assert logits[0].shape == (4, 1 + made["token_ids"].shape[1])
    assert (logits[0][:, 6:] < -1000).all()
    nats = [
        np.logaddexp.reduce(side, axis=1) - side[np.arange(4), made[name]]
        for side, name in zip(logits, ("start_labels", "end_labels"), strict=True)
    ]
    assert float(scores["loss"][0]) / float(scores["loss"][1]) == pytest.approx(
        np.mean(nats), rel=1e-5
    )


def test_the_last_layer_is_computed_once_for_each_token_not_for_each_slot_of_a_word():
    head = SpanExtraction(CONTEXT)
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    made = head.segments(ROWS, head.index(ROWS, RNG).entries, RNG)
    assert where_read(network, [head.attach(network)], made) == made
