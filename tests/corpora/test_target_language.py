"""A text to write that is in the language of the texts is told from those that are not."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest

from corpora.target_language import TrigramProfiles, are_told_apart
from data_contracts.check import check
from data_contracts.suite import load_suite
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import write

ENGLISH = "the man walks his dog over some grass and into an old house with her".split()
GERMAN = "der Mann geht mit seinem Hund über die Wiese und in ein altes Haus".split()


def captions(count: int, swapped: tuple[int, ...] = ()) -> list[tuple[str, list[str]]]:
    rng = random.Random(5)
    made = []
    for number in range(count):
        text, target = (" ".join(rng.choices(words, k=9)) for words in (ENGLISH, GERMAN))
        made.append((target, [text]) if number in swapped else (text, [target]))
    return made


def trigrams(text: str) -> list[str]:
    line = f" {text.lower()} "
    return [line[i : i + 3] for i in range(len(line) - 2)]


def test_a_margin_is_by_the_other_rows_for_a_training_row_and_by_all_for_another():
    rows = captions(60, swapped=(7,))
    profiles = TrigramProfiles(rows)
    every = {t for text, (target,) in rows for t in (*trigrams(text), *trigrams(target))}
    for row, counted in ((7, True), (8, True), (8, False)):
        text, (target,) = rows[row]
        read = [rows[i] for i in range(60) if not counted or i != row]
        texts = Counter(t for one, _ in read for t in trigrams(one))
        targets = Counter(t for _, (one,) in read for t in trigrams(one))
        nats = [
            math.log((targets[t] + 1) / (targets.total() + len(every)))
            - math.log((texts[t] + 1) / (texts.total() + len(every)))
            for t in trigrams(target)
        ]
        margin = profiles.margin(text, [target], counted)
        assert margin == pytest.approx(sum(nats) / len(nats))
        assert (margin < -0.3) == (row == 7)


def test_the_worst_reference_counts_and_short_ones_and_few_rows_say_nothing():
    (text, (target,)), *rows = captions(51)
    profiles = TrigramProfiles(rows)
    both = profiles.margin(text, [target, text], False)
    assert both == profiles.margin(text, [text], False)
    assert both < 0 < profiles.margin(text, [target], False)
    assert profiles.margin(text, [target, "a b"], False) == profiles.margin(text, [target], False)
    assert profiles.margin(text, ["the man walks a dog"], False) == 0  # 19 trigrams
    assert profiles.margin(text, ["the man walks my dog"], False) != 0
    assert TrigramProfiles(rows[:49]).margin(text, [target], False) == 0


@pytest.mark.parametrize(
    ("languages", "told"),
    [
        (("en", "de"), True),
        (("ru", "uk"), True),
        (("en", "en-GB"), False),
        (("en", None), False),
        (("zh", "en"), False),
    ],
)
def test_two_languages_of_one_script_are_told_apart(languages, told):
    assert are_told_apart(*languages) == told


def test_swapped_rows_go_to_quarantine_and_one_language_has_no_margins(
    tmp_path: Path, dataset: Prepare
):
    import pandas

    def prepared(**settings: str):
        rows = captions(200, swapped=(3, 150, 199))
        records = [
            {"id": f"r{n}", "text": text, "label": target} for n, (text, target) in enumerate(rows)
        ]
        write(tmp_path / "rows.jsonl", records)
        return dataset(tmp_path / "rows.jsonl", answers="text", **settings)

    profile = pandas.DataFrame(prepared(answer_language="de").profile())
    report = check(profile, load_suite("targets"), subject="mine", parameters={})
    assert set(report.quarantined) == {"r3", "r150", "r199"}
    (broken,) = (each for each in report.results if each.id == "target_language_right")
    assert broken.status == "failed"
    margins = [row["target_language_margin"] for row in prepared().profile()]
    assert margins == [0.0] * 200
