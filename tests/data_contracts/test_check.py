"""Loading suites strictly, and what a check finds, sets aside and refuses to guess."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from data_contracts.check import (
    Expectation,
    Report,
    Suite,
    check,
    load_suite,
    raise_if_red,
    suite_digest,
    suite_names,
)
from data_contracts.derived import fold, with_derived
from data_contracts.patterns import why_unusable
from data_contracts.suite import read_suite
from data_contracts.verdict import percent
from data_contracts.vocabulary import FORMS, expected_text
from fourstage.errors import ContractViolation, RecipeError, UnknownNameError

SHORT = {
    "id": "short",
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "num_chars", "max_value": 100},
    "severity": "critical",
    "level": "row",
    "says": "No text is longer than 100 characters.",
}


DRIFT = {"type": "expect_column_quantile_values_to_be_between", "level": "table"}


def quantiles(**of_reference) -> dict:
    return {"column": "n", "quantile_ranges": {"$REFERENCE": of_reference}}


def expectation(id_: str, type_: str, severity: str = "critical", level: str = "row", **kwargs):
    return Expectation(id_, f"expect_{type_}", kwargs, severity, level, f"{id_} holds.", "Mend it.")


def suite(*expectations: Expectation, tolerance: float = 0.1) -> Suite:
    return Suite("mine", "A test's.", tolerance, expectations)


def of(column: str) -> dict:
    return {"column": column, "level": "table"}


def between(id_: str, column: str, severity: str = "critical", level: str = "row", **bounds):
    return expectation(id_, "column_values_to_be_between", severity, level, column=column, **bounds)


def profile(**columns) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"d{i}" for i in range(10)], "n": range(10), **columns})


def write(folder: Path, **changes) -> Path:
    """A suite file with some keys of the suite (or, with `one=`, of its expectation) changed."""
    one = SHORT | changes.pop("one", {})
    raw = {"name": "mine", "description": "d", "tolerance": 0.1, "expectations": [one]} | changes
    path = folder / "mine.json"
    path.write_text(json.dumps({k: v for k, v in raw.items() if v is not None}))
    return path


class TestLoading:
    def test_a_project_folder_comes_before_the_built_in_suites(self, tmp_path):
        (tmp_path / "suites").mkdir()
        own = write(tmp_path / "suites", name="corpus").rename(tmp_path / "suites" / "corpus.json")
        assert load_suite("corpus", [tmp_path]) == read_suite(own)
        assert load_suite("dataset", [tmp_path]) == load_suite("dataset")
        assert load_suite("corpus", [tmp_path]) != load_suite("corpus")

    def test_an_unknown_name_gets_the_nearest(self):
        with pytest.raises(UnknownNameError, match=r"'corpsu' is not a suite.*'corpus'"):
            load_suite("corpsu")

    def test_a_name_cannot_leave_the_folder(self, tmp_path):
        (tmp_path / "suites").mkdir()
        write(tmp_path)
        with pytest.raises(UnknownNameError):
            load_suite("../mine", [tmp_path])

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"one": {"type": "expect_column_values_to_be_betwen"}}, r"'short'.*did you mean"),
            ({"one": {"kwargs": {"column": "n", "max_vaule": 1}}}, r"'short'.*mean 'max_value'"),
            ({"one": {"kwargs": {"column": "n", "max_value": "1"}}}, r"max_value must be a number"),
            ({"one": {"kwargs": {"column": "n", "max_value": True}}}, r"must be a number"),
            ({"one": {"kwargs": {"max_value": 1}}}, r"needs the argument 'column'"),
            ({"one": {"kwargs": {"column": "n"}}}, r"'short': no bound"),
            ({"one": {"kwargs": {"column": "n", "min_value": 2, "max_value": 1}}}, r"is above"),
            (
                {"one": {"kwargs": {"column": {"$PARAMETER": "c"}, "max_value": 1}}},
                r"column must be",
            ),
            ({"one": {"severity": "fatal"}}, r"'fatal' is not a severity"),
            ({"one": {"severity": "Critical"}}, r"mean 'critical'"),
            ({"one": {"level": "rows"}}, r"mean 'row'"),
            (
                {"one": {"levle": "row"}},
                r"'short': 'levle' is not a key here; did you mean 'level'",
            ),
            ({"one": {"says": ""}}, r"'says' must be a text"),
            ({"one": {"severity": "warning"}}, r"no expectation is critical"),
            ({"expectations": [SHORT, SHORT]}, r"two expectations have the id 'short'"),
            ({"expectations": []}, r"at least one"),
            ({"expectations": ["short"]}, r"expectations\[0\]: expected an object"),
            ({"tolerance": 1.5}, r"'tolerance'.*0-1, got 1.5"),
            (
                {"one": {"kwargs": {"column": "n", "max_value": 1, "row_condition": {}}}},
                r"'short': row_condition: a condition on rows is not supported",
            ),
            ({"one": {"type": "expect_our_own"}}, r"one's own and those that run a query"),
            ({"suite_parameters": {"a": 1}}, r"'suite_parameters' are not taken from a file"),
            (
                {"one": DRIFT | {"kwargs": {"column": "n", "quantile_ranges": {"$REFERENCE": {}}}}},
                r"'short': quantile_ranges: \$REFERENCE: the key 'quantiles' is missing",
            ),
            (
                {"one": DRIFT | {"kwargs": quantiles(quantiles=[0.5, 0.1], within=0.1)}},
                r"expected 'quantiles' in ascending order",
            ),
            (
                {"one": DRIFT | {"kwargs": quantiles(quantiles=[0.5])}},
                r"'within', 'margin' or both",
            ),
            (
                {"one": DRIFT | {"kwargs": quantiles(quantiles=[0.5], wihtin=1)}},
                r"'wihtin' is not a key here; did you mean 'within'",
            ),
            (
                {"one": DRIFT | {"kwargs": {"column": "n", "quantile_ranges": {"quantiles": [2]}}}},
                r"quantile_ranges must be \{\"quantiles\"",
            ),
            ({"tolerence": 0.1}, r"did you mean 'tolerance'"),
            ({"name": "yours"}, r"'name' is 'yours', expected the file's: 'mine'"),
            (
                {"one": {"kwargs": {"column": "n", "max_value": 1, "mostly": 0.9}}},
                r"'mostly' is a promise about the table",
            ),
            (
                {
                    "one": {
                        "type": "expect_column_mean_to_be_between",
                        "kwargs": {"column": "n", "max_value": 1},
                    }
                },
                r'judges the table as a whole; expected "level": "table"',
            ),
            (
                {
                    "one": {
                        "type": "expect_column_values_to_be_in_set",
                        "kwargs": {"column": "n", "value_set": []},
                    }
                },
                r"value_set must be a list of at least one",
            ),
        ],
    )
    def test_a_mistake_is_refused_with_its_place(self, tmp_path, changes, message):
        with pytest.raises(RecipeError, match=message) as caught:
            read_suite(write(tmp_path, **changes))
        assert str(caught.value).startswith("suites/mine.json")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"name": "mine", "name": "mine"}', "'name' occurs twice"),
            ('{"tolerance": NaN}', "NaN is not JSON"),
            ('{"name": "mine",}', "line 1, column"),
            ("[]", "expected a JSON object"),
        ],
    )
    def test_json_that_is_not_strict_is_refused(self, tmp_path, text, message):
        path = tmp_path / "mine.json"
        path.write_text(text)
        with pytest.raises(RecipeError, match=message):
            read_suite(path)

    def test_a_file_that_is_not_utf8_is_refused(self, tmp_path):
        path = tmp_path / "mine.json"
        path.write_bytes(b'{"name": "\xff"}')
        with pytest.raises(RecipeError, match="not UTF-8 at byte 10"):
            read_suite(path)

    def test_the_digest_changes_with_the_promise_and_not_with_its_wording(self, tmp_path):
        digest = suite_digest(read_suite(write(tmp_path)))
        assert suite_digest(read_suite(write(tmp_path, one={"says": "Short."}))) == digest
        assert suite_digest(read_suite(write(tmp_path, description="e"))) == digest
        assert suite_digest(read_suite(write(tmp_path, tolerance=0.2))) != digest
        kwargs = {"column": "num_chars", "max_value": 101}
        assert suite_digest(read_suite(write(tmp_path, one={"kwargs": kwargs}))) != digest
        plain, warns, counts = (
            suite_digest(read_suite(write(tmp_path, expectations=[other, SHORT | change])))
            for other in [SHORT | {"id": "other"}]
            for change in ({}, {"severity": "warning"}, {"level": "table"})
        )
        assert len({plain, warns, counts}) == 3

    def test_loading_needs_neither_great_expectations_nor_pandas(self):
        code = (
            "import sys; from data_contracts.check import load_suite, suite_names, suite_digest;"
            "[suite_digest(load_suite(name)) for name in suite_names()];"
            "print([m for m in ('great_expectations', 'pandas', 'numpy') if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "[]\n"


class TestVocabulary:
    # Arguments of the library that decide nothing here, or that evaluate a string of the suite.
    NOT_OURS = frozenset(
        "id meta notes result_format description catch_exceptions rendered_content severity"
        " windows batch_id row_condition condition_parser library_metadata ignore_row_if"
        " column_index".split()
    )
    # How other back ends than ours compute them.
    NOT_OURS_OF: ClassVar = {
        "expect_column_quantile_values_to_be_between": {"allow_relative_error"},
        "expect_column_kl_divergence_to_be_less_than": {"bucketize_data", "min_value", "max_value"},
    }

    @pytest.mark.parametrize("name", FORMS)
    def test_it_agrees_with_the_installed_library(self, name):
        from great_expectations import expectations as library
        from great_expectations.expectations.expectation import (
            ColumnMapExpectation,
            ColumnPairMapExpectation,
            MulticolumnMapExpectation,
        )

        form = FORMS[name]
        theirs = getattr(library, form.class_name)
        assert theirs.expectation_type == name
        ours = set(form.needs) | set(form.may)
        assert ours == set(theirs.__fields__) - self.NOT_OURS - self.NOT_OURS_OF.get(name, set())
        by_row = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
        assert form.by_row == issubclass(theirs, by_row)

    # Type → arguments that hold for the table below, arguments that fail on it.
    EXAMPLES: ClassVar = {
        "column_values_to_be_between": [
            {"column": "n", "min_value": 1},
            {"column": "n", "min_value": 2},
        ],
        "column_value_lengths_to_be_between": [
            {"column": "id", "min_value": 1},
            {"column": "id", "min_value": 2},
        ],
        "column_values_to_be_in_set": [
            {"column": "flag", "value_set": [True, False]},
            {"column": "flag", "value_set": [False]},
        ],
        "column_values_to_not_be_in_set": [
            {"column": "label", "value_set": ["z"]},
            {"column": "label", "value_set": ["y"]},
        ],
        "column_values_to_not_be_null": [{"column": "n"}, {"column": "label"}],
        "column_values_to_be_null": [{"column": "nothing"}, {"column": "label"}],
        "column_values_to_be_unique": [{"column": "n"}, {"column": "m"}],
        "compound_columns_to_be_unique": [
            {"column_list": ["n", "flag"]},
            {"column_list": ["m", "split"]},
        ],
        "column_values_to_match_regex": [
            {"column": "id", "regex": "^[a-d]$"},
            {"column": "id", "regex": "^[a-c]$"},
        ],
        "column_values_to_not_match_regex": [
            {"column": "id", "regex": "z"},
            {"column": "id", "regex": "a"},
        ],
        "column_pair_values_to_be_equal": [
            {"column_A": "n", "column_B": "n"},
            {"column_A": "n", "column_B": "m"},
        ],
        "column_pair_values_a_to_be_greater_than_b": [
            {"column_A": "m", "column_B": "n", "or_equal": True},
            {"column_A": "m", "column_B": "n"},
        ],
        "table_row_count_to_be_between": [{"max_value": 4}, {"min_value": 5}],
        "column_to_exist": [{"column": "n"}, {"column": "z"}],
        "column_min_to_be_between": [
            {"column": "n", "min_value": 1},
            {"column": "n", "min_value": 2},
        ],
        "column_max_to_be_between": [
            {"column": "n", "max_value": 4},
            {"column": "n", "max_value": 3},
        ],
        "column_mean_to_be_between": [
            {"column": "flag", "max_value": 0.25},
            {"column": "flag", "max_value": 0.2},
        ],
        "column_median_to_be_between": [
            {"column": "n", "max_value": 2.5},
            {"column": "n", "max_value": 2},
        ],
        "column_sum_to_be_between": [
            {"column": "n", "max_value": 10},
            {"column": "n", "max_value": 9},
        ],
        "column_stdev_to_be_between": [
            {"column": "n", "max_value": 1.3},
            {"column": "n", "max_value": 1.2},
        ],
        "column_unique_value_count_to_be_between": [
            {"column": "label", "min_value": 2},
            {"column": "label", "min_value": 3},
        ],
        "column_proportion_of_unique_values_to_be_between": [
            {"column": "m", "min_value": 0.75},
            {"column": "m", "min_value": 0.76},
        ],
        "column_proportion_of_non_null_values_to_be_between": [
            {"column": "label", "min_value": 0.75},
            {"column": "label", "min_value": 0.76},
        ],
        "column_distinct_values_to_be_in_set": [
            {"column": "label", "value_set": ["x", "y", "z"]},
            {"column": "label", "value_set": ["x"]},
        ],
        "column_distinct_values_to_contain_set": [
            {"column": "label", "value_set": ["x"]},
            {"column": "label", "value_set": ["x", "z"]},
        ],
        "column_distinct_values_to_equal_set": [
            {"column": "label", "value_set": ["x", "y"]},
            {"column": "label", "value_set": ["x"]},
        ],
        "column_quantile_values_to_be_between": [
            {
                "column": "n",
                "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[2, None]]},
            },
            {"column": "n", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[4, 5]]}},
        ],
        "column_kl_divergence_to_be_less_than": [
            {
                "column": "split",
                "partition_object": {"values": ["dev", "train"], "weights": [0.5, 0.5]},
                "threshold": 0.01,
            },
            {
                "column": "split",
                "partition_object": {"values": ["train"], "weights": [1]},
                "threshold": 0.01,
            },
        ],
        "column_most_common_value_to_be_in_set": [
            {"column": "label", "value_set": ["x"]},
            {"column": "label", "value_set": ["y"]},
        ],
    }

    def test_every_type_holds_and_fails_where_it_should(self):
        assert {f"expect_{name}" for name in self.EXAMPLES} == set(FORMS)
        table = pd.DataFrame(
            {
                "id": list("abcd"),
                "n": [1, 2, 3, 4],
                "m": [2, 2, 3, 9],
                "flag": [True, False, False, False],
                "label": ["x", "y", "x", None],
                "split": ["train", "train", "dev", "dev"],
                "nothing": [None] * 4,
            }
        )
        report = check(
            table,
            suite(
                *(
                    expectation(f"{name}:{place}", name, "warning", "table", **kwargs)
                    for name, pair in self.EXAMPLES.items()
                    for place, kwargs in zip(("holds", "fails"), pair, strict=True)
                )
            ),
            subject="s",
        )
        want = {"holds": "passed", "fails": "failed"}
        for result in report.results:
            assert result.status == want[result.id.split(":")[1]], (result.id, result.observed)

    def test_a_promise_reads_as_a_phrase(self):
        assert (
            expected_text(
                "expect_column_values_to_be_between",
                {"column": "n", "min_value": 1, "max_value": 5_000_000},
            )
            == "n ≥ 1 and ≤ 5,000,000"
        )
        assert (
            expected_text("expect_column_values_to_be_null", {"column": "n", "mostly": 0.7})
            == "n absent, in at least 70 % of the rows"
        )


class TestChecking:
    def test_rows_that_break_a_critical_promise_are_quarantined(self):
        report = check(profile(), suite(between("small", "n", max_value=8)), subject="texts")
        assert report.quarantined == {"d9": ("small",)}
        assert (report.verdict, report.num_quarantined_rows, report.rows) == ("green", 1, 10)
        (result,) = report.results
        assert (result.status, result.failed_count, result.failed_ids) == ("failed", 1, ("d9",))
        assert result.expected == "n ≤ 8"
        assert result.observed == "1 of 10 rows (10 %) break it: 9"
        raise_if_red(report)

    def test_a_row_is_quarantined_with_every_reason(self):
        report = check(
            profile(),
            suite(between("small", "n", max_value=8), between("smaller", "n", max_value=7)),
            subject="texts",
        )
        assert report.quarantined == {"d8": ("smaller",), "d9": ("small", "smaller")}
        assert report.quarantine_reasons == {"smaller": 2, "small": 1}

    def test_more_quarantined_than_tolerated_is_red(self):
        report = check(profile(), suite(between("small", "n", max_value=7)), subject="texts")
        assert report.verdict == "red"
        assert report.reason == ("2 of 10 rows (20 %) are quarantined where at most 10 % may be.")
        assert [result.id for result in report.broken] == ["small"]

    def test_as_many_quarantined_as_tolerated_are_not_too_many(self):
        table = pd.DataFrame({"id": [f"d{i}" for i in range(100)], "n": range(100)})
        for most, verdict in ((70, "green"), (69, "red")):
            small = suite(between("small", "n", max_value=most), tolerance=0.29)
            assert check(table, small, subject="s").verdict == verdict

    def test_promises_about_the_table_are_checked_on_the_rows_left(self):
        mean = expectation(
            "mean", "column_mean_to_be_between", level="table", column="n", max_value=4
        )
        assert check(profile(), suite(mean), subject="s").verdict == "red"
        both = suite(mean, between("small", "n", max_value=8))
        report = check(profile(), both, subject="s")
        assert report.verdict == "green"
        assert [(result.id, result.observed) for result in report.results] == [
            ("mean", "4"),
            ("small", "1 of 10 rows (10 %) break it: 9"),
        ]

    def test_a_broken_critical_promise_about_the_table_is_red_and_quarantines_nothing(self):
        report = check(
            profile(),
            suite(between("small", "n", level="table", max_value=8), tolerance=1.0),
            subject="s",
        )
        assert (report.verdict, report.quarantined) == ("red", {})
        assert report.reason == "Broken for the table as a whole: small."
        assert report.results[0].failed_ids == ("d9",)

    def test_a_promise_about_whole_numbers_has_a_value_to_follow(self):
        most = expectation(
            "most", "column_max_to_be_between", level="table", column="n", max_value=9
        )
        assert check(profile(), suite(most), subject="s").results[0].value == 9.0

    def test_mostly_allows_a_share_of_the_rows(self):
        mostly = between("small", "n", level="table", max_value=8, mostly=0.9)
        report = check(profile(), suite(mostly), subject="s")
        assert (report.verdict, report.results[0].failed_count) == ("green", 1)

    def test_a_broken_warning_is_amber_and_a_broken_note_green(self):
        warning = between("small", "n", "warning", max_value=8)
        note = between("small", "n", "info", max_value=8)
        keep = between("any", "n", max_value=9)
        amber = check(profile(), suite(warning, keep), subject="s")
        assert (amber.verdict, amber.reason) == ("amber", "Usable, with warnings: small.")
        assert amber.quarantined == {}
        green = check(profile(), suite(note, keep), subject="s")
        assert (green.verdict, green.results[0].status) == ("green", "failed")

    @pytest.mark.parametrize("severity", ["critical", "warning", "info"])
    def test_a_missing_column_is_not_evaluated_and_red(self, severity):
        report = check(
            profile(),
            suite(between("gone", "m", severity, max_value=1), between("any", "n", max_value=9)),
            subject="s",
        )
        assert report.verdict == "red"
        assert report.results[0].status == "not_evaluated"
        assert report.results[0].observed == "the profile has no column 'm'"
        assert report.reason == "Could not be evaluated: gone."

    def test_a_column_without_any_value_is_not_evaluated(self):
        report = check(profile(m=None), suite(between("empty", "m", max_value=1)), subject="s")
        assert report.results[0].status == "not_evaluated"

    def test_a_column_of_the_wrong_type_is_not_evaluated_and_its_text_not_shown(self):
        report = check(
            profile(m="zqxcanary"),
            suite(
                between("rows", "m", max_value=1),
                expectation(
                    "mean", "column_mean_to_be_between", level="table", column="m", max_value=1
                ),
            ),
            subject="s",
        )
        assert [result.status for result in report.results] == ["not_evaluated"] * 2
        assert "zqxcanary" not in json.dumps(report.to_json())

    def test_a_regex_that_is_none_or_takes_too_long_is_not_evaluated(self):
        kind = "column_values_to_match_regex"
        broken = suite(expectation("open", kind, column="m", regex="(重"))
        report = check(profile(m="重要"), broken, subject="s")
        assert (report.verdict, report.results[0].status) == ("red", "not_evaluated")
        assert report.results[0].observed.startswith("its regex can't be used (")
        for_ever = ["重要" + "a" * 60 + "!"]  # twice as long for each further letter
        assert "takes more than 1 s" in why_unusable(r"^(\w+\s?)+$", for_ever, seconds=1)
        assert why_unusable(r"^[\w\s]+$", for_ever, seconds=60) == ""

    def test_a_missing_value_keeps_every_promise_but_being_there(self):
        m = [1.0] * 9 + [None]
        report = check(
            profile(m=m),
            suite(
                between("bound", "m", max_value=1),
                expectation("there", "column_values_to_not_be_null", column="m"),
            ),
            subject="s",
        )
        assert [result.status for result in report.results] == ["passed", "failed"]

    def test_no_row_at_all_keeps_no_promise(self):
        report = check(profile().iloc[:0], suite(between("any", "n", max_value=9)), subject="s")
        assert report.verdict == "red"
        assert report.results[0].observed == "there is no row to look at"

    def test_rows_may_come_with_any_index(self):
        shuffled = profile().sample(frac=1, random_state=3)
        report = check(shuffled, suite(between("small", "n", max_value=8)), subject="s")
        assert report.quarantined == {"d9": ("small",)}

    def test_rows_without_an_id_are_called_by_their_number(self):
        report = check(
            profile().drop(columns="id"), suite(between("small", "n", max_value=8)), subject="s"
        )
        assert report.quarantined == {"row 10": ("small",)}

    def test_rows_that_share_a_quarantined_id_go_together(self):
        table = profile().assign(id=["twin" if n in (3, 9) else f"d{n}" for n in range(10)])
        counts = expectation(
            "count", "table_row_count_to_be_between", level="table", min_value=8, max_value=8
        )
        report = check(table, suite(between("small", "n", max_value=8), counts), subject="s")
        assert report.results[1].status == "passed"
        assert (report.quarantined, report.num_quarantined_rows) == ({"twin": ("small",)}, 2)

    def test_rows_that_share_an_id_are_quarantined_with_the_reasons_of_both(self):
        table = profile().assign(id=["twin" if n in (0, 9) else f"d{n}" for n in range(10)])
        promises = suite(between("small", "n", max_value=8), between("some", "n", min_value=1))
        assert check(table, promises, subject="s").quarantined == {"twin": ("some", "small")}

    def test_the_profile_is_left_as_it_was(self):
        table = profile(label="a", split="train")
        before = table.copy(deep=True)
        check(
            table,
            suite(between("share", "label_share", min_value=0.5)),
            subject="s",
        )
        pd.testing.assert_frame_equal(table, before)

    def test_only_the_first_ids_are_shown_and_all_are_quarantined(self):
        table = pd.DataFrame({"id": [f"d{i}" for i in range(100)], "n": 1})
        report = check(table, suite(between("none", "n", max_value=0)), subject="s")
        (result,) = report.results
        assert (result.failed_count, len(result.failed_ids)) == (100, 20)
        assert len(report.quarantined) == 100

    def test_few_short_values_outside_a_set_are_shown_and_texts_are_not(self):
        def outside(values):
            table = pd.DataFrame({"id": range(len(values)), "label": values})
            known = expectation(
                "known", "column_values_to_be_in_set", column="label", value_set=["a"]
            )
            return check(table, suite(known), subject="s").results[0].observed

        assert outside(["a", "b", "b", "c"]) == ("3 of 4 rows (75 %) break it: 'b' × 2, 'c' × 1")
        assert "zqxcanary" not in outside(["a", "zqxcanary was the first word of a long text here"])
        assert "zqxcanary" not in outside(["a", *(f"zqxcanary {i}" for i in range(20))])

    def test_it_is_quiet_and_leaves_nothing_behind(self, capfd, caplog, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        caplog.set_level(logging.INFO)
        check(profile(), suite(between("gone", "m", max_value=1)), subject="s")
        check(profile(), suite(between("small", "n", max_value=7)), subject="s")
        captured = capfd.readouterr()
        assert (captured.out, captured.err, caplog.messages) == ("", "", [])
        assert list(tmp_path.iterdir()) == []

    def test_three_hundred_thousand_rows_take_seconds_at_most(self):
        rng = np.random.default_rng(0)
        num_rows = 300_000
        table = pd.DataFrame(
            {
                "id": [f"d{i}" for i in range(num_rows)],
                "split": rng.choice(["train", "heldout"], num_rows),
                "num_chars": rng.integers(0, 5_000, num_rows),
                "num_words": 1,
                "longest_word": rng.integers(1, 1_010, num_rows),
                "replacement_share": 0.0,
                "script_share": rng.random(num_rows),
                "control_removed": 0,
                "special_token_strings": 0,
                "num_duplicates": 0,
            }
        )
        check(profile(), suite(between("any", "n", max_value=9)), subject="the import")
        start = time.perf_counter()
        report = check(table, load_suite("corpus"), subject="many")
        # About a second on two quiet cores, half of the rows quarantined; the bound only catches
        # a loop in Python over all of them.
        assert time.perf_counter() - start < 15
        assert report.verdict == "red"


class TestParameters:
    KNOWN = Expectation(
        "known",
        "expect_column_values_to_be_in_set",
        {"column": "label", "value_set": {"$PARAMETER": "labels"}},
        "critical",
        "table",
        "Every label is known.",
    )

    def test_a_parameter_is_put_in_and_shown(self):
        table = profile(label="a")
        report = check(table, suite(self.KNOWN), subject="s", parameters={"labels": ("a", "b")})
        assert report.results[0].expected == "label one of 'a', 'b'"
        assert suite(self.KNOWN).parameters == ("labels",)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({}, r"'known': value_set is the parameter 'labels', not given \(given: none\)"),
            ({"label": ["a"]}, r"given: label"),
            ({"labels": []}, r"'labels' for value_set must be a list of at least one"),
            ({"labels": "ab"}, r"must be a list"),
        ],
    )
    def test_a_missing_or_wrong_parameter_is_refused(self, parameters, message):
        with pytest.raises(RecipeError, match=message):
            check(profile(label="a"), suite(self.KNOWN), subject="s", parameters=parameters)

    def test_a_default_stands_in(self):
        kwargs = {"column": "n", "max_value": 8, "mostly": {"$PARAMETER": "share", "default": 0.9}}
        small = expectation("small", "column_values_to_be_between", level="table", **kwargs)
        assert check(profile(), suite(small), subject="s").verdict == "green"
        strict = check(profile(), suite(small), subject="s", parameters={"share": 1.0})
        assert strict.verdict == "red"
        assert suite(small).parameters == ()

    def test_the_lengths_of_a_few_documents_have_no_empty_bin_between_them(self):
        before = pd.DataFrame({"id": list("abcdef"), "n": [100, 150, 400, 900, 2000, 5000]})
        after = pd.DataFrame({"id": list("abcdefg"), "n": [*before["n"], 130]})
        like = expectation(
            "like",
            "column_kl_divergence_to_be_less_than",
            **of("n"),
            partition_object={"$REFERENCE": {"bins": 10}},
            threshold=1.0,
        )
        (result,) = check(after, suite(like), subject="s", reference=before).results
        assert (result.status, result.value) == ("passed", pytest.approx(0.05, abs=0.02))
        far = after.assign(n=4000)
        (result,) = check(far, suite(like), subject="s", reference=before).results
        assert result.status == "failed"


class TestDerivedColumns:
    def test_label_share_is_that_of_the_training_rows(self):
        table = pd.DataFrame(
            {"split": ["train"] * 4 + ["test"] * 2, "label": ["a", "a", "a", "b", "b", "c"]}
        )
        shares = with_derived(table, ("label_share",))["label_share"].tolist()
        assert shares == [0.75, 0.75, 0.75, 0.25, 0.25, 0.0]

    def test_a_label_of_which_quarantine_leaves_no_training_row_breaks_promises_about_it(self):
        table = profile(label=["a", *"bbbbbbb", "a", "b"], split=[*["train"] * 8, "dev", "dev"])
        share, rows, measured = (
            expectation("share", "column_min_to_be_between", **of("label_share"), min_value=0.01),
            expectation("rows", "column_min_to_be_between", **of("label_rows"), min_value=1),
            expectation(
                "measured", "column_max_to_be_between", **of("splits_without_label"), max_value=0
            ),
        )
        promises = suite(between("first", "n", min_value=1), share, rows, measured)
        report = check(table, promises, subject="s")
        assert report.quarantined == {"d0": ("first",)}
        assert [(r.id, r.status, r.value) for r in report.results[1:]] == [
            ("share", "failed", 0.0), ("rows", "failed", 0.0), ("measured", "failed", 1.0)
        ]  # fmt: skip

    def test_labels_that_differ_by_case_blank_or_width_are_spellings_of_one(self):
        table = pd.DataFrame({"label": ["pos", "pos ", "Pos", "ｐｏｓ", "neg", None]})
        spellings = with_derived(table, ("label_spellings",))["label_spellings"].tolist()
        assert spellings[:5] == [4, 4, 4, 4, 1]
        assert fold("Ｎeg  ative ") == "neg ative"

    def test_the_duplicate_share_counts_what_was_removed(self):
        table = pd.DataFrame({"num_duplicates": [3, 0, 0]})
        assert with_derived(table, ("duplicate_share",))["duplicate_share"].tolist() == [0.5] * 3

    def test_a_missing_origin_is_named(self):
        table = profile()
        share = between("share", "label_share", min_value=0.5)
        observed = check(table, suite(share), subject="s").results[0].observed
        assert observed == (
            "the profile has no column 'label_share', which is computed from label and split"
        )


class TestVerdict:
    def test_a_red_report_says_what_broke_and_what_to_do(self):
        report = check(
            profile(split=["train"] * 9 + ["test"]),
            suite(
                between("small", "n", max_value=5),
                between("gone", "m", max_value=1),
                between("warned", "n", "warning", max_value=1),
            ),
            subject="trial_reports",
        )
        with pytest.raises(ContractViolation) as caught:
            raise_if_red(report, "reports/trial_reports.html")
        assert caught.value.exit_code == 3
        message = str(caught.value)
        for part in (
            "trial_reports: the contract 'mine' is broken.",
            "small (critical, broken): small holds.",
            "expected: n ≤ 5",
            "observed: 4 of 10 rows (40 %) break it: 6 to 9; 1 in test, 3 in train",
            "rows: d6, d7, d8, d9",
            "do: Mend it.",
            "gone (critical, could not be evaluated)",
            "The whole report: reports/trial_reports.html",
        ):
            assert part in message
        assert "warned" not in message

    def test_what_all_rows_break_is_not_buried_under_what_was_then_not_looked_at(self):
        rest = [between(f"mean{i}", "n", level="table", max_value=1) for i in range(10)]
        rest = [replace(one, type="expect_column_mean_to_be_between") for one in rest]
        report = check(profile(), suite(between("script", "n", max_value=-1), *rest), subject="s")
        assert report.reason == (
            "10 of 10 rows (100 %) are quarantined where at most 10 % may be; no row is left to "
            "check 10 further promises on."
        )
        with pytest.raises(ContractViolation) as caught:
            raise_if_red(report)
        assert "script (critical, broken)" in str(caught.value)
        assert "mean" not in str(caught.value)
        assert str(caught.value).count("\n") == 6

    def test_labels_of_few_rows_are_named_with_their_number(self):
        table = profile(split=["train"] * 8 + ["test"] * 2, label=["a"] * 7 + ["b", "b", "c"])
        rare = between("rare", "label_rows", "warning", "table", min_value=2)
        rare = replace(rare, type="expect_column_min_to_be_between")
        (result,) = check(table, suite(rare), subject="s").results
        assert result.observed == "0: 'b' × 1 of the training rows, 'c' × 1 of the other rows"
        once = between("measured", "splits_without_label", "warning", "table", max_value=0)
        once = replace(once, type="expect_column_max_to_be_between")
        (result,) = check(table, suite(once), subject="s").results
        assert result.observed == "1: 'a' × 7, 'c' × 1 of the rows"

    def test_ids_cannot_steer_a_terminal(self):
        table = profile().assign(id=[f"\x1b[2J\u202e{i}" for i in range(10)])
        report = check(table, suite(between("small", "n", max_value=5)), subject="s")
        with pytest.raises(ContractViolation) as caught:
            raise_if_red(report)
        assert "\x1b" not in str(caught.value)
        assert "\u202e" not in str(caught.value)
        assert r"\u001b[2J\u202e6" in str(caught.value)

    def test_a_report_survives_json(self):
        table = profile(split=["train"] * 9 + ["test"])
        report = check(
            table,
            suite(between("small", "n", max_value=5), between("gone", "m", max_value=1)),
            subject="s",
        )
        text = json.dumps(report.to_json())
        assert Report.from_json(json.loads(text)) == report
        assert json.dumps(Report.from_json(json.loads(text)).to_json()) == text

    @pytest.mark.parametrize("raw", [None, "", [], {}, {"results": [{"id": 1}]}, {"results": 1}])
    def test_json_that_is_no_report_is_refused(self, raw):
        with pytest.raises(ContractViolation, match="expected the JSON of a report"):
            Report.from_json(raw)

    @pytest.mark.parametrize(
        ("part", "whole", "text"),
        [
            (0, 10, "0 %"),
            (10, 10, "100 %"),
            (1, 1_000_000, "< 0.01 %"),
            (999_999, 1_000_000, "> 99.99 %"),
            (1, 3, "33.3 %"),
            (0, 0, "0 %"),
        ],
    )
    def test_shares_are_never_rounded_to_none_or_all(self, part, whole, text):
        assert percent(part, whole) == text


def test_every_built_in_suite_loads():
    assert {"corpus", "corpus_zh", "dataset", "tokens"} <= set(suite_names())


class TestUnread:
    """Records that never became rows count as quarantined."""

    UNREAD: ClassVar = {f"notes.jsonl:{line}": "not JSON" for line in (3, 5)}

    def found(self, tolerance: float) -> Report:
        promises = suite(between("few", "n", max_value=100), tolerance=tolerance)
        return check(profile(), promises, subject="notes", unread=self.UNREAD)

    def test_they_are_rows_that_were_set_aside(self):
        report = self.found(tolerance=0.2)
        assert report.verdict == "green"
        assert (report.rows, report.num_quarantined_rows) == (12, 2)
        assert report.quarantine_reasons == {"not JSON": 2}

    def test_too_many_stop_and_are_named(self):
        report = self.found(tolerance=0.1)
        assert report.verdict == "red"
        with pytest.raises(ContractViolation) as stopped:
            raise_if_red(report)
        said = str(stopped.value)
        assert "2 of 12 rows (16.7 %) are quarantined where at most 10 % may be" in said
        assert "not JSON: notes.jsonl:3, notes.jsonl:5" in said
        assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report
