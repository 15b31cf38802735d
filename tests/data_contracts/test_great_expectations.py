"""Suites as Great Expectations writes them, and promises about what has changed since a run."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from data_contracts.check import check, load_suite, raise_if_red, suite_digest
from data_contracts.drift import farthest_quantile
from data_contracts.references import QuantilesOfReference
from data_contracts.suite import joined, read_suite
from fourstage.errors import ContractViolation, RecipeError
from fourstage.settings import REPOSITORY

EXAMPLE = REPOSITORY / "docs" / "examples" / "suites" / "tickets.json"


def exported(path: Path) -> Path:
    """A suite that the library itself wrote, with ids, notes and a version."""
    import great_expectations as gx

    library = gx.expectations
    context = gx.get_context(mode="ephemeral")
    suite = gx.ExpectationSuite(
        name=path.stem,
        expectations=[
            library.ExpectColumnValuesToBeBetween(column="num_chars", min_value=2, max_value=9),
            library.ExpectColumnValuesToBeBetween(
                column="num_chars", min_value=1, mostly=0.9, severity="warning"
            ),
            library.ExpectColumnMeanToBeBetween(column="num_chars", max_value=5, notes="Short."),
        ],
        meta={"owner": "the team"},
    )
    path.write_text(json.dumps(context.suites.add(suite).to_json_dict()), "utf-8")
    return path


def test_a_suite_that_the_library_wrote_is_one_of_ours(tmp_path: Path):
    suite = read_suite(exported(tmp_path / "team.json"))
    assert suite.tolerance == 0.0
    assert [(one.id, one.severity, one.level) for one in suite.expectations] == [
        ("num_chars_values_to_be_between", "critical", "row"),
        ("num_chars_values_to_be_between_2", "warning", "table"),
        ("num_chars_mean_to_be_between", "critical", "table"),
    ]
    report = check(pd.DataFrame({"num_chars": [3, 4, 12, 5]}), suite, subject="tickets")
    assert report.verdict == "red"
    assert report.quarantined == {"row 3": ("num_chars_values_to_be_between",)}
    assert report.results[0].says == "num_chars ≥ 2 and ≤ 9."
    assert [result.value for result in report.results] == [0.25, 0.0, 4.0]


def test_a_new_export_is_the_same_contract(tmp_path: Path):
    digests = {suite_digest(read_suite(exported(tmp_path / "team.json"))) for _ in range(2)}
    assert len(digests) == 1


def test_the_example_is_read_by_both_and_stands_on_the_page():
    import great_expectations as gx

    suite = read_suite(EXAMPLE)
    assert [one.level for one in suite.expectations] == ["row", "table"]
    theirs = gx.ExpectationSuite(**json.loads(EXAMPLE.read_text("utf-8")))
    assert [type(one).expectation_type for one in theirs.expectations] == [
        one.type for one in suite.expectations
    ]
    shown = "".join(EXAMPLE.read_text("utf-8").splitlines(keepends=True)[:10])
    assert shown in (REPOSITORY / "docs" / "contracts.md").read_text("utf-8")


def documents(lengths: list[int]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [f"d{n}" for n in range(len(lengths))],
            "num_chars": lengths,
            "script_share": 0.99,
        }
    )


def test_without_a_reference_drift_is_not_held_and_breaks_nothing():
    report = check(documents([100] * 50), load_suite("drift_corpus"), subject="notes")
    assert {result.status for result in report.results} == {"no_reference"}
    assert (report.verdict, report.reason) == (
        "green",
        "Every promise is kept; 3 wait for a reference.",
    )


def test_drift_is_said_with_what_moved_from_what_to_what():
    before, after = documents([*range(100, 200)]), documents([*range(150, 250)])
    report = check(after, load_suite("drift_corpus"), subject="notes", reference=before)
    near, like, scripts = report.results
    assert (report.verdict, near.status, like.status) == ("red", "failed", "failed")
    assert near.observed == "0.1: 160, above 143; 0.5: 200, above 195; 0.9: 239"
    assert near.value == pytest.approx((160 - 110) / 33)
    assert like.observed.startswith("2.")
    assert "above 199 0.5 % → 50 %" in like.observed
    assert scripts.status == "passed"
    with pytest.raises(ContractViolation, match=r"lengths_like \(critical, broken\)"):
        raise_if_red(report)


def test_a_range_is_as_wide_below_zero_and_takes_the_wider_of_share_and_margin():
    column = pd.Series([-100.0] * 9)
    for given, ends in (
        ({"within": 0.3}, [-130.0, -70.0]),
        ({"within": 0.3, "margin": 20.0}, [-130.0, -70.0]),
        ({"within": 0.1, "margin": 20.0}, [-120.0, -80.0]),
    ):
        kind = QuantilesOfReference.model_validate({"quantiles": [0.5], **given})
        assert kind.of(column)["value_ranges"] == [ends]


def test_a_fall_is_as_far_as_a_rise():
    expected = {"value_ranges": [[90, 110], [None, 110], [5, 5]]}
    assert farthest_quantile(expected, {"values": [70, 0, 9]}) == 3.0
    assert farthest_quantile(expected, {"values": [130, 0, 9]}) == 3.0
    assert farthest_quantile({"value_ranges": [[None, 110]]}, {"values": [0]}) is None


def test_a_new_label_is_infinitely_far_and_named():
    before = documents([100] * 4).assign(label=["a", "a", "b", "b"])
    after = documents([100] * 4).assign(label=["a", "a", "b", "c"])
    report = check(after, load_suite("drift_dataset"), subject="rows", reference=before)
    assert report.results[1].observed == (
        "infinite: has values that the expected one lacks; b 50 % → 25 %, c 0 % → 25 %"
    )
    assert report.results[1].value is None


def test_several_suites_are_one_contract_with_the_first_ones_tolerance():
    both = joined([load_suite("corpus"), load_suite("drift_corpus")])
    assert both.name == "corpus + drift_corpus"
    assert both.tolerance == load_suite("corpus").tolerance
    assert both.reads_reference
    assert not load_suite("corpus").reads_reference
    with pytest.raises(RecipeError, match=r"'corpus' and 'corpus_zh' both have .*enough"):
        joined([load_suite("corpus"), load_suite("corpus_zh")])
