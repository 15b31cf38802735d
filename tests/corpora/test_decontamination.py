"""No evaluation text in a training corpus."""

from __future__ import annotations

import random
from pathlib import Path

from corpora.decontamination import CHARACTERS, MOST_TEXTS, WORDS, EvaluationTexts, Variant
from corpora.identity import normal_form
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import chinese, documents, write

SENTENCE = "The " + " ".join(f"word{i}" for i in range(30)) + "."


def touches(evaluation: list[str], text: str, **settings: list[str]) -> bool:
    return EvaluationTexts(evaluation, **settings).touches(text, normal_form(text))


def test_thirteen_words_in_a_row_are_found_and_twelve_are_not():
    words = SENTENCE.split()
    for count, found in ((WORDS, True), (WORDS - 1, False)):
        part = "Before. " + " ".join(words[5 : 5 + count]).upper() + "! After."
        assert touches([SENTENCE], part) is found


def test_twenty_six_characters_in_a_row_are_found_and_twenty_five_are_not():
    rng = random.Random(1)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(60))
    for count, found in ((CHARACTERS, True), (CHARACTERS - 1, False)):
        part = text[10 : 10 + count]
        around = "前面的话" + part[:9] + "，" + part[9:] + "后面的话"
        assert touches([text], around) is found


def test_what_more_than_ten_evaluation_texts_share_is_no_evidence():
    footer = " ".join(f"footer{i}" for i in range(40))
    texts = [f"{SENTENCE} {footer}"]
    texts += [f"{' '.join(f'own{n}w{i}' for i in range(20))} {footer}" for n in range(MOST_TEXTS)]
    document = f"A text of its own. {footer}"
    assert not touches(texts, document)
    assert touches(texts[:-1], document)
    assert touches(texts, SENTENCE)
    assert touches(texts, texts[3])


def test_the_passage_of_many_questions_is_one_text():
    together = [Variant(f"What is word{n}? {SENTENCE}") for n in range(2 * MOST_TEXTS)]
    for texts in ([SENTENCE, SENTENCE.upper()] * MOST_TEXTS, [SENTENCE, *together], together):
        assert touches(texts, f"Before. {SENTENCE}")
    assert touches(together, f"And: what is word7? {SENTENCE[:60]}")


def test_a_short_text_is_found_whole_only():
    assert touches(["A fine film."], "a FINE film")
    assert not touches(["A fine film."], "It was a fine film, they said.")


def test_markings_and_ignored_words_make_no_difference():
    marked = SENTENCE.replace("word9", "<< word9 >>")
    assert touches([marked], SENTENCE, markings=["<<", ">>"])
    named = SENTENCE.replace("word4 word5", "word4 numpy word5").replace("word12", "word12 numpy")
    short = " ".join(SENTENCE.split()[:16])
    assert not touches([short], " ".join(named.split()[:18]))
    assert touches([short], " ".join(named.split()[:18]), ignored=["numpy"])


def test_a_short_chinese_text_is_found_without_its_markings():
    assert touches(["今天<<天气>>很好"], "今天天气很好。", markings=["<<", ">>"])


def test_no_evaluation_texts_touch_nothing():
    assert not touches([], SENTENCE)
    assert not touches(["", "…"], SENTENCE)


def test_documents_that_hold_an_evaluation_text_are_removed_and_counted(
    tmp_path: Path, corpus: Prepare
):
    records = documents(50)
    evaluation = [" ".join(records[7]["text"].split()[10:40]), records[9]["text"]]
    path = write(tmp_path / "c.jsonl", records + chinese(5))
    prepared = corpus(path, evaluation_texts=evaluation)
    assert prepared.counts.removed == {"holds an evaluation text": 2}
    assert {item["id"] for item in prepared.rejected()} == {"d1-7", "d1-9"}
