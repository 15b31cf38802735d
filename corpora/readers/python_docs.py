"""Docstrings of installed packages, read from syntax trees; nothing is imported."""

from __future__ import annotations

import ast
import gc
import inspect
import re
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from doctest import DocTestParser
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from corpora.archives import Content
from corpora.exercises import exercises
from corpora.files import FoundFile
from corpora.limits import MAX_DOCUMENT_BYTES
from corpora.python_graph import triples
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation, UnknownNameError

SUFFIXES = (".py",)

STANDARD_LIBRARY = "stdlib"
# Tests, vendored packages and generated code do not document the package.
_LEFT_OUT = {
    "tests",
    "test",
    "testing",
    "__pycache__",
    "site-packages",
    "dist-packages",
    "_vendor",
    "_vendored",
    "vendor",
    "externals",
    "extern",
    "_pyinstaller",
    "array_api_compat",
    "array_api_extra",
    "idlelib",
    "lib2to3",
    "turtledemo",
    "pydoc_data",
    "ensurepip",
    "_tf_keras",
}
_MINIMUM_CHARACTERS = 40
# A file with a smaller share of its text in triple quotes is skipped without parsing. In the
# built-in sources that saves a quarter of the bytes and time, and loses 2 % of the documentation.
_DOCUMENTED = 0.1
_QUOTED = re.compile(rb"(\"\"\"|''')(.*?)\1", re.DOTALL)
# Names that users give to a library, besides those of its distribution and its modules.
_ALIASES = {
    "numpy": ("np",),
    "pandas": ("pd",),
    "scipy": ("sp",),
    "matplotlib": ("mpl", "plt", "pyplot", "pylab"),
    "scikit-learn": ("sklearn", "scikit learn", "scikit", "skl"),
    "tensorflow": ("tf",),
    "keras": ("tf.keras",),
    "sqlalchemy": ("sa",),
}
_PASSAGE_WORDS = range(14, 90)
_WORD = re.compile(r"[A-Za-z][a-z'-]*")
_NOT_PROSE = re.compile(
    r">>>|\.\. |::|={3}|-{3}|~{3}|\^{3}|\|[ -]|```|^\s*[-*] |\$\$", re.MULTILINE
)

Documentation = tuple[int, str, str]  # line, qualified name within the module, the cleaned text


