"""A suite: the promises of one contract, read from JSON without mercy.

A promise with a misspelt name would silently hold for ever, so nothing unknown is tolerated: no
key, no type of expectation, no argument, no severity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from data_contracts.vocabulary import COLUMN, COLUMNS, FORMS, SHARE, Form
from fourstage.errors import RecipeError, UnknownNameError

SEVERITIES = ("critical", "warning", "info")
LEVELS = ("row", "table")
BUILT_IN = Path(__file__).parent / "suites"

_SUITE_KEYS = ("name", "description", "tolerance", "expectations")
_EXPECTATION_KEYS = ("id", "type", "kwargs", "severity", "level", "says", "remedy")


@dataclass(frozen=True)
class Expectation:
    """One promise about a profile.

    Args:
        id: Its name within the suite; quarantine reasons and reports use it.
        type: A key of `vocabulary.FORMS`.
        kwargs: Its arguments; `{"$PARAMETER": name, "default": value}` stands for what `check` is
            given.
        severity: `critical` stops (a row: quarantines), `warning` is reported, `info` is noted.
        level: `row`: each row keeps it or not; `table`: the rows left after quarantine keep it
            together.
        says: The promise in one plain sentence.
        remedy: What to do where it is broken, one sentence.
    """

    id: str
    type: str
    kwargs: Mapping[str, Any]
    severity: str
    level: str
    says: str
    remedy: str = ""


@dataclass(frozen=True)
class Suite:
    """The promises of one contract.

    Args:
        name: Name of its file.
        description: What it is for and which columns it reads.
        tolerance: Share of rows that may be quarantined, 0-1; above it the contract is broken.
        expectations: At least one of them critical, ids unique.
    """

    name: str
    description: str
    tolerance: float
    expectations: tuple[Expectation, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every profile column the suite reads, sorted."""
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
        """Names of the parameters that `check` must be given, sorted."""
        return tuple(
            sorted(
                {
                    value["$PARAMETER"]
                    for expectation in self.expectations
                    for value in expectation.kwargs.values()
                    if isinstance(value, dict) and "default" not in value
                }
            )
        )


def suite_names(folders: Sequence[Path] = ()) -> list[str]:
    """Names of all suites in the project folders' `suites/` and the built-in ones, sorted."""
    names = {path.stem for folder in _places(folders) for path in folder.glob("*.json")}
    return sorted(names)


def load_suite(name: str, folders: Sequence[Path] = ()) -> Suite:
    """The suite of a name, from the first folder that has it, checked whole.

    Args:
        name: File name without `.json`.
        folders: Project folders; `suites/` in each is searched before the built-in ones.

    Raises:
        UnknownNameError: No folder has it.
        RecipeError: The file is no valid suite; the message names file, expectation and key.
    """
    for folder in _places(folders):
        path = folder / f"{name}.json"
        # A name with a separator in it is no name: it would reach files outside the folder.
        if path.parent == folder and path.is_file():
            return read_suite(path)
    raise UnknownNameError("contract", name, "a suite", suite_names(folders))


def read_suite(path: Path) -> Suite:
    """The suite in one file.

    Raises:
        RecipeError: It is no valid suite.
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
        raise RecipeError(f"{where}: expected a JSON object with {', '.join(_SUITE_KEYS)}.")
    _check_keys(where, raw, _SUITE_KEYS, _SUITE_KEYS)
    _check_text(where, raw, ("name", "description"))
    if raw["name"] != path.stem:
        raise RecipeError(
            f"{where}: 'name' is {raw['name']!r}, expected the file's: {path.stem!r}."
        )
    if not SHARE.accepts(raw["tolerance"]):
        raise RecipeError(
            f"{where}: 'tolerance' is the share of rows that may be quarantined: expected a number "
            f"0-1, got {_short(raw['tolerance'])}."
        )
    if not isinstance(raw["expectations"], list) or not raw["expectations"]:
        raise RecipeError(f"{where}: 'expectations' must be a list of at least one.")
    expectations = tuple(
        _expectation(where, number, item) for number, item in enumerate(raw["expectations"])
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
    return Suite(raw["name"], raw["description"], float(raw["tolerance"]), expectations)


def suite_digest(suite: Suite) -> str:
    """SHA-256 of what the suite promises, as canonical JSON.

    Its sentences (`description`, `says`, `remedy`) are left out: they decide nothing, and a stage
    should not train again because a comma moved.
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
    """The arguments of an expectation with every `$PARAMETER` put in.

    Raises:
        RecipeError: A parameter was not given and has no default, or is not of the right kind.
    """
    here = f"suites/{suite.name}.json: expectation {expectation.id!r}"
    kinds = {**FORMS[expectation.type].needs, **FORMS[expectation.type].may}
    filled: dict[str, Any] = {}
    for key, value in expectation.kwargs.items():
        if isinstance(value, dict):
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
    """JSON that Python would read and that a suite must not hold."""


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            raise _NotStrictError(f"the key {key[:80]!r} stands twice in one object; remove one.")
        read[key] = value
    return read


