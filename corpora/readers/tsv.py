"""Tab-separated values with a header (or `columns`); quotes are plain characters."""

from __future__ import annotations

from collections.abc import Iterator

from corpora.archives import Content
from corpora.delimited import first_row, read_table
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = (".tsv", ".tab")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each row by column name."""
    return read_table(content, source, "\t", quoted=source.quotes == "standard")


def columns(content: Content, source: Source) -> list[str]:
    """The cells of the first row."""
    return first_row(content, source, "\t", quoted=source.quotes == "standard")
