"""Checks a part's settings against its constructor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fourstage.strict_yaml import kind_of, number_hint
from models.signatures import Setting


def as_declared(said: Mapping[str, Any], known: Mapping[str, Setting]) -> dict[str, Any]:
    """The known settings, with whole numbers as floats where declared, so 1 and 1.0 share a key."""
    return {
        name: float(value)
        if type(value) is int and "float" in known[name].types and "int" not in known[name].types
        else value
        for name, value in said.items()
        if name in known
    }


def misfit(setting: Setting, value: object) -> str:
    """What is wrong with the type or the range of a setting's value."""
    types = {
        "int": (int, "a whole number"),
        "float": ((int, float), "a number"),
        "str": (str, "text"),
        "bool": (bool, "true or false"),
    }
    holders = {
        "Sequence": (list, "a list"),
        "list": (list, "a list"),
        "tuple": (list, "a list"),
        "Mapping": (dict, "a mapping"),
        "dict": (dict, "a mapping"),
    }
    # The other types of a list or a mapping are those of what it holds.
    wanted = [holders[name] for name in setting.types if name in holders][:1]
    wanted = wanted or [types[name] for name in setting.types if name in types]
    if not wanted:
        return ""
    fits = any(isinstance(value, kind) for kind, _ in wanted) and (
        "bool" in setting.types or not isinstance(value, bool)
    )
    if not fits:
        hint = ""
        if isinstance(value, str) and {"int", "float"} & {*setting.types}:
            hint = number_hint(value, whole="float" not in setting.types)
        return f"expected {' or '.join(words for _, words in wanted)}, got {kind_of(value)}{hint}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if setting.is_share and not 0 <= value <= 1:
            return f"expected a share, 0 to 1, got {value}"
        if setting.is_open and not 0 < value < (1 if setting.is_share else math.inf):
            ends = "between 0 and 1, both excluded" if setting.is_share else "above 0"
            return f"expected a number {ends}, got {value}"
        if "float" not in setting.types and value < 0:
            return f"expected 0 or more, got {value}"
        if setting.is_count and value < 1 and value != setting.default:
            return f"expected 1 or more, got {value}"
    return ""
