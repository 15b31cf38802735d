"""The expectations that a suite may use: names, arguments, and a plain phrase for each.

This is a closed list from Great Expectations, kept here so that a suite can be checked completely
without the seven-second import of that package. A test compares it with the installed package.
Anything that evaluates a string of the suite (row conditions, queries) is left out on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fourstage.errors import listed


@dataclass(frozen=True)
class ArgumentType:
    """The type of one argument.

    Args:
        phrase: Its name with an article, for messages: ``a number``.
        accepts: Whether a JSON value is of this type.
    """

    phrase: str
    accepts: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


NUMBER = ArgumentType("a number", _is_number)
SHARE = ArgumentType("a share, 0-1", lambda value: _is_number(value) and 0 <= value <= 1)
FLAG = ArgumentType("true or false", lambda value: isinstance(value, bool))
COLUMN = ArgumentType("the name of a column", _is_name)
PATTERN = ArgumentType("a regular expression", _is_name)
COLUMNS = ArgumentType(
    "a list of two or more column names",
    lambda value: isinstance(value, list) and len(value) > 1 and all(map(_is_name, value)),
)
# An empty set would make Great Expectations pass everything.
VALUES = ArgumentType(
    "a list of at least one text, number or boolean",
    lambda value: isinstance(value, list) and len(value) > 0 and all(map(_is_scalar, value)),
)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_range(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    bounds = [bound for bound in value if bound is not None]
    return all(map(_is_number, bounds)) and bounds == sorted(bounds)


def _are_quantiles(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"quantiles", "value_ranges"}:
        return False
    quantiles, ranges = value["quantiles"], value["value_ranges"]
    if not isinstance(quantiles, list) or not isinstance(ranges, list):
        return False
    aligned = len(quantiles) == len(ranges) > 0
    return aligned and all(map(_is_share, quantiles)) and all(map(_is_range, ranges))


def _is_partition(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) not in (
        {"values", "weights"},
        {"bins", "weights"},
    ):
        return False
    weights = value["weights"]
    if not isinstance(weights, list) or not all(map(_is_share, weights)):
        return False
    if not weights or abs(sum(weights) - 1) > 1e-6:
        return False
    if "values" in value:
        return VALUES.accepts(value["values"]) and len(value["values"]) == len(weights)
    bins = value["bins"]
    numbers = isinstance(bins, list) and all(map(_is_number, bins))
    return numbers and len(bins) == len(weights) + 1 and bins == sorted(set(bins))


QUANTILES = ArgumentType(
    '{"quantiles": [0.5], "value_ranges": [[low, high]]}, with null where there is no bound, or '
    '{"$REFERENCE": {"quantiles": [0.5], "within": 0.3}}',
    _are_quantiles,
)
PARTITION = ArgumentType(
    '{"values": […], "weights": […]} or {"bins": […], "weights": […]}, the weights of sum 1, or '
    '{"$REFERENCE": {}}',
    _is_partition,
)

_BOUNDS = {"min_value": NUMBER, "max_value": NUMBER, "strict_min": FLAG, "strict_max": FLAG}


@dataclass(frozen=True)
class Form:
    """One type of expectation.

    Args:
        class_name: Its class in ``great_expectations.expectations``.
        needs: Required arguments.
        may: Optional arguments.
        by_row: Whether it holds or fails for each row on its own, so that it can quarantine rows.
        phrase: The promise, with `{…}` filled from the arguments and `{bounds}` from the bounds.
        bounded: Whether it needs at least one of `min_value` and `max_value`.
    """

    class_name: str
    needs: Mapping[str, ArgumentType]
    phrase: str
    may: Mapping[str, ArgumentType]
    by_row: bool = False
    bounded: bool = False


def _row(
    class_name: str, needs: Mapping[str, ArgumentType], phrase: str, bounded: bool = False
) -> Form:
    may = {"mostly": SHARE} | (_BOUNDS if bounded else {})
    return Form(class_name, needs, phrase, may, by_row=True, bounded=bounded)


def _table(
    class_name: str, needs: Mapping[str, ArgumentType], phrase: str, bounded: bool = False
) -> Form:
    return Form(class_name, needs, phrase, _BOUNDS if bounded else {}, bounded=bounded)


_ONE = {"column": COLUMN}
_SET = {"column": COLUMN, "value_set": VALUES}
_TWO = {"column_A": COLUMN, "column_B": COLUMN}

FORMS: dict[str, Form] = {
    "expect_column_values_to_be_between": _row(
        "ExpectColumnValuesToBeBetween", _ONE, "{column} {bounds}", bounded=True
    ),
    "expect_column_value_lengths_to_be_between": _row(
        "ExpectColumnValueLengthsToBeBetween", _ONE, "characters of {column} {bounds}", bounded=True
    ),
    "expect_column_values_to_be_in_set": _row(
        "ExpectColumnValuesToBeInSet", _SET, "{column} one of {value_set}"
    ),
    "expect_column_values_to_not_be_in_set": _row(
        "ExpectColumnValuesToNotBeInSet", _SET, "{column} none of {value_set}"
    ),
    "expect_column_values_to_not_be_null": _row(
        "ExpectColumnValuesToNotBeNull", _ONE, "{column} present"
    ),
    "expect_column_values_to_be_null": _row("ExpectColumnValuesToBeNull", _ONE, "{column} absent"),
    "expect_column_values_to_be_unique": _row(
        "ExpectColumnValuesToBeUnique", _ONE, "{column} different in every row"
    ),
    "expect_compound_columns_to_be_unique": _row(
        "ExpectCompoundColumnsToBeUnique",
        {"column_list": COLUMNS},
        "{column_list} together different in every row",
    ),
    "expect_column_values_to_match_regex": _row(
        "ExpectColumnValuesToMatchRegex",
        {"column": COLUMN, "regex": PATTERN},
        "{column} matches {regex}",
    ),
    "expect_column_values_to_not_match_regex": _row(
        "ExpectColumnValuesToNotMatchRegex",
        {"column": COLUMN, "regex": PATTERN},
        "{column} does not match {regex}",
    ),
    "expect_column_pair_values_to_be_equal": _row(
        "ExpectColumnPairValuesToBeEqual", _TWO, "{column_A} = {column_B}"
    ),
    "expect_column_pair_values_a_to_be_greater_than_b": Form(
        "ExpectColumnPairValuesAToBeGreaterThanB",
        _TWO,
        "{column_A} > {column_B}",
        {"mostly": SHARE, "or_equal": FLAG},
        by_row=True,
    ),
    "expect_table_row_count_to_be_between": _table(
        "ExpectTableRowCountToBeBetween", {}, "rows {bounds}", bounded=True
    ),
    "expect_column_to_exist": _table("ExpectColumnToExist", _ONE, "a column {column}"),
    "expect_column_min_to_be_between": _table(
        "ExpectColumnMinToBeBetween", _ONE, "smallest {column} {bounds}", bounded=True
    ),
    "expect_column_max_to_be_between": _table(
        "ExpectColumnMaxToBeBetween", _ONE, "largest {column} {bounds}", bounded=True
    ),
    "expect_column_mean_to_be_between": _table(
        "ExpectColumnMeanToBeBetween", _ONE, "mean {column} {bounds}", bounded=True
    ),
    "expect_column_median_to_be_between": _table(
        "ExpectColumnMedianToBeBetween", _ONE, "median {column} {bounds}", bounded=True
    ),
    "expect_column_sum_to_be_between": _table(
        "ExpectColumnSumToBeBetween", _ONE, "sum of {column} {bounds}", bounded=True
    ),
    "expect_column_stdev_to_be_between": _table(
        "ExpectColumnStdevToBeBetween",
        _ONE,
        "standard deviation of {column} {bounds}",
        bounded=True,
    ),
    "expect_column_unique_value_count_to_be_between": _table(
        "ExpectColumnUniqueValueCountToBeBetween",
        _ONE,
        "number of different {column} {bounds}",
        bounded=True,
    ),
    "expect_column_proportion_of_unique_values_to_be_between": _table(
        "ExpectColumnProportionOfUniqueValuesToBeBetween",
        _ONE,
        "different {column} ÷ rows {bounds}",
        bounded=True,
    ),
    "expect_column_proportion_of_non_null_values_to_be_between": _table(
        "ExpectColumnProportionOfNonNullValuesToBeBetween",
        _ONE,
        "share of rows with {column} {bounds}",
        bounded=True,
    ),
    "expect_column_distinct_values_to_be_in_set": _table(
        "ExpectColumnDistinctValuesToBeInSet", _SET, "every {column} one of {value_set}"
    ),
    "expect_column_distinct_values_to_contain_set": _table(
        "ExpectColumnDistinctValuesToContainSet", _SET, "{value_set} among {column}"
    ),
    "expect_column_distinct_values_to_equal_set": _table(
        "ExpectColumnDistinctValuesToEqualSet", _SET, "{column} exactly {value_set}"
    ),
    "expect_column_most_common_value_to_be_in_set": Form(
        "ExpectColumnMostCommonValueToBeInSet",
        _SET,
        "most common {column} one of {value_set}",
        {"ties_okay": FLAG},
    ),
    "expect_column_quantile_values_to_be_between": Form(
        "ExpectColumnQuantileValuesToBeBetween",
        {"column": COLUMN, "quantile_ranges": QUANTILES},
        "quantiles of {column}: {quantile_ranges}",
        {},
    ),
    "expect_column_kl_divergence_to_be_less_than": Form(
        "ExpectColumnKLDivergenceToBeLessThan",
        {"column": COLUMN, "partition_object": PARTITION, "threshold": NUMBER},
        "divergence of {column} from {partition_object} < {threshold}",
        {"internal_weight_holdout": SHARE, "tail_weight_holdout": SHARE},
    ),
}


def number_text(value: float) -> str:
    """A number for people: thousands separated, at most four significant decimals."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) >= 0.001 else f"{value:.3g}"


