"""The page of a source's keys has all of them, each with its meaning."""

from __future__ import annotations

import re

from data_contracts.sources import Fields, Join, Origin, OriginFile, Pictures, Source
from fourstage.command.source_reference import TITLES, source_page


def test_every_key_has_a_row_with_its_meaning():
    sections = {part.split("\n")[0]: part for part in source_page().split("\n## ")[1:]}
    assert TITLES.keys() == {Source, Fields, Join, Pictures, Origin, OriginFile}
    for part, title in TITLES.items():
        rows = dict(re.findall(r"^\| `(\w+)` \|.* \| ([^|]+) \|$", sections[title], re.MULTILINE))
        assert list(rows) == list(part.model_fields), title
        assert all(meaning.strip(" –") for meaning in rows.values()), title
    assert "| `set_aside` | number above 0, at most 0.3 | `0.1` |" in sections["The source"]
    assert "| `text` | text, or number of the column | `text` |" in sections["`fields`"]
