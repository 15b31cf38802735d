"""The in-context protocol on a network that provably uses its context, and on one that cannot."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import keras
import numpy as np
import pytest

from corpora.prepared import PreparedRow
from fourstage.errors import ContractViolation
from models.evaluation.few_shot.draws import drawn
from models.evaluation.few_shot.prompts import Style
from models.evaluation.few_shot.protocol import Asker, Protocol
from models.evaluation.few_shot.rules import ROUNDING, RULES, best
from models.evaluation.few_shot.template import Template
from models.evaluation.few_shot.wording import Wording
from models.layers.token_prediction import TokenOutput
from tests.conformance.parts import network
from tests.models.evaluation.few_shot.rigged import rigged
from tests.models.memory_corpus import PlainTokenizer

SIZE, LENGTH = 60, 48
LABELS = ("a", "b", "c", "d")
# A text is one token, 10 to 13, and each has a label of its own; label d has two tokens.
WORDS = {"a": "30", "b": "31", "c": "32", "d": "33 34"}
TOKENIZER = PlainTokenizer(SIZE)
SEPARATOR = f" {TOKENIZER.sep_id} "  # where a text that is written ends


def rows(repeats: int, split: str, turned: int = 0) -> list[PreparedRow]:
    pairs = product(range(repeats), range(len(LABELS)))
    return [
        PreparedRow(f"{split}{n}-{i}", str(10 + i), None, LABELS[(i + turned) % 4], split)
        for n, i in pairs
    ]


POOL, ASKED = rows(5, "train"), rows(6, "test")
TRUE = [row.label for row in ASKED]


def asker(made: Any = None, style: dict | None = None, **protocol: Any) -> Asker:
    made = made or rigged(SIZE, LENGTH)
    wording = Wording("label", LABELS, WORDS)
    looks = Style(Template("{text} {answer}"), wording, separator=SEPARATOR, **(style or {}))
    said = {"score": "per_token", "neutral": "50 ", "answer_length": 3, "seed": 4, **protocol}
    return Asker(made, TokenOutput(made), TOKENIZER, LENGTH, looks, Protocol(**said))


def right(said: list[str]) -> float:
    return float(np.mean(np.array(said) == np.array(TRUE)))


@pytest.mark.parametrize("score", RULES)
def test_a_network_that_copies_from_its_context_is_right_once_it_is_shown_each_label(score):
    ask = asker(score=score, balanced=True)
    numbers = range(len(ASKED))
    for k in (4, 7):
        assert right(ask.answers(ASKED, numbers, POOL, k).said) == 1.0
    without = ask.answers(ASKED, numbers, POOL, 0)
    assert right(without.said) in (0.0, 0.25)  # one answer, or none, for all rows
    assert without.examples.tolist() == [0] * len(ASKED)


def test_of_scores_that_rounding_tells_apart_the_first_is_best():
    assert best(np.array([-2.0, -1.0 - ROUNDING / 2, -1.0])) == 1
    assert best(np.array([-2.0, -1.0 - ROUNDING * 2, -1.0])) == 2


def test_it_is_right_for_exactly_those_rows_whose_text_was_shown():
    ask, labels = asker(), [row.label for row in POOL]
    shares = []
    for k in (1, 2, 3, 6):
        said = ask.answers(ASKED, range(len(ASKED)), POOL, k).said
        shown = [
            row.label in {labels[p] for p in drawn(4, n, k, labels)} for n, row in enumerate(ASKED)
        ]
        assert [one == other for one, other in zip(said, TRUE, strict=True)] == shown
        shares.append(np.mean(shown))
    assert shares == sorted(shares)
    assert shares[0] < 0.5 < shares[-1]


def test_it_believes_its_examples_and_nothing_else():
    turned = rows(5, "train", turned=1)
    said = asker(balanced=True).answers(ASKED, range(len(ASKED)), turned, 4).said
    assert said == [LABELS[(LABELS.index(label) + 1) % 4] for label in TRUE]


def test_random_weights_answer_no_better_for_any_examples():
    made = network("gpt2", seed=3, vocabulary_size=SIZE)
    ask = asker(made, balanced=True)
    found = [right(ask.answers(ASKED, range(len(ASKED)), POOL, k).said) for k in (0, 4, 8)]
    assert max(found) < 0.6


def in_numpy(made: Any, pairs: list[tuple[str, str]]) -> list[np.ndarray]:
    """Log probabilities of the tokens of answers after prompts, all read at once."""
    encoded = [[TOKENIZER.encode([text])[0] for text in pair] for pair in pairs]
    ids = np.zeros((len(pairs), 1 + max(len(a) + len(b) for a, b in encoded)), np.int32)
    for row, (before, answer) in zip(ids, encoded, strict=True):
        row[: 1 + len(before) + len(answer)] = [TOKENIZER.cls_id, *before, *answer]
    given = {"token_ids": ids, "padding_mask": (ids > 0).astype(np.int32)}
    hidden = keras.ops.convert_to_numpy(made(given)["sequence_output"]).astype(np.float64)
    logits = hidden @ keras.ops.convert_to_numpy(made.token_embedding.embeddings).T
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return [
        np.log([p[row, len(before) + n, token] for n, token in enumerate(answer)])
        for row, (before, answer) in enumerate(encoded)
    ]


def test_the_choice_is_that_of_the_equations_in_numpy():
    made = network("gpt3", seed=3, vocabulary_size=SIZE)
    labels, words = [row.label for row in POOL], list(WORDS.values())
    prompts = []
    for number, row in enumerate(ASKED):
        shown = [f"{POOL[p].text} {WORDS[POOL[p].label]}" for p in drawn(4, number, 3, labels)]
        prompts.append(SEPARATOR.join([*shown, row.text]))
    found = in_numpy(made, [*product(prompts, words), *product(["50"], words)])
    means = np.array([log_p.mean() for log_p in found]).reshape(-1, 4)
    sums = np.array([log_p.sum() for log_p in found]).reshape(-1, 4)
    best = {"per_token": means[:-1], "over_neutral": sums[:-1] - sums[-1]}
    for score, of in best.items():
        expected = [LABELS[number] for number in of.argmax(1)]
        said = asker(made, score=score).answers(ASKED, range(len(ASKED)), POOL, 3).said
        assert said == expected
        assert len(set(expected)) > 1


def test_choices_and_texts_are_asked_alike():
    made = rigged(SIZE, LENGTH)
    choices = ("30", "31", "32", "33 34")
    pool = [
        PreparedRow(r.id, r.text, None, str(LABELS.index(r.label)), "train", choices) for r in POOL
    ]
    asked = [
        PreparedRow(r.id, r.text, None, str(3 - LABELS.index(r.label)), "test", choices[::-1])
        for r in ASKED
    ]
    ask = asker(made)
    ask._style = Style(Template("{text} {answer}"), Wording("choice"), separator=SEPARATOR)
    said = ask.answers(asked, range(len(asked)), pool, 12).said
    hits = [one == row.label for one, row in zip(said, asked, strict=True)]
    assert np.mean(hits) > 0.9

    texts = [PreparedRow(r.id, r.text, None, json.dumps([WORDS[r.label]]), "train") for r in POOL]
    ask = asker(made, score="free_form", answer_length=3)
    ask._style = Style(Template("{text} {answer}"), Wording("text"), separator=SEPARATOR)
    written = ask.answers(ASKED, range(len(ASKED)), texts, 12).said
    hits = [
        json.loads(text) == [WORDS[row.label]] for text, row in zip(written, ASKED, strict=True)
    ]
    assert np.mean(hits) > 0.9


def test_a_candidate_that_the_tokenizer_writes_otherwise_is_known_when_it_is_written():
    ask = asker(score="free_form", balanced=True)
    words = {**WORDS, "d": "33\t34"}  # two numbers have a blank between them where they are read
    ask._style = Style(Template("{text} {answer}"), Wording("label", LABELS, words), "", SEPARATOR)
    assert right(ask.answers(ASKED, range(len(ASKED)), POOL, 4).said) == 1.0


def test_prompts_that_do_not_fit_are_refused_with_numbers_or_show_fewer_examples():
    numbers = range(len(ASKED))
    with pytest.raises(ContractViolation) as caught:
        asker().answers(ASKED, numbers, POOL, 20)
    assert "prompts with 20 examples are too long" in str(caught.value)
    assert f"the network reads {LENGTH}" in str(caught.value)
    found = asker(fewer=True).answers(ASKED, numbers, POOL, 20)
    labels = [row.label for row in POOL]
    for number, examples in enumerate(found.examples.tolist()):
        places = drawn(4, number, 20, labels)
        lengths = [3 + (labels[place] == "d") for place in places]
        # [CLS], the examples, the row's text; the answers' last token is not read.
        assert 2 + sum(lengths[:examples]) + 1 <= LENGTH
        assert 2 + sum(lengths[: examples + 1]) + 1 > LENGTH
    assert not found.cut.any()
    long = [PreparedRow("long", " ".join(["20"] * 60 + ["10"]), None, "a", "test")]
    found = asker(fewer=True).answers(long, [0], POOL, 3)
    assert (found.examples[0], found.cut[0]) == (0, 62 + 1 - LENGTH)


def test_more_examples_than_there_are_rows_are_refused():
    with pytest.raises(ContractViolation, match=r"expected at most 20 examples.*got 21"):
        asker(fewer=True).answers(ASKED[:1], [0], POOL, 21)
