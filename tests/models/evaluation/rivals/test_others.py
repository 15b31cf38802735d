"""Cheap baselines of answers that are no labels: what each can learn, and what it can't."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from models.catalogue import find
from models.catalogue import names as names_in
from models.evaluation.resampling import scores
from models.evaluation.rivals import KINDS, RawRows, fit, names, names_of
from tests.corpora.test_real_data import read


def test_every_kind_of_answer_has_a_rival_with_a_name():
    assert set(KINDS) == set(names_in("answers"))
    for kind in KINDS:
        assert all(names(kind))
    assert names("own") == ("", "")
    assert names_of(["number"]) == names("number")
    assert names_of(["number", "label"])[0] == "cheap baseline"


def test_each_label_of_a_set_is_learned_from_its_words():
    texts = ["late parcel", "wrong price", "late and wrong price", "thank you"] * 6
    sets = ['["delay"]', '["price"]', '["delay", "price"]', "[]"] * 6
    train = RawRows((texts,), [*sets[:-1], '["delay"]'])
    rival = fit("label_set", train, RawRows((texts,), sets), metric="micro_f1")
    assert rival.answer(RawRows((["so late", "what a price", "thank you"],), [""] * 3)) == [
        '["delay"]',
        '["price"]',
        "[]",
    ]
    assert rival.majority == '["delay"]'
    assert rival.facts["score"] == 1.0


def test_a_label_that_no_row_or_every_row_has_is_never_or_always_said():
    train = RawRows((["a b", "b c", "c d"],), ['["always"]', '["always", "x"]', '["always"]'])
    rival = fit("label_set", train, None, metric="micro_f1")
    assert all("always" in json.loads(said) for said in rival.answer(train))


def test_a_pair_is_as_similar_as_its_words_whatever_they_are():
    rng = np.random.default_rng(0)

    def made(count: int, letters: str) -> RawRows:
        first, second, numbers = [], [], []
        for _ in range(count):
            words = ["".join(rng.choice(list(letters), 5)) for _ in range(10)]
            same = int(rng.integers(0, 6))
            first.append(" ".join(words[:5]))
            second.append(" ".join(words[5 - same : 10 - same]))
            numbers.append(str(float(same)))
        return RawRows((first, second), numbers)

    train, dev, test = made(200, "abcdef"), made(50, "abcdef"), made(50, "uvwxyz")
    rival = fit("number", train, dev, metric="pearson")
    found = np.corrcoef(*[[float(x) for x in of] for of in (rival.answer(test), test.answers)])
    assert found[0, 1] > 0.9
    assert float(rival.majority) == pytest.approx(np.mean([float(x) for x in train.answers]))


def test_a_number_of_one_text_is_learned_from_its_words():
    texts = ["very good", "good", "bad", "very bad"] * 10
    train = RawRows((texts,), ["4.0", "3.0", "2.0", "1.0"] * 10)
    rival = fit("number", train, train, metric="spearman")
    said = [float(x) for x in rival.answer(RawRows((["good", "bad"],), ["", ""]))]
    assert said[0] > said[1]


def test_a_choice_is_known_by_its_words_wherever_it_stands():
    rng = np.random.default_rng(1)
    choices, answers = [], []
    for _ in range(60):
        right = int(rng.integers(3))
        row = ["nonsense about cats", "nonsense about dogs", "more nonsense"]
        row[right] = "a sensible ending"
        choices.append(row)
        answers.append(str(right))
    train = RawRows((["He opened the door"] * 60,), answers, choices)
    rival = fit("choice", train.only(range(40)), train.only(range(40, 50)), metric="accuracy")
    assert rival.answer(train.only(range(50, 60))) == answers[50:]
    two = RawRows((["x"],), [""], [("nonsense", "sensible ending")])
    assert rival.answer(two) == ["1"]


def test_names_of_training_are_found_again_the_longest_first():
    texts = ["Ann Lee met Bo in Rome .", "Bo saw Ann .", "may I ? I may .", "in May ."]
    spans = [
        [[0, 7, "person"], [12, 14, "person"], [18, 22, "place"]],
        [[0, 2, "person"], [7, 10, "person"]],
        [],
        [[3, 6, "month"]],
    ]
    train = RawRows((texts,), [json.dumps(each) for each in spans])
    rival = fit("spans", train, None, metric="entity_f1")
    asked = RawRows((["May Ann Lee of Rome see Zoe ?", "以前"],), ["", ""])
    first, second = map(json.loads, rival.answer(asked))
    assert first == [[0, 3, "month"], [4, 11, "person"], [15, 19, "place"]]
    assert second == []
    assert rival.majority == "[]"


def test_a_word_that_is_rarely_a_span_is_none():
    texts = ["may come"] * 9 + ["may"]
    train = RawRows((texts,), ["[]"] * 9 + ['[[0, 3, "month"]]'])
    rival = fit("spans", train, None, metric="entity_f1")
    assert rival.answer(RawRows((["may"],), [""])) == ["[]"]


def test_the_answer_is_next_to_the_words_of_the_question():
    passage = "The tower was built in 1889 by Eiffel. The bridge was opened in 1932 by Lang."
    other = "A page about nothing at all, with words as in any other."
    train = RawRows(
        (["When was it opened?", "What is it about?"], [passage, other]),
        [json.dumps([[passage.index("1932"), "1932"]]), json.dumps([[2, "page"]])],
    )
    rival = fit("extract", train, None, metric="f1")
    (said,) = rival.answer(RawRows((["Who opened the bridge in 1932?"], [passage]), [""]))
    ((start, text),) = json.loads(said)
    assert passage[start : start + len(text)] == text
    assert start > passage.index("The")
    assert rival.answer(RawRows((["Why?"], [""]), [""])) == ["[]"]


def test_there_is_no_answer_where_the_score_is_below_the_border_chosen_on_dev():
    passage = "The bridge was opened in 1932 by Lang."
    asked = ["Who opened the bridge in 1932?", "How deep are oceans?"]
    answers = [json.dumps([[passage.index("Lang"), "Lang"]]), "[]"]
    rows = RawRows((asked * 3, [passage] * 6), answers * 3)
    rival = fit("extract", rows, rows, metric="f1")
    said = rival.answer(rows)
    assert [x == "[]" for x in said] == [False, True] * 3


def test_where_each_question_of_training_has_an_answer_so_has_every_other_one():
    passage = "The bridge was opened in 1932 by Lang."
    train = RawRows((["Who opened it?"], [passage]), [json.dumps([[33, "Lang"]])])
    rival = fit("extract", train, None, metric="f1")
    same = RawRows((["Lang, Lang?"], ["Lang"]), [""])  # all of the passage is in the question
    assert rival.answer(same) == ['[[0, "Lang"]]']


def texts(*each: str) -> list[str]:
    return [json.dumps([text]) for text in each]


def test_a_text_is_the_nearest_rows_or_the_beginning_of_its_own_as_the_dev_rows_choose():
    train = RawRows(
        (["a red house", "two red dogs", "a dog"],), texts("rot", "Hunde da", "Hund da")
    )
    asked = RawRows((["the dogs are two", "one house on a hill"],), ["", ""])
    for answers, way, said in (
        (texts("Hunde da", "rot"), "nearest", texts("Hunde da", "rot")),
        (texts("the dogs", "one house"), "beginning", texts("the dogs", "one house")),
    ):
        rival = fit("text", train, RawRows(asked.columns, answers), metric="chrf")
        assert rival.facts == {"way": way, "words": 2, "score": 1.0}
        assert rival.answer(asked) == said
    rival = fit("text", train, None, metric="bleu")
    assert rival.answer(RawRows((["a dog", ""],), ["", ""]))[0] == '["Hund da"]'
    assert rival.answer(RawRows(([],), [])) == []
    again = RawRows((["x", "y", "z"],), ['["b", "c"]', *texts("b", "a")])
    assert fit("text", again, None, metric="bleu").majority == '["b"]'


def test_without_words_the_beginning_is_empty():
    train = RawRows((["one two", "three"],), texts("one", "three"))
    rival = fit("text", train, RawRows((["one", ""],), texts("one", "")), metric="exact_match")
    assert rival.facts["way"] == "beginning"
    assert rival.answer(RawRows((["", "four five"],), ["", ""])) == texts("", "four")


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("source", "kind", "metric", "least"),
    [
        ("stsb_en", "number", "pearson", 0.6),
        ("bc5cdr_ner", "spans", "entity_f1", 0.5),
        ("codah", "choice", "accuracy", 0.28),
        ("squad_v2_small", "extract", "f1", 0.5),
        ("thucnews_titles_text", "text", "exact_match", 0.6),
    ],
)
def test_on_published_rows_it_is_above_chance(
    source: str, kind: str, metric: str, least: float, shared_data: Path, monkeypatch
):
    monkeypatch.setenv("FOURSTAGE_DATA", str(shared_data))
    held = {split: rows_of(read(source).rows[split]) for split in read(source).rows}
    rival = fit(kind, held["train"], held.get("dev"), metric=metric)
    found = scores(
        find("answers", kind)(), held["test"].answers, rival.answer(held["test"]), [metric]
    )
    assert found[metric] > least


def rows_of(rows) -> RawRows:
    columns = [[row.text for row in rows]]
    if rows[0].text_pair is not None:
        columns.append([row.text_pair for row in rows])
    choices = [row.choices for row in rows] if rows[0].choices else None
    return RawRows(tuple(columns), [row.label for row in rows], choices)
