"""A suite: the promises of one contract, read strictly from JSON.

A promise with a misspelt name would silently hold for ever, so unknown keys, types of expectation,
arguments and severities are all refused. Pydantic reads the structure; which arguments there are,
and of which types, depends on the type of the expectation (`vocabulary.py`).

A suite written by Great Expectations 1 is valid here. The fields that it lacks (level, sentence,
remedy, tolerance) have defaults.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from pydantic import Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from data_contracts.references import OF_REFERENCE, REFERENCE, reads_reference
from data_contracts.strict import Strict
from data_contracts.verdict import JOINED
from data_contracts.vocabulary import COLUMN, COLUMNS, FORMS, Form
from fourstage.errors import RecipeError, UnknownNameError

Severity = Literal["critical", "warning", "info"]
Level = Literal["row", "table"]
BUILT_IN = Path(__file__).parent / "suites"

_Words = Annotated[str, StringConstraints(pattern=r"\S")]
# Arguments that restrict a promise to some rows, in the two forms that Great Expectations writes.
_ROW_CONDITION = ("row_condition", "condition_parser")


class _WrittenExpectation(Strict):
    """One expectation in a file, ours or written by Great Expectations."""

    id: _Words | None = None
    type: _Words
    kwargs: dict[str, Any]
    severity: Severity = "critical"
    level: Level | None = None
    says: _Words | None = None
    remedy: str = ""
    # Fields of Great Expectations that are ignored.
    description: str | None = None
    meta: dict[str, Any] | None = None
    notes: str | list[str] | None = None
    rendered_content: list[Any] | None = None
    expectation_context: dict[str, Any] | None = None


class _WrittenSuite(Strict):
    """The content of a suite file."""

    name: _Words
    description: str = ""
    tolerance: Annotated[float, Field(ge=0, le=1)] = 0.0
    expectations: Annotated[list[_WrittenExpectation], Field(min_length=1)]
    id: str | None = None
    suite_parameters: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    notes: str | list[str] | None = None


@dataclass(frozen=True)
class Expectation:
    """One promise about a profile.

    Args:
        id: Its name in the suite, in quarantine reasons and in reports.
        type: A key of `vocabulary.FORMS`.
        kwargs: Its arguments; `{"$PARAMETER": name, "default": value}` stands for a value given to
            `check`, `{"$REFERENCE": …}` for statistics of an earlier run (`references.py`).
        severity: `critical` stops the run (or quarantines the row), `warning` is reported, `info`
            is noted.
        level: `row`: about each row; `table`: about all rows left after quarantine together.
        says: The promise in one plain sentence; empty to describe it by its arguments.
        remedy: What to do if it is broken, in one sentence.
    """

    id: str
    type: str
    kwargs: Mapping[str, Any]
    severity: str
    level: str
    says: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Suite:
    """The promises of one contract.

    Args:
        name: Name of its file.
        description: Its purpose and the columns it reads.
        tolerance: Share of rows that may be quarantined, 0-1; above it the contract is broken.
        expectations: At least one is critical; ids are unique.
    """

    name: str
    description: str
    tolerance: float
    expectations: tuple[Expectation, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every profile column that the suite reads, sorted."""
        names: set[str] = set()
        for expectation in self.expectations:
            for key, value in expectation.kwargs.items():
                if key in ("column", "column_A", "column_B"):
                    names.add(value)
                elif key == "column_list":
                    names.update(value)
        return tuple(sorted(names))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that `check` needs, sorted."""
        return tuple(
            sorted(
                {
                    value["$PARAMETER"]
                    for expectation in self.expectations
                    for value in expectation.kwargs.values()
                    if isinstance(value, dict) and "$PARAMETER" in value and "default" not in value
                }
            )
        )

    @property
    def reads_reference(self) -> bool:
        """Whether any of its promises compares with an earlier run."""
        return any(reads_reference(expectation.kwargs) for expectation in self.expectations)


def joined(suites: Sequence[Suite]) -> Suite:
    """Several suites joined into one, with the tolerance of the first.

    Raises:
        RecipeError: Two promises have the same id.
    """
    first, *others = suites
    if not others:
        return first
    seen: dict[str, str] = {}
    for suite in suites:
        for expectation in suite.expectations:
            if other := seen.get(expectation.id):
                raise RecipeError(
                    f"contract: the suites {other!r} and {suite.name!r} both have an expectation "
                    f"{expectation.id!r}; rename one."
                )
            seen[expectation.id] = suite.name
    return Suite(
        JOINED.join(suite.name for suite in suites),
        first.description,
        first.tolerance,
        tuple(expectation for suite in suites for expectation in suite.expectations),
    )


def suite_names(folders: Sequence[Path] = ()) -> list[str]:
    """Names of all suites, in `suites/` of the project folders and built-in, sorted."""
    names = {path.stem for folder in _places(folders) for path in folder.glob("*.json")}
    return sorted(names)


def load_suite(name: str, folders: Sequence[Path] = ()) -> Suite:
    """The suite with a name, from the first folder that has it, fully checked.

    Args:
        name: File name without `.json`.
        folders: Project folders; `suites/` in each is searched before the built-in ones.

    Raises:
        UnknownNameError: No folder has it.
        RecipeError: The file is not a valid suite; the message names file, expectation and key.
    """
    for folder in _places(folders):
        path = folder / f"{name}.json"
        # A name with a path separator could reach files outside the folder.
        if path.parent == folder and path.is_file():
            return read_suite(path)
    raise UnknownNameError("contract", name, "a suite", suite_names(folders))


def read_suite(path: Path) -> Suite:
    """The suite in one file.

    Raises:
        RecipeError: It is not a valid suite.
    """
    where = f"suites/{path.name}"
    try:
        raw = json.loads(
            path.read_bytes().decode("utf-8"),
            object_pairs_hook=_refuse_repeated_keys,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise RecipeError(f"{where}: not UTF-8 at byte {error.start}; save it as UTF-8.") from error
    except json.JSONDecodeError as error:
        raise RecipeError(
            f"{where}: line {error.lineno}, column {error.colno}: not JSON ({error.msg})."
        ) from error
    except _NotStrictError as error:
        raise RecipeError(f"{where}: {error}") from error
    if not isinstance(raw, dict):
        raise RecipeError(f"{where}: expected a JSON object with 'name' and 'expectations'.")
    try:
        written = _WrittenSuite.model_validate(raw)
    except ValidationError as error:
        raise _fault(where, raw, error.errors()[0]) from None
    if written.name != path.stem:
        raise RecipeError(
            f"{where}: 'name' is {written.name!r}, expected the file's: {path.stem!r}."
        )
    if written.suite_parameters:
        raise RecipeError(
            f"{where}: 'suite_parameters' are not taken from a file; write the values into the "
            "expectations."
        )
    expectations = _distinct(
        tuple(_expectation(where, number, one) for number, one in enumerate(written.expectations))
    )
    seen: set[str] = set()
    for expectation in expectations:
        if expectation.id in seen:
            raise RecipeError(
                f"{where}: two expectations have the id {expectation.id!r}; rename one."
            )
        seen.add(expectation.id)
    if not any(expectation.severity == "critical" for expectation in expectations):
        raise RecipeError(
            f"{where}: no expectation is critical, so the contract could never be broken; give at "
            'least one of them "severity": "critical".'
        )
    return Suite(written.name, written.description, written.tolerance, expectations)


def suite_digest(suite: Suite) -> str:
    """SHA-256 of the suite's promises as canonical JSON.

    Its sentences (`description`, `says`, `remedy`) are left out, so that rewording one does not
    retrain a stage.
    """
    content = {
        "name": suite.name,
        "tolerance": suite.tolerance,
        "expectations": [
            {
                "id": expectation.id,
                "type": expectation.type,
                "kwargs": dict(expectation.kwargs),
                "severity": expectation.severity,
                "level": expectation.level,
            }
            for expectation in suite.expectations
        ],
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def with_parameters(
    suite: Suite, expectation: Expectation, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of an expectation with every `$PARAMETER` replaced.

    Raises:
        RecipeError: A parameter is not given and has no default, or has the wrong type.
    """
    here = f"suites/{suite.name}.json: expectation {expectation.id!r}"
    kinds = {**FORMS[expectation.type].needs, **FORMS[expectation.type].may}
    filled: dict[str, Any] = {}
    for key, value in expectation.kwargs.items():
        if isinstance(value, dict) and "$PARAMETER" in value:
            name = value["$PARAMETER"]
            if name not in parameters and "default" not in value:
                given = ", ".join(sorted(parameters)) or "none"
                raise RecipeError(
                    f"{here}: {key} is the parameter {name!r}, not given (given: {given})."
                )
            value = parameters.get(name, value.get("default"))
            if isinstance(value, tuple):
                value = list(value)
            if not kinds[key].accepts(value):
                raise RecipeError(
                    f"{here}: the parameter {name!r} for {key} must be {kinds[key].phrase}, "
                    f"got {_short(value)}."
                )
        filled[key] = value
    return filled


