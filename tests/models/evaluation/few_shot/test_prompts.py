"""Prompts by hand: wording, examples, tokens across the border, draws; the rules' arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from corpora.prepared import PreparedRow
from fourstage.errors import ContractViolation
from models.evaluation.few_shot.draws import drawn
from models.evaluation.few_shot.prompts import Style, tokenised
from models.evaluation.few_shot.rules import over_neutral, per_token
from models.evaluation.few_shot.template import Template
from models.evaluation.few_shot.wording import Wording
from models.tokenizers.byte_bpe import learn

TRAIN = [
    PreparedRow("1", "Sorts an {array}.", None, "np", "train"),
    PreparedRow("2", "Draws a line.", None, "plt", "train"),
]
ASKED = PreparedRow("3", "Fills an array.", None, "np", "test")
WORDING = Wording("label", ("np", "plt"), {"np": "numpy"})


def test_a_prompt_by_hand():
    style = Style(Template("{text}\nLibrary: {answer}"), WORDING, "Name the library.", "\n\n")
    assert style.text(ASKED, TRAIN) == (
        "Name the library.\n\nSorts an {array}.\nLibrary: numpy\n\nDraws a line.\nLibrary: plt\n\n"
        "Fills an array.\nLibrary: "
    )
    assert style.text(ASKED) == "Name the library.\n\nFills an array.\nLibrary: "
    plain = Style(Template("{{x}} {text_pair}|{text}|{text_pair} {answer}"), WORDING)
    pair = PreparedRow("4", "one", "two", "np", "test")
    assert plain.text(pair) == "{x} two|one|two "


def test_choices_and_texts_in_words():
    row = PreparedRow("5", "He sat", None, "1", "test", ("up.", "down."))
    style = Style(Template("{text} {answer}"), Wording("choice"), separator="\n")
    assert style.text(row, [row]) == "He sat down.\nHe sat "
    assert style.wording.candidates(row) == ("up.", "down.")
    assert style.wording.written(row, "DOWN.") == "1"
    assert style.wording.written(row, "away.") == "2"
    assert WORDING.written(ASKED, "Numpy") == "np"
    assert WORDING.written(ASKED, "pandas") == ""
    text = PreparedRow("6", "Hund", None, '["dog", "hound"]', "test")
    assert Wording("text").right(text) == "dog"
    assert Wording("text").written(text, "a dog") == '["a dog"]'


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (
            "{text} {label} {answer}",
            r"expected the fields {text}, {text_pair}, {answer}, got {label}",
        ),
        ("{text}", r"expected {answer} once, at the end"),
        ("{answer} {text}", r"expected {answer} once, at the end"),
        ("{text} {answer}.", r"expected {answer} once, at the end"),
        ("{answer} {answer}", r"expected {answer} once, at the end"),
        ("{text:>9} {answer}", "fields without a format"),
        ("{text {answer}", "expected"),
    ],
)
def test_templates_that_mean_nothing_are_refused(template, said):
    with pytest.raises(ValueError, match=said):
        Template(template)


def test_words_must_be_those_of_labels_and_differ():
    with pytest.raises(ValueError, match=r"expected labels of the dataset \(np, plt\), got tf"):
        Wording("label", ("np", "plt"), {"tf": "tensorflow"})
    with pytest.raises(ValueError, match="other words for each label"):
        Wording("label", ("np", "plt"), {"np": "plt"})


@pytest.fixture(scope="module")
def tokenizer():
    texts = ["Library: numpy", "Library: plt pandas", "1999 was 19 years"] * 50
    return learn(texts, vocabulary_size=300)


def test_a_token_across_the_border_belongs_to_the_answer(tokenizer):
    (prompt,) = tokenised(tokenizer, [("Library: ", ["numpy", "plt", "pandas"])], [0])
    assert prompt.context[0] == tokenizer.cls_id
    assert tokenizer.decode(prompt.context[1:]) == "Library:"
    assert [tokenizer.decode(ids) for ids in prompt.answers] == [" numpy", " plt", " pandas"]
    for answer, words in zip(prompt.answers, ("numpy", "plt", "pandas"), strict=True):
        (whole,) = tokenizer.encode([f"Library: {words}"])
        assert [*prompt.context[1:], *answer] == whole.tolist()
    # Tokenised apart, the blank would be a token of its own, which training has hardly seen.
    apart = [*tokenizer.encode(["Library: "])[0], *tokenizer.encode(["numpy"])[0]]
    assert apart != [*prompt.context[1:], *prompt.answers[0]]


def test_answers_are_scored_from_one_place_even_if_only_one_joins_the_prompt(tokenizer):
    (prompt,) = tokenised(tokenizer, [("19", ["99", " years"])], [0])
    texts = [tokenizer.decode([*prompt.context[1:], *answer]) for answer in prompt.answers]
    assert texts == ["1999", "19 years"]
    # 1999 is one token, so that 19 is part of what is scored of both.
    assert prompt.context == [tokenizer.cls_id]


def test_a_text_to_be_written_has_no_blank_before_it(tokenizer):
    (prompt,) = tokenised(tokenizer, [("Library: ", ())], [0])
    assert tokenizer.decode(prompt.context[1:]) == "Library:"
    assert prompt.answers == ()


def test_an_answer_without_a_token_is_refused(tokenizer):
    with pytest.raises(
        ContractViolation, match="prompt 0: expected a token or more in each answer"
    ):
        tokenised(tokenizer, [("Library:", [" plt", ""])], [0])


def test_examples_are_a_function_of_seed_and_row_and_only_grow():
    labels = ["a"] * 90 + ["b"] * 9 + ["c"]
    for balanced in (False, True):
        first = drawn(1, 5, 8, labels, balanced)
        assert first == drawn(1, 5, 8, labels, balanced) == drawn(1, 5, 30, labels, balanced)[:8]
        assert len(set(drawn(1, 5, 100, labels, balanced))) == 100
        assert first != drawn(1, 6, 8, labels, balanced)
        assert first != drawn(2, 5, 8, labels, balanced)
    assert drawn(1, 5, 0, labels) == []
    for row in range(20):
        shown = [labels[place] for place in drawn(0, row, 6, labels, balanced=True)]
        assert sorted(shown[:3]) == ["a", "b", "c"]
        assert sorted(shown[3:5]) == ["a", "b"]
    counts = np.bincount([place for row in range(2000) for place in drawn(3, row, 5, labels)])
    assert abs(counts - 100).max() < 5 * np.sqrt(100)  # any row is as likely as another


def test_the_rules_by_hand():
    log_p = [np.log([0.5]), np.log([0.6, 0.9, 0.9]), np.log([0.1, 0.99])]
    sums = [tokens.sum() for tokens in log_p]
    assert int(np.argmax(sums)) == 0  # the shortest
    np.testing.assert_allclose(np.exp(per_token(log_p)), [0.5, (0.6 * 0.81) ** (1 / 3), 0.099**0.5])
    assert int(per_token(log_p).argmax()) == 1
    neutral = [np.log([0.5]), np.log([0.6, 0.9, 0.9]), np.log([0.01, 0.5])]
    np.testing.assert_allclose(np.exp(over_neutral(log_p, neutral)), [1, 1, 0.099 / 0.005])
    assert int(over_neutral(log_p, neutral).argmax()) == 2
