"""Code digest of a step: a hash of every definition that its work can reach.

A definition is a function, a class or a constant of a module. Its hash covers its own text and,
recursively, the definitions of this project that the text names. It does not cover the file, nor
the name of a function or constant: moving, splitting or renaming them invalidates no cache.

Comments, docstrings, formatting, annotations of functions and error messages do not change outputs
and are left out. One exception: if an argument is annotated with a class that has methods, the
class counts, since the function may call them. Files are parsed, not imported, so a plan does not
need TensorFlow.

A module that can't be followed counts as a whole: one that is passed as a value, or loaded by
``import a.b`` or ``from a.b import *``.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fourstage.digests import digest
from fourstage.settings import REPOSITORY

# Packages whose code determines outputs. The store, MLflow and Prefect only carry results.
ROOMS = ("corpora", "models", "data_contracts")
COMPUTING = ("fourstage.label_order",)  # leaves that do so, too
OURS = (*ROOMS, "fourstage", "tasks", "flows")
# Literals by which a part is chosen before any work; the choice itself is in recipe and keys.
CHOOSING = {"CONTINUES", "ANSWERS_PROMPTS", "HIDES_TOKENS", "NEEDS_MASK"}
EFFECTS = "<effects>"  # module-level statements that are not definitions
ALL = "<all>"


class Place(NamedTuple):
    """Location of a definition: its file and its name, which may be `EFFECTS` or `ALL`."""

    file: Path
    name: str


@dataclass(frozen=True)
class Said:
    """Text of a definition, with references to other definitions numbered, and their places."""

    text: str
    names: tuple[Place, ...]


@cache
def closure_digest(*starts: Path) -> str:
    """sha256 over every definition reachable from the files `starts`, including their own."""
    reached = _reached(starts)
    known = {place: _sha(said.text) for place, said in reached.items()}
    # Each round follows references one level deeper, until no more definitions become distinct.
    apart = 0
    while len(set(known.values())) > apart:
        apart = len(set(known.values()))
        known = {
            place: _sha(said.text, *_in_order(place, [known[name] for name in said.names]))
            for place, said in reached.items()
        }
    return digest(sorted(set(known.values())))


@cache
def project_digest() -> str:
    """sha256 of all code that a closure can reach; of Python too, which writes the syntax trees."""
    state = hashlib.sha256(sys.version.encode())
    for room in OURS:
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            state.update(f"\0{path.relative_to(REPOSITORY)}\0".encode() + path.read_bytes())
    return state.hexdigest()


def closure(*starts: Path) -> set[Place]:
    """Every definition reachable from the files `starts`, including their own."""
    return set(_reached(starts))


def module_file(name: str) -> Path:
    """File of a module of this project, by its dotted name."""
    path = _find(name)
    if path is None:
        raise AssertionError(f"no module {name}")
    return path


def _reached(starts: Iterable[Path]) -> dict[Place, Said]:
    reached: dict[Place, Said] = {}
    pending = [Place(start.resolve(), ALL) for start in starts]
    while pending:
        place = pending.pop()
        if place not in reached:
            reached[place] = said = _module(place.file).say(place.name)
            pending.extend(said.names)
    return reached


def _in_order(place: Place, hashes: list[str]) -> list[str]:
    """Sort the hashes of a whole module: the order of its definitions does not matter."""
    return sorted(hashes) if place.name == ALL else hashes


def _sha(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _module(path: Path) -> _Module:
    return _Module(path)


class _Module:
    """A parsed file: its definitions by name, its imports and its other statements."""

    def __init__(self, path: Path):
        self.path = path
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, str] = {}  # {local name: dotted name}
        self.effects: list[ast.stmt] = []
        self.whole: list[str] = []  # modules that count as a whole
        self.said: dict[str, Said] = {}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports |= _imported(node)
                self.whole += _loaded(node)
            elif names := _defined(node):
                for name in (name for name in names if name not in CHOOSING):
                    self.definitions.setdefault(name, []).append(node)
            elif not (_is_value(node) or _for_scripts(node)):
                for inner in _own_imports(node):
                    self.imports |= inner
                if not _for_types(node):
                    self.effects.append(node)

    def say(self, name: str) -> Said:
        """Text of a definition, of the whole module (`ALL`) or of its `EFFECTS`."""
        if name not in self.said:
            self.said[name] = self._all() if name == ALL else self._one(name)
        return self.said[name]

    def _all(self) -> Said:
        return Said("", tuple(Place(self.path, name) for name in (*self.definitions, EFFECTS)))

    def has_methods(self, name: str) -> bool:
        """Whether a name is a class with a method that has a body, unlike a protocol's."""
        classes = [n for n in self.definitions.get(name, ()) if isinstance(n, ast.ClassDef)]
        methods = (n for found in classes for n in found.body if isinstance(n, ast.FunctionDef))
        return any(not _is_value(node) for n in methods for node in _without_docstring(n.body))

    def _one(self, name: str) -> Said:
        nodes = self.effects if name == EFFECTS else self.definitions[name]
        writer = _Normaliser(self, own=name)
        text = "\n".join(ast.dump(writer.visit(_copied(node))) for node in nodes)
        if name != EFFECTS:
            writer.number(Place(self.path, EFFECTS))
        for place in filter(None, map(_place, self.whole if name == EFFECTS else ())):
            writer.number(place)
        return Said(text, tuple(writer.names))


