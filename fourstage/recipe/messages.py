"""The message for each fault of a recipe: where, what was expected, what came, what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fourstage.errors import RecipeError, UnknownNameError, look_alikes
from fourstage.recipe.paths import Path, path_text
from fourstage.recipe.schema import Part, Recipe
from fourstage.strict_yaml import kind_of, limit_of, number_hint

_LONGEST = re.compile(r"\{0,(\d+)\}\$\Z")  # how many characters a pattern allows after the first
_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}
_PATTERNS = {
    "init": "hf:owner/name@commit, folder:path, models:/name@alias or models:/name/version",
    "name": "lower-case letters, digits, '.', '_' and '-', the first a letter or a digit",
    "model": "lower-case letters, digits, '.', '_' and '-', the first a letter or a digit",
}


def raise_all(faults: Sequence[RecipeError | str]) -> None:
    """Raise all faults as one error; a single one is raised as it is.

    Raises:
        RecipeError: There is a fault.
    """
    unique = list({str(fault): fault for fault in faults}.values())
    if not unique:
        return
    if len(unique) == 1:
        only = unique[0]
        raise only if isinstance(only, RecipeError) else RecipeError(only)
    raise RecipeError("\n".join(str(fault) for fault in unique))


def faults_of(
    error: ValidationError,
    value: Mapping[str, Any],
    where: Mapping[Path, str],
    spellings: Mapping[Path, str],
) -> list[RecipeError]:
    """The faults found by the schema.

    Args:
        error: The error of pydantic.
        value: The recipe as given.
        where: The file or option that each path came from; the empty path is the recipe's own file.
        spellings: The original words that YAML read as true or false.
    """
    found = error.errors(include_url=False)
    return [
        _fault(details, value, where, spellings)
        for details in found
        # Pydantic counts the valid entries only: with a faulty one a list is "too short", too.
        if details["type"] != "too_short" or not any(_inside(other, details) for other in found)
    ]


def _inside(details: ErrorDetails, of: ErrorDetails) -> bool:
    """Whether a fault is of something in the other one's value."""
    inner, outer = details["loc"], of["loc"]
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def source_of(path: Path, where: Mapping[Path, str]) -> str:
    """The file or option that set the value at `path`, something inside it, or what holds it."""
    inside = {place for given, place in where.items() if given[: len(path)] == path}
    if path not in where and len(inside) == 1:
        return inside.pop()
    while path not in where:
        path = path[:-1]
    return where[path]


def _fault(
    details: ErrorDetails,
    value: Mapping[str, Any],
    where: Mapping[Path, str],
    spellings: Mapping[Path, str],
) -> RecipeError:
    path, part, got = _follow(details["loc"], value)
    at = _place(path, where)
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        key = str(path[-1])
        holder = path[:-1]
        hint = _unit_hint(key, part)
        return UnknownNameError(
            _place(holder, where, given=path), key, f"a key of {part.a_key_of}", keys_of(part), hint
        )
    if kind == "missing":
        key = str(details["loc"][-1])
        return RecipeError(f"{_place(path, where)}: the key {key!r} is missing")
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        if isinstance(got, str):
            return UnknownNameError(at, got, f"a value of {path[-1]!r}", known)
        return RecipeError(
            f"{at}: expected one of {', '.join(known)}, got {_got(got, path, spellings)}"
        )
    if limit := limit_of(kind, context):
        return RecipeError(f"{at}: expected {limit}, got {got}")
    if kind in _TYPES:
        return RecipeError(
            f"{at}: expected {_TYPES[kind]}, got {_got(got, path, spellings)}"
            f"{_advice(kind, got, path, spellings)}"
        )
    if kind == "string_pattern_mismatch":
        wanted = _PATTERNS.get(str(path[-1]), f"text like {context.get('pattern')}")
        longest = _LONGEST.search(str(context.get("pattern")))
        if longest and len(got) > (most := int(longest[1]) + 1):
            return RecipeError(f"{at}: expected at most {most} characters, got {len(got):,}")
        return RecipeError(f"{at}: expected {wanted}; got {kind_of(got)}{look_alikes(got)}")
    if kind in ("too_short", "too_long"):
        bound = context.get("min_length", context.get("max_length"))
        words = "at least" if kind == "too_short" else "at most"
        entries = "entry" if bound == 1 else "entries"
        return RecipeError(
            f"{at}: expected {words} {bound} {entries}, got {context.get('actual_length')}"
        )
    if kind == "finite_number":
        return RecipeError(f"{at}: expected a finite number, got {got}")
    return RecipeError(f"{at}: {details['msg']}")


def _place(path: Path, where: Mapping[Path, str], given: Path | None = None) -> str:
    """``recipes/x.yaml: stages[0].objectives``."""
    source = source_of(path if given is None else given, where)
    return f"{source}: {path_text(path)}" if path else source


def _got(value: object, path: Path, spellings: Mapping[Path, str]) -> str:
    if isinstance(value, bool) and path in spellings:
        written = spellings[path]
        if written.casefold() != str(value).casefold():
            return f"`{str(value).lower()}`, which is how YAML reads the word `{written}`"
    return kind_of(value)


def _advice(kind: str, value: object, path: Path, spellings: Mapping[Path, str]) -> str:
    if kind == "string_type":
        if isinstance(value, bool):
            return f"; quote it: '{spellings.get(path, str(value).lower())}'"
        return f"; quote it: '{value}'" if isinstance(value, (int, float)) else ""
    if kind in ("int_type", "float_type") and isinstance(value, str):
        return number_hint(value, whole=kind == "int_type")
    return ""


def _unit_hint(key: str, part: type[Part]) -> str:
    """A hint for keys that are often written one level too high."""
    if part.a_key_of == "a stage" and key in ("steps", "epochs", "tokens"):
        return f"A budget is written `budget: {{{key}: …}}`."
    if part.a_key_of == "a stage" and key in ("learning_rate", "peak_learning_rate", "warmup"):
        return "It belongs to the optimizer: `optimizer: {adamw: {peak_learning_rate: …}}`."
    return ""


def keys_of(part: type[BaseModel]) -> list[str]:
    """The keys as written in a recipe."""
    return [field.alias or name for name, field in part.model_fields.items()]


def _follow(loc: Sequence[str | int], value: object) -> tuple[Path, type[Part], Any]:
    """Follow the location of pydantic, without its names of union members.

    Returns:
        The path in the recipe, the part that has its last key, and the value there.
    """
    path: list[str | int] = []
    part: type[Part] = Recipe
    annotations: list[Any] = [Recipe]
    for element in loc:
        inner: object
        if isinstance(value, Mapping) and element in value:
            part = next(iter(_parts(annotations)), part)
            annotations = [_annotation(part, element)] if _parts(annotations) else annotations
            inner = value[element]
        elif isinstance(value, (list, tuple)) and isinstance(element, int):
            inner = value[element]
        else:
            continue
        value = inner
        path.append(element)
    return tuple(path), part, value


def _annotation(part: type[Part], key: str | int) -> Any:
    for name, field in part.model_fields.items():
        if key == (field.alias or name):
            return field.annotation
    return None


def _parts(annotations: Sequence[Any]) -> list[type[Part]]:
    """The parts inside annotations such as ``tuple[Stage, ...] | None``."""
    found: list[type[Part]] = []
    for annotation in annotations:
        if isinstance(annotation, type) and issubclass(annotation, Part):
            found.append(annotation)
        else:
            found += _parts(get_args(annotation))
    return found
