"""YAML without surprises: no key twice, no anchors, tags or dates; bounded size and depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fourstage.errors import RecipeError

MAX_BYTES = 1 << 20
MAX_DEPTH = 32


def read_mapping(path: Path, where: str) -> dict[str, Any]:
    """The one mapping in a YAML file.

    Args:
        path: The file.
        where: How messages call it.

    Raises:
        RecipeError: It cannot be read, or holds anything but one mapping with text keys.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecipeError(f"{where}: cannot be read ({error.strerror}).") from error
    if len(data) > MAX_BYTES:
        raise RecipeError(f"{where}: expected at most 1 MiB of YAML, got {len(data):,} bytes.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError(f"{where}: not UTF-8 at byte {error.start}; save it as UTF-8.") from error
    return parse_mapping(text, where)


def parse_mapping(text: str, where: str) -> dict[str, Any]:
    """The one mapping in a YAML text; see `read_mapping`."""
    try:
        _refuse_anchors_and_depth(text, where)
        loader = _Loader(text, where)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise RecipeError(f"{where}: {line}not YAML ({error.problem or error.context}).") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, RecipeError):
            raise
        raise RecipeError(f"{where}: not YAML ({type(error).__name__}).") from error
    if not isinstance(value, dict):
        raise RecipeError(f"{where}: expected a mapping of keys to values, got {kind_of(value)}.")
    return value


def kind_of(value: Any) -> str:
    """What a YAML value is, for messages: kind, and the value itself where that is short."""
    match value:
        case None:
            return "nothing"
        case bool():
            return (
                f"{str(value).lower()} (YAML reads yes, no, on and off so: quote a word you mean)"
            )
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return "a mapping"
    return f"a {type(value).__name__}"


class _Loader(yaml.SafeLoader):
    """`SafeLoader` that refuses a repeated key, and leaves dates as the text they were."""

    def __init__(self, text: str, where: str):
        super().__init__(text)
        self.where = where

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            if not (
                isinstance(key_node, yaml.ScalarNode) and key_node.tag == "tag:yaml.org,2002:str"
            ):
                shown = getattr(key_node, "value", "")
                shown = shown[:40] if isinstance(shown, str) else ""
                raise RecipeError(
                    f"{self.where}: line {line}: a key must be text, got {shown!r}; quote it."
                )
            if key_node.value in lines:
                raise RecipeError(
                    f"{self.where}: the key {key_node.value[:40]!r} stands twice, in lines "
                    f"{lines[key_node.value]} and {line}; keep one."
                )
            lines[key_node.value] = line
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _refuse_anchors_and_depth(text: str, where: str) -> None:
    """Anchors make exponential documents, and depth exhausts the stack; a source needs neither."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if getattr(event, "anchor", None) is not None:
            line = event.start_mark.line + 1
            raise RecipeError(f"{where}: line {line}: anchors and aliases are not used here.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise RecipeError(f"{where}: nested deeper than {MAX_DEPTH} levels.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
