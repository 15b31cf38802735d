"""What a Python file says of its names: where they are, what they extend, what they give back."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

IN, EXTENDS, RETURNS = "_in", "_extends", "_returns"

Triple = tuple[int, str, str, str]  # line, head, relation, tail


def triples(data: bytes, module: str) -> list[Triple] | None:
    """The triples of a file in its order, each once; None if it is not Python of this version.

    Classes and functions are known by their last name, so that files are one graph: a method is in
    its class, a class in its module, a class extends its bases, a function returns what its
    annotation says.

    Args:
        data: The file.
        module: The module's dotted name.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes in other people's strings
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = {triple[1:]: triple for triple in reversed([*_inside(tree, module)])}
    return sorted(triple for triple in found.values() if triple[1] != triple[3])


def _inside(node: ast.Module | ast.ClassDef, name: str) -> Iterator[Triple]:
    """What is said of the classes and functions of a module or a class."""
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield child.lineno, child.name, IN, name
            for base in map(_name, child.bases):
                if base:
                    yield child.lineno, child.name, EXTENDS, base
            yield from _inside(child, child.name)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.lineno, child.name, IN, name
            if returned := _name(child.returns):
                yield child.lineno, child.name, RETURNS, returned


def _name(node: ast.expr | None) -> str:
    """The last name of an expression such as ``t.Iterator[str]``; empty where it has none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name if name.isidentifier() else ""
        case ast.Subscript(value=value):
            return _name(value)
    return ""