class _Normaliser(ast.NodeTransformer):
    """Removes from a definition what can't change outputs and numbers the definitions it names."""

    def __init__(self, module: _Module, own: str):
        self.module = module
        self.own = own
        self.names: dict[Place, int] = {}
        self.scopes = [module.imports]  # innermost last
        self.in_function = False

    def number(self, place: Place) -> str:
        return f"§{self.names.setdefault(place, len(self.names))}"

    def visit_Import(self, node: ast.Import) -> ast.AST:
        """Drop an import in a function: its names are followed where they are used."""
        return ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """As `visit_Import`."""
        return ast.copy_location(ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if node.name == self.own and not self.in_function and len(self.scopes) == 1:
            node.name = ""
        node.body = _without_docstring(node.body)
        node.returns = None
        arguments = node.args
        rest = [a for a in (arguments.vararg, arguments.kwarg) if a]
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest):
            self._follow_methods(argument.annotation)
            argument.annotation = None
        self.scopes.append({k: v for inner in _own_imports(node) for k, v in inner.items()})
        outside, self.in_function = self.in_function, True
        self.generic_visit(node)
        self.in_function = outside
        self.scopes.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Keep the name of a class: Keras names layers after it."""
        node.body = _without_docstring(node.body)
        self.scopes.append({})
        self.generic_visit(node)
        self.scopes.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Keep annotations of class fields, which define them; drop those of variables."""
        if len(self.scopes) > 1 and not self.in_function:
            return self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if len(self.scopes) == 1 and [_name(target) for target in node.targets] == [self.own]:
            node.targets = []
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Keep the exception's type, drop its message."""
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        node.cause = None
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        chain = [node.attr]
        base = node.value
        while isinstance(base, ast.Attribute):
            chain.insert(0, base.attr)
            base = base.value
        imported = self._imported(base.id) if isinstance(base, ast.Name) else None
        if imported is None or not _ours(imported):
            return self.generic_visit(node)
        # The longest prefix that is a module, then the name in that module.
        taken = 0
        while taken < len(chain) and _find(".".join([imported, *chain[: taken + 1]])):
            taken += 1
        if taken < len(chain) and _find(".".join([imported, *chain[:taken]])):
            taken += 1
        found: ast.expr = self._named(".".join([imported, *chain[:taken]]), node)
        for attribute in chain[taken:]:
            found = ast.copy_location(ast.Attribute(found, attribute, node.ctx), node)
        return found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        imported = self._imported(node.id)
        if imported is not None:
            return self._named(imported, node)
        if node.id == self.own:
            return ast.copy_location(ast.Name("§own", node.ctx), node)
        if node.id in self.module.definitions:
            place = Place(self.module.path, node.id)
            return ast.copy_location(ast.Name(self.number(place), node.ctx), node)
        return node

    def _follow_methods(self, annotation: ast.expr | None) -> None:
        """Follow an argument's class if it has methods: the function may call them."""
        for node in ast.walk(annotation) if annotation else ():
            if isinstance(node, ast.Name):
                imported = self._imported(node.id)
                here = Place(self.module.path, node.id) if node.id != self.own else None
                place = _place(imported) if imported else here
                if place and _module(place.file).has_methods(place.name):
                    self.number(place)

    def _imported(self, name: str) -> str | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _named(self, dotted: str, node: ast.expr) -> ast.Name:
        """Resolve an imported name to a definition of this project or a third-party name."""
        place = _place(dotted)
        if place is not None:
            name = self.number(place)
        else:  # packages that only carry results count by the name alone
            name = dotted.rpartition(".")[2] if _ours(dotted) else dotted
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _copied(node: Any) -> Any:
    """A copy of a syntax tree without its places in the file, which cost `copy.deepcopy` most."""
    if isinstance(node, list):
        return [_copied(item) for item in node]
    if isinstance(node, ast.AST):
        return type(node)(**{name: _copied(value) for name, value in ast.iter_fields(node)})
    return node


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names that an import statement binds: {local name: dotted name}."""
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {
        alias.asname or alias.name.split(".")[0]: alias.name
        if alias.asname
        else alias.name.split(".")[0]
        for alias in node.names
    }


def _loaded(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Modules whose used names are unknown: ``import a.b`` and ``from a.b import *``."""
    if isinstance(node, ast.ImportFrom):
        return [str(node.module)] if node.names[0].name == "*" else []
    return [alias.name for alias in node.names if not alias.asname]


