"""The documents or rows of a source that its contract did not quarantine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tasks.store.artifacts import Input

if TYPE_CHECKING:
    from corpora.prepared import PreparedRow

QUARANTINED = "quarantined.json"  # output of a contract: reasons by id


def kept_rows(dataset: Input, contract: Input) -> Iterator[PreparedRow]:
    """The rows of a dataset that its contract did not quarantine."""
    from corpora.prepared import prepared_rows

    aside = quarantined(contract)
    return (row for row in prepared_rows(dataset.folder) if row.id not in aside)


def kept_texts(data: Input, contract: Input) -> Iterator[tuple[str, str, str]]:
    """(id, text, split) of each document or row that its contract did not quarantine.

    Of a row whose answer is a text, that text comes, too.
    """
    from corpora.answers import texts_in
    from corpora.prepared import prepared_documents

    if data.kind == "dataset":
        for row in kept_rows(data, contract):
            for text in (row.whole, *texts_in(data.facts["answers"], row.label)):
                yield row.id, text, row.split
        return
    aside = quarantined(contract)
    for document in prepared_documents(data.folder):
        if document.id not in aside:
            yield document.id, document.text, document.split


def quarantined(contract: Input) -> dict[str, list[str]]:
    """The reasons for each quarantined document or row, by its id."""
    return json.loads(contract.path(QUARANTINED).read_text(encoding="utf-8"))
