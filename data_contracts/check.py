"""Checks a profile against a suite. The only file that imports Great Expectations.

A profile has one row per document or labelled row, with columns of numbers, flags, ids and labels.
It contains no text, so no text can leak into a report. The order of the check:

1. promises about rows, on all rows; a row that breaks a critical one is quarantined;
2. promises about the table, on the rows left after quarantine, which are what a stage would read;
3. the verdict (`verdict.py`).

A missing value keeps every promise except "present" (Great Expectations' rule; a document without
letters, for example, has no share of letters in its script). If a column has no value at all, the
promise counts as not evaluated.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

from data_contracts.derived import DERIVED, with_derived
from data_contracts.drift import divergence_found, farthest_quantile, quantiles_found
from data_contracts.patterns import why_unusable
from data_contracts.references import reads_reference, with_reference
from data_contracts.suite import (
    Expectation,
    Suite,
    load_suite,
    suite_digest,
    suite_names,
    with_parameters,
)
from data_contracts.verdict import (
    NO_REFERENCE,
    NO_ROW_LEFT,
    NUM_SHOWN_IDS,
    Report,
    Result,
    judge,
    percent,
    raise_if_red,
)
from data_contracts.vocabulary import FORMS, expected_text, number_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Expectation",
    "Report",
    "Result",
    "Suite",
    "check",
    "load_suite",
    "raise_if_red",
    "suite_digest",
    "suite_names",
]

# Only these two are meaningful for an empty table; all other promises would hold trivially.
_SAY_SOMETHING_OF_NO_ROWS = ("expect_table_row_count_to_be_between", "expect_column_to_exist")
_LOOK_AT_MISSING = ("expect_column_values_to_not_be_null", "expect_column_values_to_be_null")
_SHOW_VALUES = ("expect_column_values_to_be_in_set", "expect_column_values_to_not_be_in_set")
_NUM_SHOWN_VALUES = 8
_LONGEST_SHOWN_VALUE = 40


def check(
    profile: pd.DataFrame,
    suite: Suite,
    *,
    subject: str,
    parameters: Mapping[str, Any] | None = None,
    unread: Mapping[str, str] | None = None,
    removed: Mapping[str, int] | None = None,
    answers: Mapping[str, Mapping[str, str]] | None = None,
    mended: Mapping[str, Mapping[str, Any]] | None = None,
    pictures: Mapping[str, int] | None = None,
    reference: pd.DataFrame | None = None,
) -> Report:
    """Check a profile against a suite.

    Args:
        profile: One row per document or labelled row. It must have the suite's columns
            (`suite.columns`; those of `derived.py` are computed). Rows are named by an `id` column,
            or by their number if there is none.
        suite: The promises.
        subject: What the profile describes, for the report: the name of a source.
        parameters: Values of the suite's `$PARAMETER`s, such as the label set.
        unread: Location → reason of the records that never became rows, such as a line that is not
            JSON; they are quarantined, too, and count towards the tolerance.
        removed: Reason → number of the records that rules removed; for the report only.
        answers: As in `Report`; for the report only.
        mended: As in `Report`; for the report only.
        pictures: As in `Report`; for the report only.
        reference: The rows of the same source kept in an earlier run, for promises with a
            `$REFERENCE`; without it these are not checked.

    Returns:
        The report; a broken contract is a red report, not an error (see `raise_if_red`).

    Raises:
        RecipeError: A parameter of the suite is missing or of the wrong kind.
    """
    kwargs = {
        expectation.id: with_parameters(suite, expectation, parameters or {})
        for expectation in suite.expectations
    }
    if reference is not None:
        reference = with_derived(reference.reset_index(drop=True), suite.columns)
    kwargs = {name: with_reference(given, reference) for name, given in kwargs.items()}
    given = profile.reset_index(drop=True)
    profile = with_derived(given, suite.columns)
    rows = [expectation for expectation in suite.expectations if expectation.level == "row"]
    tables = [expectation for expectation in suite.expectations if expectation.level == "table"]
    results: dict[str, Result] = {}
    broken_by: dict[int, list[str]] = {}  # position → critical promises
    found = _evaluate(profile, rows, kwargs)
    for item in rows:
        results[item.id] = _result(item, kwargs[item.id], found[item.id], profile)
        if item.severity == "critical":
            for position in found[item.id].positions:
                broken_by.setdefault(position, []).append(item.id)
    unread = unread or {}
    quarantined: dict[str, tuple[str, ...]] = {
        location: (reason,) for location, reason in unread.items()
    }
    positions = sorted(broken_by)
    for position, name in zip(positions, _row_names(profile, positions), strict=True):
        earlier = quarantined.get(name, ())  # of another row with the same id
        quarantined[name] = (*earlier, *(one for one in broken_by[position] if one not in earlier))
    left = with_derived(_without(given, positions, quarantined), suite.columns)
    found = _evaluate(left, tables, kwargs)
    for item in tables:
        results[item.id] = _result(item, kwargs[item.id], found[item.id], left)
    in_order = tuple(results[expectation.id] for expectation in suite.expectations)
    num_rows = len(profile) + len(unread)
    num_quarantined = num_rows - len(left)
    verdict, reason = judge(
        in_order, rows=num_rows, num_quarantined_rows=num_quarantined, tolerance=suite.tolerance
    )
    return Report(
        subject=subject,
        suite=suite.name,
        suite_digest=suite_digest(suite),
        tolerance=suite.tolerance,
        rows=num_rows,
        results=in_order,
        quarantined=quarantined,
        num_quarantined_rows=num_quarantined,
        verdict=verdict,
        reason=reason,
        removed=dict(removed or {}),
        answers=dict(answers or {}),
        mended=dict(mended or {}),
        pictures=dict(pictures or {}),
    )


@dataclass(frozen=True)
class _ExpectationOutcome:
    """The result of one expectation: whether it is kept and which rows break it, or why unknown."""

    kept: bool | None  # None: could not be evaluated
    positions: Sequence[int] = ()
    value: Any = None
    why_not: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


def _row_names(profile: pd.DataFrame, positions: Sequence[int]) -> list[str]:
    """The ids of the rows at these positions as text; `row 7` (from 1) for a row without an id."""
    numbers = [f"row {position + 1}" for position in positions]
    if "id" not in profile:
        return numbers
    ids = _column(profile, "id").iloc[list(positions)]
    return [
        number if absent else str(row_id)
        for row_id, absent, number in zip(ids.tolist(), ids.isna().tolist(), numbers, strict=True)
    ]


def _without(
    profile: pd.DataFrame, positions: Sequence[int], quarantined: Mapping[str, Any]
) -> pd.DataFrame:
    """The rows left; quarantine is by id, so all rows with a quarantined id go."""
    if not positions:
        return profile
    left = profile.drop(index=list(positions))
    if "id" in left:
        left = left.loc[[str(row_id) not in quarantined for row_id in left["id"].tolist()]]
    return left.reset_index(drop=True)


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    """One column; two of the same name cannot come from a Parquet file."""
    return cast("pd.Series", table[name])


def _evaluate(
    table: pd.DataFrame, expectations: Sequence[Expectation], kwargs: Mapping[str, dict[str, Any]]
) -> dict[str, _ExpectationOutcome]:
    """The results of Great Expectations, by expectation id."""
    found: dict[str, _ExpectationOutcome] = {}
    ready: list[Expectation] = []
    for expectation in expectations:
        why_not = _cannot_be_evaluated(table, expectation, kwargs[expectation.id])
        if why_not:
            found[expectation.id] = _ExpectationOutcome(None, why_not=why_not)
        else:
            ready.append(expectation)
    if ready:
        columns = {name for item in ready for name in _columns(kwargs[item.id])}
        found |= _run(table.loc[:, [name for name in table if name in columns]], ready, kwargs)
    return found


def _columns(kwargs: Mapping[str, Any]) -> list[str]:
    single = [kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs]
    return [*single, *kwargs.get("column_list", ())]


def _cannot_be_evaluated(
    table: pd.DataFrame, expectation: Expectation, kwargs: Mapping[str, Any]
) -> str:
    """Why the promise cannot be evaluated; empty if it can."""
    if expectation.type in _SAY_SOMETHING_OF_NO_ROWS:
        return ""
    if reads_reference(kwargs):
        return NO_REFERENCE
    for name in _columns(kwargs):
        if name not in table:
            of = " and ".join(DERIVED.get(name, ()))
            computed = f", which is computed from {of}" if of else ""
            return f"the profile has no column {name!r}{computed}"
    if table.empty:
        return NO_ROW_LEFT
    if expectation.type not in _LOOK_AT_MISSING:
        for name in _columns(kwargs):
            if bool(_column(table, name).isna().all()):
                return f"the column {name!r} holds no value"
    if "regex" in kwargs:
        values = _column(table, kwargs["column"]).dropna().astype(str).unique()
        return why_unusable(kwargs["regex"], values.tolist())
    return ""


def _run(
    table: pd.DataFrame, expectations: Sequence[Expectation], kwargs: Mapping[str, dict[str, Any]]
) -> dict[str, _ExpectationOutcome]:
    # Its imports emit deprecation warnings about each other, and its start-up logs a lot.
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import great_expectations as gx
        from great_expectations.data_context.types.base import (
            DataContextConfig,
            InMemoryStoreBackendDefaults,
            ProgressBarsConfig,
        )

    # A new context for each call, because the library keeps the last one as a process-wide global.
    # By default it would also create a folder for its documents in the temporary directory.
    context = gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
            progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
            analytics_enabled=False,
        ),
    )
    batch = (
        context.data_sources.add_pandas("profiles")
        .add_dataframe_asset("profile")
        .add_batch_definition_whole_dataframe("whole")
        .get_batch({"dataframe": table})
    )
    built = [
        getattr(gx.expectations, FORMS[item.type].class_name)(
            **kwargs[item.id], meta={"id": item.id}
        )
        for item in expectations
    ]
    # COMPLETE gives the position of every failing row; its cell values do not leave this function.
    validation = batch.validate(
        gx.ExpectationSuite(name="suite", expectations=built),
        result_format={"result_format": "COMPLETE", "return_unexpected_index_query": False},
    )
    found: dict[str, _ExpectationOutcome] = {}
    for item in validation.results:
        meta = item.expectation_config.meta if item.expectation_config else None
        assert meta is not None, "every expectation of ours carries its id"
        found[meta["id"]] = _outcome(bool(item.success), item.result, item.exception_info)
    for item in expectations:
        outcome = found.get(item.id)
        if outcome is None or outcome.kept is None:
            kinds = ", ".join(
                f"{name} holds {_column(table, name).dtype}" for name in _columns(kwargs[item.id])
            )
            found[item.id] = _ExpectationOutcome(
                None, why_not=f"its columns are of the wrong type for it ({kinds or 'no column'})"
            )
    return found


def _outcome(
    success: bool, result: Mapping[str, Any], exception_info: Mapping[str, Any]
) -> _ExpectationOutcome:
    # For a failed metric this is {metric: {...}}, otherwise {"raised_exception": False, ...}.
    if exception_info and exception_info.get("raised_exception") is not False:
        return _ExpectationOutcome(None)
    if "unexpected_index_list" in result:
        positions = sorted({int(position) for position in result["unexpected_index_list"] or ()})
        return _ExpectationOutcome(success, positions)
    value, details = result.get("observed_value"), result.get("details") or {}
    if isinstance(value, float) and math.isnan(value):
        return _ExpectationOutcome(None)
    if value is None and "expected_partition" in details:
        value = math.inf  # the library cannot express it in JSON
    return _ExpectationOutcome(success, value=value, details=details)


def _result(
    expectation: Expectation,
    kwargs: Mapping[str, Any],
    outcome: _ExpectationOutcome,
    table: pd.DataFrame,
) -> Result:
    failed, expected = outcome.positions, expected_text(expectation.type, kwargs)
    if outcome.why_not == NO_REFERENCE:
        status, observed = "no_reference", outcome.why_not
    elif outcome.kept is None:
        status, observed = "not_evaluated", outcome.why_not
    else:
        status = "passed" if outcome.kept else "failed"
        observed = _observed(expectation, kwargs, outcome, table)
    return Result(
        id=expectation.id,
        says=expectation.says or f"{expected}.",
        severity=expectation.severity,
        level=expectation.level,
        status=status,
        expected=expected,
        observed=observed,
        failed_count=len(failed),
        failed_ids=tuple(_row_names(table, failed[:NUM_SHOWN_IDS])),
        remedy=expectation.remedy,
        value=_value(expectation, kwargs, outcome, table),
        drift=reads_reference(expectation.kwargs),
    )


def _value(
    expectation: Expectation,
    kwargs: Mapping[str, Any],
    outcome: _ExpectationOutcome,
    table: pd.DataFrame,
) -> float | None:
    """The result as one number that can be followed from run to run."""
    if outcome.kept is None:
        return None
    if FORMS[expectation.type].by_row:
        return len(outcome.positions) / max(1, len(table))
    if "quantile_ranges" in kwargs:
        return farthest_quantile(kwargs["quantile_ranges"], outcome.value)
    # A column of whole numbers gives one of numpy's, which are no `int`.
    number = isinstance(outcome.value, Real) and math.isfinite(outcome.value)
    return float(outcome.value) if number else None


def _observed(
    expectation: Expectation,
    kwargs: Mapping[str, Any],
    outcome: _ExpectationOutcome,
    table: pd.DataFrame,
) -> str:
    """The result for people, in numbers; never with words of the text."""
    if expectation.type == "expect_column_to_exist":
        return "it is there" if outcome.kept else "it is not there"
    if not FORMS[expectation.type].by_row:
        if "value_set" in kwargs:
            return _set_text(
                expectation.type, _column(table, kwargs["column"]), kwargs["value_set"]
            )
        if "quantile_ranges" in kwargs:
            return quantiles_found(kwargs["quantile_ranges"], outcome.value)
        if "partition_object" in kwargs:
            return divergence_found(outcome.value, outcome.details)
        return number_text(float(outcome.value)) + _rare_labels(kwargs, table, outcome)
    if not outcome.positions:
        return f"all {len(table):,} rows keep it" if len(table) != 1 else "the one row keeps it"
    broken = table.iloc[list(outcome.positions)]
    text = f"{len(broken):,} of {len(table):,} rows ({percent(len(broken), len(table))}) break it"
    column = _column(broken, kwargs["column"]) if "column" in kwargs else None
    if column is not None and expectation.type in _SHOW_VALUES:
        text += f": {_labels_text(column)}"
    elif column is not None and column.dtype.kind in "iuf" and column.notna().any():
        low, high = number_text(column.min()), number_text(column.max())
        text += f": {low}" if low == high else f": {low} to {high}"
    if "split" in table and _column(table, "split").nunique() > 1:
        counts = _column(broken, "split").value_counts().sort_index()
        text += "; " + ", ".join(f"{count:,} in {split}" for split, count in counts.items())
    return text


def _rare_labels(
    kwargs: Mapping[str, Any], table: pd.DataFrame, outcome: _ExpectationOutcome
) -> str:
    """The labels that break a promise about the number of rows per label, or per split."""
    of_labels = ("label_share", "label_rows", "splits_without_label")
    if outcome.kept or kwargs.get("column") not in of_labels:
        return ""
    carried, split = _column(table, kwargs["column"]), _column(table, "split")
    if kwargs["column"] == "splits_without_label":
        named = {"rows": carried > kwargs.get("max_value", 0)}
    else:
        rare = carried < kwargs.get("min_value", 0)
        named = {"training rows": rare & (split == "train"), "other rows": rare & (carried == 0)}
    found = {of: _column(table.loc[rows], "label") for of, rows in named.items() if rows.any()}
    texts = [f"{_labels_text(labels)} of the {of}" for of, labels in found.items()]
    return f": {', '.join(texts)}" if texts else ""


def _labels_text(column: pd.Series) -> str:
    """Values with their counts, if they are few and short.

    A label column that is really a text column must not put text into reports.
    """
    counts = column.map(_label_text).value_counts()
    longest = max(len(str(value)) for value in counts.index)
    if len(counts) > _NUM_SHOWN_VALUES or longest > _LONGEST_SHOWN_VALUE:
        return f"{len(counts):,} values, too many or too long to be labels"
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return ", ".join(f"{value} × {count:,}" for value, count in ordered)


def _set_text(expectation_type: str, column: pd.Series, value_set: Sequence[Any]) -> str:
    """How the values of a column differ from a set, as far as the promise is concerned."""
    present = column.dropna()
    values = list(present.unique())
    if expectation_type == "expect_column_most_common_value_to_be_in_set":
        return f"most common: {_labels_text(present.loc[present.isin(list(present.mode()))])}"
    text = f"{len(values):,} different {'value' if len(values) == 1 else 'values'}"
    others = present.loc[~present.isin(list(value_set))]
    if len(others) and expectation_type != "expect_column_distinct_values_to_contain_set":
        text += f"; besides the set {_labels_text(others)}"
    absent = [_label_text(value) for value in value_set if value not in values]
    if absent and expectation_type != "expect_column_distinct_values_to_be_in_set":
        text += f"; without {', '.join(absent[:_NUM_SHOWN_VALUES])}"
    return text


def _label_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