def _refuse_constant(name: str) -> Any:
    raise _NotStrictError(f"{name} is not JSON; expected a finite number.")


def _expectation(where: str, number: int, raw: Any) -> Expectation:
    if not isinstance(raw, dict):
        raise RecipeError(
            f"{where}: expectations[{number}]: expected an object, got {_short(raw)}."
        )
    named = isinstance(raw.get("id"), str) and raw["id"].strip() != ""
    here = f"{where}: expectation {raw['id']!r}" if named else f"{where}: expectations[{number}]"
    _check_keys(here, raw, _EXPECTATION_KEYS, _EXPECTATION_KEYS[:-1])
    _check_text(here, raw, ("id", "type", "severity", "level", "says"))
    if not isinstance(raw.get("remedy", ""), str):
        raise RecipeError(f"{here}: 'remedy' must be a sentence, got {_short(raw['remedy'])}.")
    if raw["type"] not in FORMS:
        raise UnknownNameError(here, raw["type"], "a type of expectation", FORMS)
    if raw["severity"] not in SEVERITIES:
        raise UnknownNameError(here, raw["severity"], "a severity", SEVERITIES)
    if raw["level"] not in LEVELS:
        raise UnknownNameError(here, raw["level"], "a level", LEVELS)
    form = FORMS[raw["type"]]
    if raw["level"] == "row" and not form.by_row:
        raise RecipeError(
            f'{here}: {raw["type"]} judges the table as a whole; expected "level": "table".'
        )
    _check_kwargs(here, raw["type"], form, raw["kwargs"])
    if raw["level"] == "row" and "mostly" in raw["kwargs"]:
        raise RecipeError(
            f'{here}: \'mostly\' is a promise about the table; use "level": "table", or leave it '
            "out: how many rows may be quarantined is the suite's 'tolerance'."
        )
    return Expectation(
        id=raw["id"],
        type=raw["type"],
        kwargs=raw["kwargs"],
        severity=raw["severity"],
        level=raw["level"],
        says=raw["says"],
        remedy=raw.get("remedy", ""),
    )


def _check_kwargs(here: str, expectation_type: str, form: Form, kwargs: Any) -> None:
    if not isinstance(kwargs, dict):
        raise RecipeError(f"{here}: 'kwargs' must be an object, got {_short(kwargs)}.")
    kinds = {**form.needs, **form.may}
    for key, value in kwargs.items():
        if key not in kinds:
            raise UnknownNameError(
                f"{here}: kwargs", key, f"an argument of {expectation_type}", kinds
            )
        parameter = isinstance(value, dict) and kinds[key] not in (COLUMN, COLUMNS)
        if parameter:
            _check_keys(f"{here}: {key}", value, ("$PARAMETER", "default"), ("$PARAMETER",))
            _check_text(f"{here}: {key}", value, ("$PARAMETER",))
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


def _check_keys(
    where: str, raw: Mapping[str, Any], known: Sequence[str], needed: Sequence[str]
) -> None:
    for key in raw:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise RecipeError(
                f"{where}: unknown key {key[:80]!r}{hint} Expected: {', '.join(known)}."
            )
    for key in needed:
        if key not in raw:
            raise RecipeError(f"{where}: the key {key!r} is missing.")


def _check_text(where: str, raw: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in keys:
        if not isinstance(raw[key], str) or not raw[key].strip():
            raise RecipeError(f"{where}: {key!r} must be a text, got {_short(raw[key])}.")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
