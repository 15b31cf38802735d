"""Digest of the code a step runs: the import closure within our packages, without docstrings.

Formatting, comments and docstrings change nothing; one changed helper function changes every step
that can reach it. Nothing is imported: files are parsed, so a plan needs no TensorFlow.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

from fourstage.digests import digest
from fourstage.settings import REPOSITORY

# The rooms whose code decides outputs. The store, MLflow and Prefect carry results, they don't
# make them.
ROOMS = ("corpora", "models", "data_contracts")


@cache
def closure_digest(*starts: Path) -> str:
    """sha256 of every file reachable by imports from `starts` (files), they included."""
    return digest(sorted((_portable(path), _parsed(path)[0]) for path in closure(*starts)))


def closure(*starts: Path) -> set[Path]:
    """Every file of our rooms reachable by imports from `starts` (files), they included."""
    seen: set[Path] = set()
    pending = [start.resolve() for start in starts]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending.extend(_parsed(path)[1])
    return seen


def module_file(name: str) -> Path:
    """File of a module of ours by its dotted name."""
    path = _find(name)
    if path is None:
        raise AssertionError(f"no module {name}")
    return path


def _portable(path: Path) -> str:
    """A path that is the same in every clone."""
    return str(path.relative_to(REPOSITORY)) if path.is_relative_to(REPOSITORY) else path.name


@cache
def _parsed(path: Path) -> tuple[str, tuple[Path, ...]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from models.layers import attention` may name a module or something inside one.
            imported += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        _drop_docstring(node)
    code = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    files = (_find(name) for name in imported if name.split(".")[0] in ROOMS)
    return code, tuple(sorted({file for file in files if file is not None}))


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    first = node.body[0] if node.body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        node.body = node.body[1:]


def _find(name: str) -> Path | None:
    base = REPOSITORY.joinpath(*name.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None
