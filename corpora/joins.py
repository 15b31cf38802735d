"""Joins other tables to the records of a source: labels or splits in files of their own."""

from __future__ import annotations

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
        rows: The split and the values of each record, by its value in that column.
    """

    column: str
    rows: Mapping[str, tuple[Split | None, Mapping[str, Any]]]

    def added_to(
        self, raw: Raw, name: str, split: Split | None
    ) -> tuple[Split | None, Raw | Rejected]:
        """A record with the columns of its partner, and its split; a record's own columns stay.

        Args:
            raw: The record.
            name: Name of its file.
            split: The split it is listed under so far.
        """
        key = label_of(raw.values.get(self.column))[0]
        if key not in self.rows:
            location = f"{name}:{raw.line}"
            reason = f"no record to join by {self.column!r}"
            return split, Rejected(location, location, reason)
        listed, values = self.rows[key]
        return listed or split, Raw(raw.line, {**values, **raw.values})


def joined_table(source: Source, join: Join, states: Sequence[FileState]) -> JoinedTable:
    """The table of a join.

    Raises:
        ContractViolation: A file cannot be read, or has a value of the column twice.
    """
    rows: dict[str, tuple[Split | None, Mapping[str, Any]]] = {}
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
                key = label_of(item.values.get(join.by))[0].strip()
                if key in rows:
                    raise ContractViolation(
                        f"{content.where}: line {item.line}: a value of {join.by!r} that was there "
                        f"before; source {source.name} can join one record per value."
                    )
                rows[key] = state.split, item.values
    return JoinedTable(join.by, rows)
