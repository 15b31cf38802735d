"""Joins other tables to the records of a source: labels or splits in files of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpora.answers import label_of
from corpora.archives import contents
from corpora.file_state import FileState
from corpora.readers import Raw, format_by_name, records
from data_contracts.records import Rejected, Split
from data_contracts.sources import Fields, Join, Source
from fourstage.errors import ContractViolation


@dataclass(frozen=True)
class JoinedTable:
    """A table in memory.

    Attributes:
        column: The column that both have.
        rows: The split and the values of each record, by its value in that column. Of parallel
            text, where each split has a first line, by the split and that value.
        parallel: Whether it is parallel text.
    """

    column: str
    rows: Mapping[Any, tuple[Split | None, Mapping[str, Any]]]
    parallel: bool = False

    def added_to(
        self, raw: Raw, name: str, split: Split | None
    ) -> tuple[Split | None, Raw | Rejected]:
        """A record with the columns of its partner, and its split; a record's own columns stay.

        Args:
            raw: The record.
            name: Name of its file.
            split: The split it is listed under so far.
        """
        key: Any = label_of(raw.values.get(self.column))[0].strip()
        key = (split, key) if self.parallel else key
        if key not in self.rows:
            location = f"{name}:{raw.line}"
            reason = f"no record to join by {self.column!r}"
            return split, Rejected(location, location, reason)
        listed, values = self.rows[key]
        return listed or split, Raw(raw.line, {**values, **raw.values})

    def check_lines(self, source: Source, read: Mapping[Any, int]) -> None:
        """Check that parallel text has as many lines on both sides.

        Args:
            source: The source.
            read: Lines of its own files by split.

        Raises:
            ContractViolation: It has not: then nobody knows which lines belong together.
        """
        found = Counter(split for split, _ in self.rows.values())
        for split in {**found, **read}:
            if self.parallel and found[split] != read.get(split, 0):
                where = f" of split {split}" if split else ""
                raise ContractViolation(
                    f"source {source.name}: expected as many lines in the joined files as in "
                    f"'files'{where}, got {found[split]:,} and {read.get(split, 0):,}; line n of "
                    "one must belong to line n of the other."
                )


def joined_table(source: Source, join: Join, states: Sequence[FileState]) -> JoinedTable:
    """The table of a join.

    Raises:
        ContractViolation: A file cannot be read, or has a value of the column twice.
    """
    rows: dict[Any, tuple[Split | None, Mapping[str, Any]]] = {}
    parallel = source.format == "parallel"
    for state in states:
        for content in contents(state):
            # A list of values has no columns: it is text, one value per line.
            listed = format_by_name(content.name) == "text"
            table = source.model_copy(
                update={
                    "fields": Fields(text=join.by),
                    "join": (),
                    "where": {},
                    "columns": (),
                    "document": "line",
                    "format": "text" if listed else source.format,
                }
            )
            for item in records(table, content):
                if isinstance(item, Rejected):
                    raise ContractViolation(
                        f"{content.where}: {item.location}: {item.reason}; correct the table that "
                        f"source {source.name} joins."
                    )
                key: Any = label_of(item.values.get(join.by))[0].strip()
                key = (state.split, key) if parallel else key
                if key in rows:
                    raise ContractViolation(
                        f"{content.where}: line {item.line}: duplicate value of {join.by!r}; "
                        f"source {source.name} can join one record per value."
                    )
                rows[key] = state.split, item.values
    return JoinedTable(join.by, rows, parallel)