def _places(folders: Sequence[Path]) -> list[Path]:
    return [*(Path(folder) / "suites" for folder in folders), BUILT_IN]


class _NotStrictError(ValueError):
    """JSON that Python accepts but a suite must not contain."""


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            raise _NotStrictError(f"the key {key[:80]!r} occurs twice in one object; remove one.")
        read[key] = value
    return read


def _refuse_constant(name: str) -> Any:
    raise _NotStrictError(f"{name} is not JSON; expected a finite number.")


def _expectation(where: str, number: int, written: _WrittenExpectation) -> Expectation:
    ours = written.id is not None and not _is_uuid(written.id)
    here = f"{where}: expectation {written.id!r}" if ours else f"{where}: expectations[{number}]"
    if written.type not in FORMS:
        raise UnknownNameError(
            here,
            written.type,
            "a type of expectation",
            FORMS,
            "Expectations of one's own and those that run a query are not taken.",
        )
    form = FORMS[written.type]
    _check_kwargs(here, written.type, form, written.kwargs)
    mostly = "mostly" in written.kwargs
    level = written.level or ("row" if form.by_row and not mostly else "table")
    if level == "row" and not form.by_row:
        raise RecipeError(
            f'{here}: {written.type} judges the table as a whole; expected "level": "table".'
        )
    if level == "row" and mostly:
        raise RecipeError(
            f'{here}: \'mostly\' is a promise about the table; use "level": "table", or leave it '
            "out: how many rows may be quarantined is the suite's 'tolerance'."
        )
    return Expectation(
        id=str(written.id) if ours else _derived_id(written.type, written.kwargs),
        type=written.type,
        kwargs=written.kwargs,
        severity=written.severity,
        level=level,
        says=written.says or written.description or "",
        remedy=written.remedy,
    )


