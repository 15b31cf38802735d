"""Readers, one file per format; the name in ``format:`` is the name of the file.

A reader has `SUFFIXES` (of the files it is chosen for) and ``read(content, source)``, which yields
`Raw` and `Rejected` records in the file's order. A reader that must be told the columns also has
``columns(content, source)``, which lists those of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation, UnknownNameError

if TYPE_CHECKING:
    from corpora.archives import Content
    from corpora.files import FoundFile

WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")  # of Excel and LibreOffice


@dataclass(frozen=True, slots=True)
class Raw:
    """One unprocessed record: its values by column, and the line (from 1) where it starts."""

    line: int
    values: Mapping[str, Any]


Read = Callable[["Content", Source], Iterator[Raw | Rejected]]


@cache
def formats() -> tuple[str, ...]:
    """Names of all formats, sorted."""
    folder = Path(__file__).parent
    return tuple(sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__"))


def reader(name: str, where: str) -> Read:
    """The `read` function of a format.

    Raises:
        UnknownNameError: No such format exists.
    """
    if name not in formats():
        raise UnknownNameError(f"{where}: format", name, "a format", formats())
    return import_module(f"corpora.readers.{name}").read


def records(source: Source, content: Content) -> Iterator[Raw | Rejected]:
    """The records of a file or member, by the reader of its format.

    Raises:
        ContractViolation: Its name does not tell the format.
    """
    name = source.format or ("python_docs" if source.packages else None)
    name = name or format_by_name(content.name)
    if name is None:
        raise ContractViolation(unknown_format(source, content.where))
    return reader(name, f"source {source.name}")(content, source)


@cache
def _suffixes() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in formats():
        for suffix in import_module(f"corpora.readers.{name}").SUFFIXES:
            found[suffix] = name
    return found


def format_by_name(name: str) -> str | None:
    """The format according to the name of a file or member, without compression suffixes."""
    lowered = name.lower()
    for suffix in (".gz", ".bz2"):
        lowered = lowered.removesuffix(suffix)
    return _suffixes().get(Path(lowered).suffix)


def format_of(source: Source, file: FoundFile) -> str | None:
    """The format of a file; None for an archive, whose members decide.

    Raises:
        UnknownNameError: `format` names no format.
        ContractViolation: The format cannot be determined.
    """
    where = f"source {source.name}"
    if source.format is not None:
        reader(source.format, where)
        return source.format
    from corpora.files import ARCHIVES

    if file.name.lower().endswith(ARCHIVES):
        return None
    name = format_by_name(file.name)
    if name is None:
        raise ContractViolation(unknown_format(source, file.path))
    return name


def reader_files(source: Source, names: Iterable[str]) -> list[Path]:
    """Code files of the readers that a source may need; only a format name leads to them.

    Args:
        source: The source.
        names: Names of its files; the members of an archive may have any format.
    """
    if source.packages:
        wanted: set[str | None] = {"python_docs"}
    elif source.format is not None:
        wanted = {source.format, "text"} if source.join else {source.format}
    else:
        wanted = {format_by_name(name) for name in names}
    known = formats() if None in wanted else sorted(name for name in wanted if name)
    return [Path(__file__).with_name(f"{name}.py") for name in known]


def unknown_format(source: Source, where: str, more: str = "") -> str:
    """The message for a file whose name does not determine its format.

    Args:
        source: Its source.
        where: The file.
        more: What else may be done about it.
    """
    if where.lower().endswith(WORKBOOKS):
        return f"source {source.name}: {where}: a workbook is not read; save it as CSV (UTF-8)."
    known = ", ".join(f"{suffix} ({name})" for suffix, name in sorted(_suffixes().items()))
    return (
        f"source {source.name}: {where}: its name does not tell the format; add 'format:' "
        f"({', '.join(formats())}). Known suffixes: {known}.{more}"
    )
