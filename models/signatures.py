"""Settings of a model part, read from its source without importing it.

Importing a family takes ten seconds, but a plan must reject an unknown setting within one. So the
file is parsed. The settings are the arguments of the public class's ``__init__``, or the fields of
the dataclass that it names as its ``config_class``, with annotations and literal defaults.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError

REQUIRED: Any = object()
_SHARES = frozenset({"rate", "share", "dropout", "threshold", "positive_from", "label_smoothing"})
_OPEN = frozenset({"threshold", "temperature"})
_COUNTS = ("_dim", "_length", "stride", "longest_answer", "beams")
_FROM_NOTHING = frozenset({"memory_length", "evaluation_memory_length", "clamp_length"})
# Of a docstring: what is indented below a title, and there a name with what is indented further.
_SECTION = re.compile(r"^(?:Args|Attributes):\n(.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^    (\w+): (.*(?:\n     +.*)*)", re.MULTILINE)
NOT_SETTINGS = frozenset({"self", "context", "dtype", "name", "vocabulary_size"})


@dataclass(frozen=True)
class Setting:
    """One setting of a model part.

    Attributes:
        name: Name, as written in a recipe.
        types: Names in its annotation, such as ``("float",)``.
        default: Default value; `REQUIRED` if there is none, None also if it is not a literal.
        choices: Allowed words, if the module lists them (``UNITS`` for ``unit``, ``SUMMARIES`` for
            ``summary``) or imports their list from a module of `models`.
    """

    name: str
    types: tuple[str, ...]
    default: Any
    choices: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is REQUIRED

    @property
    def is_share(self) -> bool:
        """Whether it is a share, 0-1, by its name: `_SHARES`, ``_rate`` and the like."""
        return self.name in _SHARES or self.name.endswith(("_rate", "_share", "_dropout"))

    @property
    def is_open(self) -> bool:
        """Whether the ends of its range, 0 and for a share 1, do not belong to it, by its name."""
        return self.name in _OPEN

    @property
    def is_count(self) -> bool:
        """Whether it is a count from 1, by its name; of what is remembered there may be none."""
        counts = self.name.startswith("num_") or self.name.endswith(_COUNTS)
        return counts and self.name not in _FROM_NOTHING


def settings_of(path: Path) -> dict[str, Setting]:
    """{name: setting} of the public class in a file, in the constructor's order.

    Raises:
        RecipeError: The file is not valid Python.
    """
    tree = _tree(path)
    words = _tuples_of_words(tree)
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        found: list[Setting] = []
        for item in node.body:
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "config_class":
                found = list(_fields(tree, ast.unparse(item.value), words).values())
                break
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                found = _settings(item, words)
        return {s.name: s for s in found if s.name not in NOT_SETTINGS}
    return {}


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}:{line}" if line else str(path)
        raise RecipeError(f"{place}: not a Python file that can be read: {error}") from error


def _fields(tree: ast.Module, name: str, words: dict[str, tuple[str, ...]]) -> dict[str, Setting]:
    """{name: setting} of a dataclass's fields, bases first; imported classes are followed."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return _fields(_tree(_imported_file(node, name)), name, words)
        if isinstance(node, ast.ClassDef) and node.name == name:
            found: dict[str, Setting] = {}
            for base in node.bases:
                found |= _fields(tree, ast.unparse(base), words)
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    argument = item.target.id
                    found[argument] = _setting(argument, item.annotation, item.value, words)
            return found
    return {}


def _imported_file(node: ast.ImportFrom, name: str) -> Path:
    path = _file_of(node)
    if path is None:
        module = "." * node.level + (node.module or "")
        raise RecipeError(
            f"{name}: expected a dataclass of arguments, but there is no module {module} from which"
            " it is imported; import it by its full name"
        )
    return path


def _file_of(node: ast.ImportFrom) -> Path | None:
    """The module's file; None if there is none, or its name is not a full one."""
    try:
        spec = None if node.level else importlib.util.find_spec(node.module or "")
    except ModuleNotFoundError:
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _settings(function: ast.FunctionDef, words: dict[str, tuple[str, ...]]) -> list[Setting]:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(plain) - len(arguments.defaults))
    pairs = [
        *zip(plain, [*missing, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return [
        _setting(argument.arg, argument.annotation, default, words) for argument, default in pairs
    ]


def _setting(
    name: str,
    annotation: ast.expr | None,
    default: ast.expr | None,
    words: dict[str, tuple[str, ...]],
) -> Setting:
    value = REQUIRED if default is None else _literal(default)
    return Setting(
        name,
        _names(annotation),
        list(value) if isinstance(value, tuple) else value,  # as a recipe writes it
        _choices(name.upper(), words),
    )


def _choices(name: str, words: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    plurals = (name, f"{name}S", f"{name.removesuffix('Y')}IES")
    return next((words[plural] for plural in plurals if plural in words), ())


def _names(annotation: ast.expr | None) -> tuple[str, ...]:
    if annotation is None:
        return ()
    return tuple(node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)) + tuple(
        "None"
        for node in ast.walk(annotation)
        if isinstance(node, ast.Constant) and node.value is None
    )


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _tuples_of_words(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """{name: words} of the module's constants that are tuples of words, or mappings of them."""
    found: dict[str, tuple[str, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("models."):
            names = {alias.asname or alias.name: alias.name for alias in node.names}
            names = {own: name for own, name in names.items() if name.isupper()}
            path = _file_of(node) if names else None
            if path is not None:
                theirs = _tuples_of_words(_tree(path))
                found |= {own: theirs[name] for own, name in names.items() if name in theirs}
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], _literal(node.value)
            if isinstance(target, ast.Name) and isinstance(value, (tuple, dict)):
                if value and all(isinstance(word, str) for word in value):
                    found[target.id] = tuple(value)
    return found


def meanings_of(path: Path) -> dict[str, str]:
    """{name: meaning} of the settings that `settings_of` gives, from the docstrings.

    These are the ``Args:`` of the public class, or the ``Attributes:`` of its dataclass.
    """
    tree = _tree(path)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            named = (i for i in node.body if isinstance(i, ast.Assign))
            config = (i.value for i in named if ast.unparse(i.targets[0]) == "config_class")
            return _meanings(tree, ast.unparse(next(config, ast.Name(node.name))))
    return {}


def _meanings(tree: ast.Module, name: str) -> dict[str, str]:
    """{name: meaning} of a class's arguments, bases first; imported classes are followed."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            path = _file_of(node)
            return {} if path is None else _meanings(_tree(path), name)
        if isinstance(node, ast.ClassDef) and node.name == name:
            found: dict[str, str] = {}
            for base in node.bases:
                found |= _meanings(tree, ast.unparse(base))
            return found | entries_of(ast.get_docstring(node) or "")
    return {}


def entries_of(docstring: str) -> dict[str, str]:
    """{name: text} of the ``Args:`` or ``Attributes:`` of a docstring."""
    section = _SECTION.search(docstring)
    found = _ENTRY.findall(section[1]) if section else []
    return {name: " ".join(text.split()) for name, text in found}