def _is_uuid(text: str) -> bool:
    """Whether an id is a random one of Great Expectations, which changes with each export."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _derived_id(kind: str, kwargs: Mapping[str, Any]) -> str:
    """The default id of a promise, such as ``num_chars_values_to_be_between``."""
    columns = [kwargs.get("column"), kwargs.get("column_A"), kwargs.get("column_B")]
    columns += kwargs.get("column_list", ())
    of = "_".join(str(column) for column in columns if column)
    what = kind.removeprefix("expect_").removeprefix("column_")
    return f"{of}_{what}" if of else what


def _distinct(expectations: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """Number repeated default ids; explicit ids must be distinct already."""
    times: dict[str, int] = {}
    found = []
    for expectation in expectations:
        times[expectation.id] = count = times.get(expectation.id, 0) + 1
        derived = expectation.id == _derived_id(expectation.type, expectation.kwargs)
        if count > 1 and derived:
            expectation = replace(expectation, id=f"{expectation.id}_{count}")
        found.append(expectation)
    return tuple(found)


def _check_kwargs(here: str, expectation_type: str, form: Form, kwargs: Any) -> None:
    kinds = {**form.needs, **form.may}
    for key, value in kwargs.items():
        if key in _ROW_CONDITION:
            raise RecipeError(
                f"{here}: {key}: a condition on rows is not supported: a promise is about all rows "
                "of its source, so that quarantine can name those that break it. Give the rows a "
                "source of their own."
            )
        if key not in kinds:
            raise UnknownNameError(
                f"{here}: kwargs", key, f"an argument of {expectation_type}", kinds
            )
        if isinstance(value, dict) and REFERENCE in value and key in OF_REFERENCE:
            _check_reference(f"{here}: {key}: {REFERENCE}", key, value)
            continue
        parameter = isinstance(value, dict) and kinds[key] not in (COLUMN, COLUMNS)
        parameter = parameter and (key not in OF_REFERENCE or "$PARAMETER" in value)
        if parameter:
            _check_parameter(f"{here}: {key}", value)
            value = value.get("default")
        if not (parameter and value is None) and not kinds[key].accepts(value):
            raise RecipeError(f"{here}: {key} must be {kinds[key].phrase}, got {_short(value)}.")
    for key in form.needs:
        if key not in kwargs:
            raise RecipeError(f"{here}: {expectation_type} needs the argument {key!r}.")
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if form.bounded and low is None and high is None:
        raise RecipeError(f"{here}: no bound given; expected min_value, max_value or both.")
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        raise RecipeError(f"{here}: min_value {low:,} is above max_value {high:,}.")


def _check_reference(here: str, key: str, value: Mapping[str, Any]) -> None:
    others = sorted(set(value) - {REFERENCE})
    if others:
        raise RecipeError(f"{here}: no other key is allowed next to it, got {others[0]!r}.")
    try:
        OF_REFERENCE[key].model_validate(value[REFERENCE])
    except ValidationError as error:
        details = error.errors()[0]
        raise _unfit(here, details, list(OF_REFERENCE[key].model_fields)) from None


def _check_parameter(here: str, value: Mapping[str, Any]) -> None:
    for key in value:
        if key not in ("$PARAMETER", "default"):
            raise UnknownNameError(here, key, "a key here", ("$PARAMETER", "default"))
    name = value.get("$PARAMETER")
    if not isinstance(name, str) or not name.strip():
        raise RecipeError(f"{here}: '$PARAMETER' must be a text, got {_short(name)}.")


def _fault(where: str, raw: Mapping[str, Any], details: ErrorDetails) -> RecipeError:
    """The first error in a file's structure: file, expectation, key, nearest name."""
    loc = details["loc"]
    here, model, inner = where, _WrittenSuite, loc
    if loc[0] == "expectations" and len(loc) > 1:
        number, inner = loc[1], loc[2:]
        one = raw["expectations"][number]
        named = isinstance(one, dict) and isinstance(one.get("id"), str) and one["id"].strip()
        here = (
            f"{where}: expectation {one['id']!r}" if named else f"{where}: expectations[{number}]"
        )
        model = _WrittenExpectation
        if not isinstance(one, dict):
            return RecipeError(f"{here}: expected an object, got {_short(one)}.")
    got = details["input"]
    if details["type"] == "literal_error" and isinstance(got, str):
        known = get_args(Severity) if inner[0] == "severity" else get_args(Level)
        return UnknownNameError(here, got, f"a {inner[0]}", known)
    if inner == ("tolerance",):
        return RecipeError(
            f"{here}: 'tolerance' is the share of rows that may be quarantined: expected a number "
            f"0-1, got {_short(got)}."
        )
    if inner == ("expectations",) and details["type"] != "missing":
        return RecipeError(f"{here}: 'expectations' must be a list of at least one.")
    return _unfit(here, {**details, "loc": inner}, list(model.model_fields))


_EXPECTED = {
    "string_type": "a text",
    "string_pattern_mismatch": "a text",
    "dict_type": "an object",
    "list_type": "a list",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "an object",
}


def _unfit(here: str, details: ErrorDetails, known: Sequence[str]) -> RecipeError:
    key = str(details["loc"][0]) if details["loc"] else ""
    if details["type"] == "extra_forbidden":
        return UnknownNameError(here, key, "a key here", known)
    if details["type"] == "missing":
        return RecipeError(f"{here}: the key {key!r} is missing.")
    if details["type"] == "reference":
        return RecipeError(f"{here}: {details['msg']}.")
    context = details.get("ctx") or {}
    bounds = [f"{sign} {context[name]}" for name, sign in _SIGNS.items() if name in context]
    wanted = _EXPECTED.get(details["type"]) or f"a value {' and '.join(bounds) or 'that fits'}"
    return RecipeError(f"{here}: {key!r} must be {wanted}, got {_short(details['input'])}.")


_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
