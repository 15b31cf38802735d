"""A word in two sentences, in the JSON of MCL-WiC.

The file is a list of objects. Of those with sentences, the word is marked as ``<< word >>`` in
both; all other columns stay as they are. The ``.gold`` files, which have the answers, are joined
by ``id``.

Reference:
    Martelli et al. 2021, "SemEval-2021 Task 2: Multilingual and Cross-lingual Word-in-Context
    Disambiguation".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from corpora.archives import Content
from corpora.decoding import check_text
from corpora.json_values import whole_value
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation

SUFFIXES = (".data", ".gold")

MARKS = "<<", ">>"

_OFFSET = re.compile(r"\d{1,9}", re.ASCII)


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each object; its location is its number in the file, from 1."""
    objects = whole_value(content, source)
    if not isinstance(objects, list):
        raise ContractViolation(f"{content.where}: expected the JSON of MCL-WiC, a list.")
    for number, values in enumerate(objects, start=1):
        location = f"{content.name}:{number}"
        if not isinstance(values, Mapping):
            yield Rejected(location, location, "not a JSON object")
            continue
        marked = dict(values)
        for nth in "12":
            if f"sentence{nth}" in values:
                marked[f"sentence{nth}"] = _marked(values, nth)
        if None in marked.values():
            name = values.get("id")
            name = name if isinstance(name, str) else location
            yield Rejected(name, location, "a word that is not at its offsets")
            continue
        yield check_text(Raw(number, marked), content.name)


def _marked(values: Mapping[str, Any], nth: str) -> str | None:
    """A sentence with its word marked; None if the offsets are not inside the sentence."""
    text = values[f"sentence{nth}"]
    offsets = [str(values.get(f"{end}{nth}")) for end in ("start", "end")]
    if not isinstance(text, str) or not all(map(_OFFSET.fullmatch, offsets)):
        return None
    start, end = map(int, offsets)
    if not 0 <= start < end <= len(text):
        return None
    return f"{text[:start]}{MARKS[0]} {text[start:end]} {MARKS[1]}{text[end:]}"
