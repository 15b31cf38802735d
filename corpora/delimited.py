"""Reads delimited tables. An unclosed quote is an error, not a giant row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from corpora.archives import Content
from corpora.decoding import all_lines, check_text
from corpora.limits import MAX_LINE_BYTES
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation, did_you_mean, listed

# A quoted field with more lines than this counts as an unclosed quote.
MAX_RECORD_LINES = 10_000

# From this many lines, or as many as have so many characters, the delimiter is told.
SAMPLED_LINES, SAMPLED_CHARACTERS = 40, 1 << 20

# A cell that may be shown as a column's name; a longer one, or one with blanks, may be text.
_NAME = re.compile(r"[^\W\d][\w.-]{0,39}")

# The csv module's limit of 128 KiB applies to the whole process; ours is a limit per line.
csv.field_size_limit(MAX_LINE_BYTES)


def read_table(
    content: Content, source: Source, delimiter: str, quoted: bool
) -> Iterator[Raw | Rejected]:
    """Each row of a table by column name; all values stay text.

    Raises:
        ContractViolation: A quote is never closed, or a column named by the source is missing.
    """
    feed = _Lines(content, source)
    names = list(source.columns)
    if len(names) != 1:  # in a single column of text quotes are plain characters
        delimiter = delimiter_of(feed.first(), delimiter, quoted)
    rows = _reader(feed, delimiter, quoted)
    if names:
        _check_columns(content, source, names)
    while True:
        feed.start = 0
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if feed.number > feed.start or "unexpected end of data" in str(error):
                raise ContractViolation(
                    f"{content.where}: line {feed.start}: a quote opens here and is never closed "
                    f'(read to line {feed.number}); double it ("") or set `quotes: none`.'
                ) from error
            location = f"{content.name}:{feed.start}"
            malformed = Rejected(location, location, "malformed row", detail=str(error)[:80])
            yield feed.take_fault() or malformed
            continue
        if fault := feed.take_fault():
            location = f"{content.name}:{feed.start}"
            yield replace(fault, id=location, location=location)
            continue
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if not names:
            names = [name.strip() for name in row]
            _check_columns(content, source, names)
            continue
        location = f"{content.name}:{feed.start}"
        if len(row) != len(names):
            yield Rejected(
                location,
                location,
                "wrong number of fields",
                detail=f"{len(row)} fields, {len(names)} columns",
            )
            continue
        yield check_text(Raw(feed.start, dict(zip(names, row, strict=True))), content.name)


def first_row(content: Content, source: Source, delimiter: str, quoted: bool) -> list[str]:
    """The cells of a table's first row, whether or not it is a header; none of an empty table.

    Raises:
        ContractViolation: The row is malformed.
    """
    feed = _Lines(content, source)
    try:
        for row in _reader(feed, delimiter_of(feed.first(), delimiter, quoted), quoted):
            if feed.take_fault() is None and row and (len(row) > 1 or row[0].strip()):
                return [cell.strip() for cell in row]
    except csv.Error as error:
        raise ContractViolation(
            f"{content.where}: its first row is malformed ({str(error)[:80]}); fix it, or set"
            " `quotes: none`."
        ) from error
    return []


def delimiter_of(first: Sequence[str], delimiter: str, quoted: bool = True) -> str:
    """The delimiter actually used where a comma is expected.

    It is the one of comma, ``;``, tab and ``|`` by which most records are as wide as the first; of
    those that are as good the comma, else the one with the widest first record. Excel
    writes ``;`` in many countries, databases write tabs and bars.

    Args:
        first: The first lines; the last record may be cut.
        delimiter: The delimiter that is expected.
        quoted: Whether quotes hold a field together.
    """
    if delimiter != ",":
        return delimiter

    def fitting(each: str) -> tuple[float, bool, int]:
        widths = _widths(first, each, quoted)
        width = widths[0] if widths else 0
        fit = widths.count(width) / len(widths) if width > 1 else 0.0
        return fit, each == ",", width

    return max(",;\t|", key=fitting)


def _widths(first: Sequence[str], delimiter: str, quoted: bool) -> list[int]:
    """The number of fields of each record, 0 of a malformed one."""
    rows, widths = _reader(first, delimiter, quoted), []
    while True:
        try:
            if row := next(rows):
                widths.append(len(row))
        except StopIteration:
            return widths
        except csv.Error:
            widths.append(0)


def _reader(feed: Iterable[str], delimiter: str, quoted: bool) -> Iterator[list[str]]:
    return csv.reader(
        feed,
        delimiter=delimiter,
        quotechar='"' if quoted else None,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )


class _Lines:
    """Lines for the csv module, with the number of the line where the current record starts."""

    def __init__(self, content: Content, source: Source):
        self._lines: Iterator[tuple[int, str, Rejected | None]] = all_lines(content, source)
        self._where = content.where
        self.number = 0
        self.start = 0
        self._fault: Rejected | None = None

    def first(self) -> list[str]:
        """The first lines that can be decoded, without consuming them."""
        items, characters = [], 0
        while len(items) < SAMPLED_LINES and characters < SAMPLED_CHARACTERS:
            if (item := next(self._lines, None)) is None:
                break
            items.append(item)
            characters += len(item[1])
        self._lines = chain(items, self._lines)
        return [line for _, line, fault in items if fault is None]

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.number, line, fault = next(self._lines)
        self._fault = self._fault or fault
        if not self.start:
            self.start = self.number
        elif self.number - self.start > MAX_RECORD_LINES:
            raise ContractViolation(
                f"{self._where}: line {self.start}: a quote opens here and is not closed "
                f'within {MAX_RECORD_LINES:,} lines; double it ("") or set `quotes: none`.'
            )
        return line

    def take_fault(self) -> Rejected | None:
        """Why the current record cannot be read; None if all its lines could be decoded."""
        taken, self._fault = self._fault, None
        return taken


def _check_columns(content: Content, source: Source, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    # The first row of a table without a header is data, which no message quotes.
    told = [name for name in names if _NAME.fullmatch(name)]
    if repeated:
        one = repr(repeated[0]) if repeated[0] in told else names.index(repeated[0]) + 1
        raise ContractViolation(
            f"{content.where}: the column {one} occurs twice in the header; rename one."
        )
    for role, column in source.columns_needed():
        if column not in names:
            shown = f", such as {listed(told, 20)}" if told else ", none with a short name"
            raise ContractViolation(
                f"{content.where}: line 1: expected a column {column!r} ({role})"
                f"{did_you_mean(column, told)} It has {len(names):,} columns{shown}. Correct "
                "'fields', or name the 'columns' of a table without a header."
            )