def package_files(source: Source) -> list[FoundFile]:
    """The Python files of a source's packages, in the source's order, sorted within each.

    Raises:
        UnknownNameError: A package is not installed.
    """
    found: list[FoundFile] = []
    for package in source.packages:
        try:
            files = _files_of(package)
        except (PackageNotFoundError, ValueError):
            installed = {str(each.metadata["Name"]) for each in distributions()}
            raise UnknownNameError(
                f"source {source.name}: packages", package, "an installed package", installed
            ) from None
        found += [FoundFile(None, path, f"{package}:{name}") for name, path in files]
    return found


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """One record per docstring (``document: object``), per module, or per passage of prose.

    With ``document: session`` a record holds the examples of a docstring, input and output in turn,
    one per line: a dialogue, for a source with ``sentences: lines``.

    With ``document: triple`` a record is a triple of `corpora.python_graph`, with the values
    ``head``, ``relation`` and ``tail``.

    Values: the text under the source's text field, ``id`` (``library:module.object``), ``library``,
    ``module`` and ``object``. The names of all the source's libraries are removed from passages.
    Passages of a source whose answers are no labels have those of `corpora.exercises`, too.
    """
    library, _, name = content.name.partition(":")
    module = _module_name(name or library)
    data = content.stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ContractViolation(
            f"{content.where}: a Python file of more than {len(data) - 1:,} bytes."
        )
    if source.document == "triple":
        yield from _triples(content, library, module, data)
        return
    documentation = _documentation(content.state.sha256, data)
    if documentation is None:
        location = f"{content.name}:1"
        yield Rejected(location, location, "not Python of this version")
        return
    column = source.fields.text
    document = source.document or "object"

    def raw(
        line: int,
        qualified: str,
        text: str,
        part: str = "",
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> Raw:
        path = f"{module}.{qualified}" if qualified else module
        return Raw(
            line,
            {
                "id": f"{library}:{path}{part}",
                "library": library,
                "module": module,
                "object": path,
                column: text,
                **more,
            },
        )

    if document == "module":
        if documentation:
            yield raw(1, "", "\n\n".join(text for _, _, text in documentation))
        return
    seen: dict[str, int] = {}
    for line, qualified, text in documentation:
        # Overloads and setters share a name.
        seen[qualified] = seen.get(qualified, 0) + 1
        again = f"~{seen[qualified]}" if seen[qualified] > 1 else ""
        if document == "session":
            session = _session(text)
            if session:
                yield raw(line, qualified, "\n".join(session), again)
            continue
        if document != "passage":
            yield raw(line, qualified, text, again)
            continue
        for number, passage in enumerate(_passages(text)):
            passage = without_names(passage, source.packages)
            more = exercises(passage) if source.answers != "label" else {}
            yield raw(line, qualified, passage, f"{again}#{number}", more)


def _triples(content: Content, library: str, module: str, data: bytes) -> Iterator[Raw | Rejected]:
    found = triples(data, module)
    if found is None:
        location = f"{content.name}:1"
        yield Rejected(location, location, "not Python of this version")
        return
    for number, (line, head, relation, tail) in enumerate(found):
        identity = f"{library}:{module}#{number}"
        yield Raw(line, {"id": identity, "head": head, "relation": relation, "tail": tail})


def _session(text: str) -> list[str]:
    """The input and output of a docstring's examples, in turn."""
    try:
        examples = DocTestParser().get_examples(text)
    except ValueError:  # prompts that are not examples
        return []
    utterances: list[str] = []
    typed: list[str] = []
    for example in examples:
        typed.append(" ".join(example.source.split()))
        if example.want:
            utterances += ["; ".join(typed), " ".join(example.want.split())]
            typed = []
    return utterances


def without_names(text: str, packages: tuple[str, ...]) -> str:
    """The text without the names of some libraries, in any case, also inside longer names.

    Example:
        >>> without_names("NumPy's np.ndarray, not scikit-learn", ("numpy", "scikit-learn"))
        "'s ndarray, not"
    """
    text = _names_pattern(packages).sub("", text)
    return re.sub(r"\s{2,}", " ", text).strip()


def library_names(packages: tuple[str, ...]) -> list[str]:
    """The names of some packages: distributions, modules, usual aliases; sorted."""
    names: set[str] = set()
    for package in packages:
        if package != STANDARD_LIBRARY:
            names |= {package, package.replace("-", "_"), package.replace("-", " ")}
            names.update(_modules(package), _ALIASES.get(package, ()))
    return sorted(names)


@lru_cache(maxsize=64)
def _names_pattern(packages: tuple[str, ...]) -> re.Pattern[str]:
    by_length = sorted(library_names(packages), key=len, reverse=True)
    # A short alias occurs inside many unrelated words, so only whole words match; a long name is
    # unmistakable inside words, too.
    parts = [re.escape(name) if len(name) > 3 else rf"\b{re.escape(name)}\b" for name in by_length]
    # A dot after a name leads to a member, whose own name stays.
    return re.compile(rf"(?:{'|'.join(parts) or '(?!)'})(?:\.(?=\w))?", re.IGNORECASE)


@lru_cache(maxsize=256)
def _modules(package: str) -> tuple[str, ...]:
    """Top-level modules of an installed distribution."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        return ()
    return tuple(
        sorted(
            {file.parts[0] for file in files if file.suffix == ".py" and len(file.parts) > 1}
            - {"..", "__pycache__"}
        )
    )


def _passages(text: str) -> Iterator[str]:
    """Paragraphs of plain prose."""
    for paragraph in re.split(r"\n\s*\n", text):
        if _NOT_PROSE.search(paragraph):
            continue
        lines = paragraph.split("\n")
        # An indented or defining block is part of a parameter list.
        if any(line[:1].isspace() for line in lines) or re.match(r"\w+ ?:", lines[0]):
            continue
        passage = " ".join(paragraph.split())
        words = _WORD.findall(passage)
        if len(words) in _PASSAGE_WORDS and passage[0].isupper() and passage[-1] in ".:!?":
            letters = sum(map(len, words))
            if letters >= 0.7 * len(passage.replace(" ", "")):
                yield passage


@cache
def _files_of(package: str) -> tuple[tuple[str, str], ...]:
    """Name and path of each file, sorted by name.

    Cached, because a process keeps the packages it began with, and listing thousands of files takes
    most of the time of a plan.

    Raises:
        PackageNotFoundError: It is not installed.
        ValueError: No package can have that name.
    """
    found = _standard_library() if package == STANDARD_LIBRARY else _distribution(package)
    return tuple((name, str(path)) for name, path in sorted(found))


def _standard_library() -> Iterator[tuple[str, Path]]:
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in root.rglob("*.py"):
        relative = path.relative_to(root)
        if not _LEFT_OUT.intersection(relative.parts):
            yield relative.as_posix(), path


def _distribution(package: str) -> Iterator[tuple[str, Path]]:
    found = distribution(package)
    for file in found.files or []:
        parts = PurePosixPath(file).parts
        if file.suffix == ".py" and not _LEFT_OUT.intersection(parts) and parts[0] != "..":
            path = Path(str(found.locate_file(file)))
            if path.is_file():
                yield file.as_posix(), path


def _module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _documentation(sha256: str, data: bytes) -> tuple[Documentation, ...] | None:
    """The docstrings of a file in order; None if it is not Python.

    Cached by the file's digest, because a corpus and a dataset are often made from the same
    packages and parsing dominates the time (9 MB/s).
    """
    if sha256 not in _parsed:
        if len(_parsed) >= _MOST_PARSED:
            _parsed.clear()
        _parsed[sha256] = _parse(data)
    return _parsed[sha256]


_parsed: dict[str, tuple[Documentation, ...] | None] = {}
_MOST_PARSED = 8192


def _parse(data: bytes) -> tuple[Documentation, ...] | None:
    if sum(len(match[2]) for match in _QUOTED.finditer(data)) < _DOCUMENTED * len(data):
        return ()
    # A syntax tree is a hundred thousand new objects and no garbage; the collector would add a
    # third to the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes in other people's strings
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finally:
        if collecting:
            gc.enable()
    found: list[Documentation] = []
    _collect(tree, "", found)
    return tuple(found)


def _collect(node: ast.AST, qualified: str, found: list[Documentation]) -> None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        text = ast.get_docstring(node, clean=False)
        if text is not None and len(text) >= _MINIMUM_CHARACTERS:
            found.append((getattr(node, "lineno", 1), qualified, inspect.cleandoc(text)))
        if isinstance(node, ast.Module | ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    _collect(child, f"{qualified}.{child.name}" if qualified else child.name, found)