def _own_imports(node: ast.AST) -> Iterator[dict[str, str]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import | ast.ImportFrom):
            yield _imported(inner)


def _defined(node: ast.stmt) -> list[str]:
    """The names that a module-level statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return _names(node.target)
    if isinstance(node, ast.Assign):
        return [name for target in node.targets for name in _names(target)]
    return []


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return [name for item in target.elts for name in _names(item)]
    return [target.id] if isinstance(target, ast.Name) else []


def _name(target: ast.expr) -> str | None:
    return target.id if isinstance(target, ast.Name) else None


def _for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING"


def _for_scripts(node: ast.stmt) -> bool:
    """``if __name__ == "__main__"``."""
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Compare) and _name(test.left) == "__name__"


def _is_value(node: ast.stmt) -> bool:
    """A docstring, or ``...``."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[1:] if body and _is_value(body[0]) else body


def _ours(dotted: str) -> bool:
    return dotted.split(".")[0] in OURS


def _place(dotted: str) -> Place | None:
    """Where a dotted name of `ROOMS` or `COMPUTING` is defined; `ALL` for a module.

    If the module does not define the name, a local variable shares the module's name or the name is
    created at import. The whole module counts then.
    """
    module, _, name = dotted.rpartition(".")
    if dotted.split(".")[0] not in ROOMS and module not in COMPUTING:
        return None
    path = _find(dotted)
    if path is not None:
        return Place(path, ALL)
    path = _find(module)
    if path is None:
        return None
    found = _module(path)
    if name in found.definitions:
        return Place(path, name)
    if name in found.imports:  # re-exported
        return _place(found.imports[name])
    return Place(path, ALL)


@cache
def _find(name: str) -> Path | None:
    base = REPOSITORY.joinpath(*name.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate.resolve()
    return None
