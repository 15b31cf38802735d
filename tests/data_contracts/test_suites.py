"""Every expectation of every built-in suite holds at its bound and fails one step beyond it.

The fixtures are matched with the files both ways: an expectation without a fixture fails, and so
does a fixture whose expectation was deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from data_contracts.check import check
from data_contracts.derived import DERIVED
from data_contracts.suite import BUILT_IN, load_suite, read_suite, suite_names
from fourstage.errors import RecipeError

Edit = Callable[[pd.DataFrame], pd.DataFrame]
NUM_ROWS = 400
PARAMETERS = {"dataset": {"labels": ["neg", "pos"]}}


def as_it_is(table: pd.DataFrame) -> pd.DataFrame:
    return table


def put(column: str, value: object, row: int = 0) -> Edit:
    """One cell, by default the first."""

    def edit(table: pd.DataFrame) -> pd.DataFrame:
        values = table[column].tolist()
        values[row] = value
        return table.assign(**{column: values})

    return edit


def fill(column: str, value: object, num_rows: int = NUM_ROWS) -> Edit:
    """The first so many cells of a column."""

    def edit(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{column: [value] * num_rows + table[column].tolist()[num_rows:]})

    return edit


def write(column: str, values: list) -> Edit:
    """A whole column, whose length becomes the table's."""

    def edit(table: pd.DataFrame) -> pd.DataFrame:
        table = pd.concat([table] * (len(values) // len(table) + 1), ignore_index=True)
        return table.iloc[: len(values)].assign(**{column: values})

    return edit


def first(num_rows: int) -> Edit:
    return lambda table: table.iloc[:num_rows]


def corpus() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [f"d{i}" for i in range(NUM_ROWS)],
            "split": ["heldout", "train"] * (NUM_ROWS // 2),
            "num_chars": 500,
            "num_words": 90,
            "longest_word": 14,
            "replacement_share": 0.0,
            "script_share": 0.99,
            "control_removed": 0,
            "special_token_strings": 0,
            "digest": [f"{i:064x}" for i in range(NUM_ROWS)],
            "num_duplicates": 0,
        }
    )


def dataset() -> pd.DataFrame:
    return corpus().assign(
        split=["train", "train", "dev", "test"] * (NUM_ROWS // 4),
        label=["pos", "neg", "pos", "pos", "pos", "neg", "neg", "neg"] * (NUM_ROWS // 8),
        text_pair_chars=None,
        duplicate_of_train=None,
        contradictory=False,
    )


def answers() -> pd.DataFrame:
    return dataset().assign(label="spans", num_answers=1)


def targets() -> pd.DataFrame:
    return answers().assign(
        label="text",
        target_chars=60,
        target_words=12,
        length_ratio=0.9,
        copy_rate=0.1,
        target_script_share=1.0,
        target_language_margin=2.5,
    )


def tokens() -> pd.DataFrame:
    return corpus()[["id", "split"]].assign(num_tokens=120, unknown_share=0.0, pieces_per_word=1.3)


GOOD = {
    "answers": answers,
    "corpus": corpus,
    "corpus_zh": corpus,
    "dataset": dataset,
    "drift_corpus": corpus,
    "drift_dataset": dataset,
    "targets": targets,
    "tokens": tokens,
    "tokens_words": tokens,
}


def _rare_label(num_rare: int, num_rows: int) -> Edit:
    labels = ["rare"] * num_rare + ["pos", "neg"] * num_rows
    spread = write("label", labels[:num_rows])
    return lambda table: spread(table).assign(split="train")


# Suite → expectation → what it still allows, what it no longer does.
_CORPUS: dict[str, tuple[Edit, Edit]] = {
    "documents_enough": (first(2), first(1)),
    "documents_many": (first(100), first(99)),
    "ids_present": (as_it_is, put("id", None)),
    "ids_unique": (as_it_is, put("id", "d1")),
    "splits_known": (as_it_is, put("split", "test")),
    "train_present": (fill("split", "heldout", NUM_ROWS - 1), fill("split", "heldout")),
    "heldout_present": (fill("split", "train", 1), fill("split", "train")),
    "text_present": (put("num_chars", 1), put("num_chars", 0)),
    "text_bounded": (put("num_chars", 5_000_000), put("num_chars", 5_000_001)),
    "text_long_enough": (fill("num_chars", 80), fill("num_chars", 79)),
    "words_bounded": (put("longest_word", 1000), put("longest_word", 1001)),
    "decoding_clean": (put("replacement_share", 0.01), put("replacement_share", 0.0101)),
    "decoding_clean_overall": (
        fill("replacement_share", 0.00049),
        fill("replacement_share", 0.00051),
    ),
    "script_right": (put("script_share", 0.5), put("script_share", 0.499)),
    "script_right_overall": (fill("script_share", 0.901), fill("script_share", 0.899)),
    "duplicates_bounded": (fill("num_duplicates", 9), put("num_duplicates", 9 * NUM_ROWS + 1)),
    # 171 removed beside 400 kept are 29.95 %, 172 are 30.07 %.
    "duplicates_few": (put("num_duplicates", 171), put("num_duplicates", 172)),
    "control_characters_none": (as_it_is, put("control_removed", 1)),
    "special_tokens_none": (as_it_is, put("special_token_strings", 1)),
}
_DATASET: dict[str, tuple[Edit, Edit]] = {
    "rows_enough": (first(2), first(1)),
    "rows_many": (first(100), first(99)),
    "ids_present": (as_it_is, put("id", None)),
    "ids_unique": (as_it_is, put("id", "d1")),
    "splits_known": (as_it_is, put("split", "heldout")),
    "train_present": (fill("split", "dev", NUM_ROWS - 3), fill("split", "dev")),
    "test_present": (fill("split", "train", 3), fill("split", "train")),
    "text_present": (put("num_chars", 1), put("num_chars", 0)),
    "text_bounded": (put("num_chars", 1_000_000), put("num_chars", 1_000_001)),
    "text_pair_present": (put("text_pair_chars", 1), put("text_pair_chars", 0)),
    "decoding_clean": (put("replacement_share", 0.2), put("replacement_share", 0.201)),
    "decoding_clean_overall": (
        fill("replacement_share", 0.00049),
        fill("replacement_share", 0.00051),
    ),
    "script_right_overall": (fill("script_share", 0.701), fill("script_share", 0.699)),
    "label_present": (as_it_is, put("label", None)),
    "label_known": (as_it_is, put("label", "neutral", row=3)),
    "labels_two": (fill("label", "pos", NUM_ROWS - 1), fill("label", "pos")),
    "labels_few": (
        write("label", [f"l{i % 200}" for i in range(NUM_ROWS)]),
        write("label", [f"l{i % 201}" for i in range(NUM_ROWS)]),
    ),
    "label_spelling_one": (put("label", "pos itive"), put("label", "Ｐos ")),
    "labels_balanced": (_rare_label(4, 400), _rare_label(3, 400)),
    "labels_learnable": (_rare_label(1, 5_000), _rare_label(1, 5_001)),
    "labels_repeated": (_rare_label(2, 400), _rare_label(1, 400)),
    "labels_measured": (as_it_is, put("label", "rare")),
    "overlap_none": (as_it_is, put("duplicate_of_train", "d0", row=3)),
    "overlap_seen": (as_it_is, put("duplicate_of_train", "d0", row=3)),
    "contradictions_bounded": (
        fill("contradictory", True, 200),
        fill("contradictory", True, 201),
    ),
    "contradictions_none": (as_it_is, put("contradictory", True)),
    "texts_varied": (
        write("digest", [f"{i % 200}" for i in range(NUM_ROWS)]),
        write("digest", [f"{i % 199}" for i in range(NUM_ROWS)]),
    ),
    "special_tokens_none": (as_it_is, put("special_token_strings", 1)),
}
FIXTURES: dict[str, dict[str, tuple[Edit, Edit]]] = {
    "corpus": _CORPUS,
    "corpus_zh": _CORPUS
    | {
        "text_long_enough": (fill("num_chars", 20), fill("num_chars", 19)),
        "script_right": (put("script_share", 0.3), put("script_share", 0.299)),
        "script_right_overall": (fill("script_share", 0.701), fill("script_share", 0.699)),
    },
    "dataset": _DATASET,
    "answers": {name: edits for name, edits in _DATASET.items() if not name.startswith("label")}
    | {"answers_some": (fill("num_answers", 0, 380), fill("num_answers", 0, 381))},
    # Against the good data: 500 characters each, 99 % in the script, half of the rows a label.
    "drift_corpus": {
        "lengths_near": (fill("num_chars", 650), fill("num_chars", 651)),
        "lengths_like": (fill("num_chars", 600, 120), fill("num_chars", 600, 128)),
        "scripts_near": (fill("script_share", 0.941), fill("script_share", 0.939)),
    },
    "drift_dataset": {
        "label_shares_near": (fill("label", "pos", 120), fill("label", "pos", 136)),
        "label_shares_like": (fill("label", "pos", 360), put("label", "new")),
        "lengths_near": (fill("num_chars", 650), fill("num_chars", 651)),
    },
    "targets": {
        "target_present": (put("target_words", 1), put("target_words", 0)),
        "target_bounded": (put("target_chars", 100_000), put("target_chars", 100_001)),
        "target_length_fits": (put("length_ratio", 20.0), put("length_ratio", 20.1)),
        "target_script_right": (put("target_script_share", 0.3), put("target_script_share", 0.299)),
        "target_script_right_overall": (
            fill("target_script_share", 0.701),
            fill("target_script_share", 0.699),
        ),
        "target_language_right": (
            put("target_language_margin", -0.3),
            put("target_language_margin", -0.31),
        ),
        "copies_few_overall": (fill("copy_rate", 0.499), fill("copy_rate", 0.501)),
        "copies_none": (put("copy_rate", 0.99), put("copy_rate", 1.0)),
    },
    "tokens": {
        "documents_enough": (first(1), first(0)),
        "ids_unique": (as_it_is, put("id", "d1")),
        "tokens_present": (put("num_tokens", 1), put("num_tokens", 0)),
        "unknown_bounded": (put("unknown_share", 0.2), put("unknown_share", 0.201)),
        "unknown_few_overall": (fill("unknown_share", 0.0499), fill("unknown_share", 0.0501)),
        "unknown_rare_overall": (fill("unknown_share", 0.0099), fill("unknown_share", 0.0101)),
        "pieces_few_overall": (fill("pieces_per_word", 2.49), fill("pieces_per_word", 2.51)),
    },
    "tokens_words": {
        "documents_enough": (first(1), first(0)),
        "ids_unique": (as_it_is, put("id", "d1")),
        "tokens_present": (put("num_tokens", 1), put("num_tokens", 0)),
        "unknown_bounded": (put("unknown_share", 0.5), put("unknown_share", 0.501)),
        "unknown_few_overall": (fill("unknown_share", 0.199), fill("unknown_share", 0.201)),
        "unknown_rare_overall": (fill("unknown_share", 0.099), fill("unknown_share", 0.101)),
    },
}
EVERY_EXPECTATION = [
    (name, expectation.id)
    for name in suite_names()
    for expectation in load_suite(name).expectations
]


def status(name: str, expectation_id: str, edit: Edit) -> str:
    suite = load_suite(name)
    alone = tuple(item for item in suite.expectations if item.id == expectation_id)
    report = check(
        edit(GOOD[name]()),
        replace(suite, expectations=alone),
        subject=name,
        parameters=PARAMETERS.get(name),
        reference=GOOD[name](),
    )
    return report.results[0].status


@pytest.mark.parametrize("name", suite_names())
def test_every_expectation_has_a_fixture_and_every_fixture_an_expectation(name):
    assert [item.id for item in load_suite(name).expectations] == list(FIXTURES[name])


@pytest.mark.parametrize(("name", "expectation_id"), EVERY_EXPECTATION)
def test_an_expectation_passes_at_its_bound(name, expectation_id):
    assert status(name, expectation_id, FIXTURES[name][expectation_id][0]) == "passed"


@pytest.mark.parametrize(("name", "expectation_id"), EVERY_EXPECTATION)
def test_an_expectation_fails_beyond_its_bound(name, expectation_id):
    assert status(name, expectation_id, FIXTURES[name][expectation_id][1]) == "failed"


@pytest.mark.parametrize("name", suite_names())
def test_good_data_are_green(name):
    report = check(
        GOOD[name](),
        load_suite(name),
        subject=name,
        parameters=PARAMETERS.get(name),
        reference=GOOD[name](),
    )
    assert [result.id for result in report.results if result.status != "passed"] == []
    assert (report.verdict, report.reason) == ("green", "Every promise is kept.")


@pytest.mark.parametrize("name", suite_names())
def test_deleting_any_line_of_a_suite_is_noticed_or_takes_no_promise_away(name, tmp_path):
    """What may be left out is worded by the promise itself, or becomes stricter."""
    whole = load_suite(name)
    lines = (BUILT_IN / f"{name}.json").read_text().splitlines()
    path = tmp_path / f"{name}.json"
    for number in range(len(lines)):
        path.write_text("\n".join(lines[:number] + lines[number + 1 :]))
        try:
            left = read_suite(path)
        except RecipeError:
            continue
        assert left.tolerance in (whole.tolerance, 0.0)
        for before, after in zip(whole.expectations, left.expectations, strict=True):
            assert (after.type, after.kwargs) == (before.type, before.kwargs)
            assert after.severity in (before.severity, "critical")


@pytest.mark.parametrize("name", suite_names())
def test_every_expectation_says_what_to_do(name):
    raw = json.loads((BUILT_IN / f"{name}.json").read_text())
    for item in raw["expectations"]:
        assert item["says"].endswith("."), item["id"]
        assert item["remedy"].endswith("."), item["id"]


def test_repeats_that_the_recipe_allows_are_a_warning():
    table = put("duplicate_of_train", "d0", row=3)(dataset())
    report = check(
        table,
        load_suite("dataset"),
        subject="mine",
        parameters={"labels": ["neg", "pos"], "overlap_free": 0.0},
    )
    assert report.verdict == "amber"
    assert [item.id for item in report.results if item.status == "failed"] == ["overlap_seen"]


def test_a_preparation_writes_every_column_that_the_suites_read():
    from corpora.datasets import dataset_profile
    from corpora.preparation import CORPUS_PROFILE, MEASURES

    written = {
        "corpus": set(CORPUS_PROFILE.names),
        "corpus_zh": set(CORPUS_PROFILE.names),
        "dataset": set(dataset_profile(MEASURES).names),
        "answers": set(dataset_profile(MEASURES).names),
        "drift_corpus": set(CORPUS_PROFILE.names),
        "drift_dataset": set(dataset_profile(MEASURES).names),
        "targets": set(dataset_profile(MEASURES, "text").names),
    }
    for name, columns in written.items():
        computed = {column for column, of in DERIVED.items() if columns >= set(of)}
        assert set(load_suite(name).columns) <= columns | computed


def test_only_these_promises_may_be_broken_without_stopping_or_quarantine():
    gentle = {
        name: {item.id for item in load_suite(name).expectations if item.severity != "critical"}
        for name in GOOD
    }
    of_a_corpus = {
        "documents_many",
        "heldout_present",
        "text_long_enough",
        "decoding_clean_overall",
        "script_right_overall",
        "duplicates_few",
        "control_characters_none",
        "special_tokens_none",
    }
    of_rows = {
        "rows_many",
        "test_present",
        "decoding_clean_overall",
        "script_right_overall",
        "overlap_seen",
        "contradictions_none",
        "texts_varied",
        "special_tokens_none",
    }
    assert gentle == {
        "corpus": of_a_corpus,
        "corpus_zh": of_a_corpus,
        "dataset": {"labels_balanced", "labels_measured", "labels_repeated"} | of_rows,
        "answers": {"answers_some"} | of_rows,
        "drift_corpus": {"lengths_near", "scripts_near"},
        "drift_dataset": {"label_shares_near", "lengths_near"},
        "targets": {"target_script_right_overall", "copies_few_overall", "copies_none"},
        "tokens": {"unknown_bounded", "unknown_rare_overall", "pieces_few_overall"},
        "tokens_words": {"unknown_bounded", "unknown_rare_overall"},
    }


def test_built_in_suites_are_files_of_the_package():
    assert Path(BUILT_IN).name == "suites"
    assert set(suite_names()) >= {"corpus", "corpus_zh", "dataset", "tokens"}