def expected_text(expectation_type: str, kwargs: Mapping[str, Any]) -> str:
    """The promise of an expectation, as a phrase.

    Example:
        >>> expected_text("expect_column_mean_to_be_between", {"column": "x", "max_value": 0.5})
        'mean x ≤ 0.5'
    """
    words: dict[str, Any] = {"bounds": _bounds_text(kwargs)}
    for name, value in kwargs.items():
        if isinstance(value, dict):
            words[name] = _TEXTS[name](value) if name in _TEXTS else "what is given"
        else:
            words[name] = _list_text(value) if isinstance(value, list) else value
    phrase = FORMS[expectation_type].phrase.format(**words)
    if kwargs.get("or_equal"):
        phrase = phrase.replace(" > ", " ≥ ")
    if len(kwargs.get("value_set", ())) == 1:
        phrase = phrase.replace(" one of ", " = ")
    mostly = kwargs.get("mostly")
    if mostly is not None and mostly < 1:
        phrase += f", in at least {number_text(100 * mostly)} % of the rows"
    return phrase


def _quantiles_text(value: Mapping[str, Any]) -> str:
    if "quantiles" not in value:
        return "near those of the reference"
    return ", ".join(
        f"{q:g} {_bounds_text({'min_value': low, 'max_value': high}) or 'anywhere'}"
        for q, (low, high) in zip(value["quantiles"], value["value_ranges"], strict=True)
    )


def _partition_text(value: Mapping[str, Any]) -> str:
    if "weights" not in value:
        return "the reference"
    return (
        f"the expected one over {len(value['weights'])} {'values' if 'values' in value else 'bins'}"
    )


_TEXTS = {"quantile_ranges": _quantiles_text, "partition_object": _partition_text}


def _bounds_text(kwargs: Mapping[str, Any]) -> str:
    parts = []
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if low is not None and low == high:
        return f"= {number_text(low)}"
    if low is not None:
        parts.append(f"{'>' if kwargs.get('strict_min') else '≥'} {number_text(low)}")
    if high is not None:
        parts.append(f"{'<' if kwargs.get('strict_max') else '≤'} {number_text(high)}")
    return " and ".join(parts)


def _list_text(values: list[Any]) -> str:
    def one(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        text = number_text(value) if _is_number(value) else repr(value)
        return text if len(text) <= 42 else text[:40] + "…"

    return listed([one(value) for value in values], 12)
