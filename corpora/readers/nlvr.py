"""Sentences about pictures that are true or false, in the JSON lines of NLVR.

A row has the columns ``id`` (identifier of its sentence and picture), ``sentence``, ``label``
(``true`` or ``false``) and ``picture`` (the path of the picture with the boxes in their first
order).

Reference:
    Suhr et al. 2017, ACL P17-2034.
"""

from __future__ import annotations

from collections.abc import Iterator

from corpora.archives import Content
from corpora.readers import Raw
from corpora.readers.jsonl import read as read_lines
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = ()  # files end in .json, which means JSON lines

_COLUMNS = ("sentence", "label", "identifier", "directory")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each example. The file is called as the split in its pictures' names: ``dev.json.gz``."""
    for item in read_lines(content, source):
        if isinstance(item, Rejected):
            yield item
            continue
        location = f"{content.name}:{item.line}"
        sentence, label, identity, directory = map(item.values.get, _COLUMNS)
        if not (
            isinstance(sentence, str)
            and isinstance(label, str)
            and isinstance(identity, str)
            and isinstance(directory, str)
        ):
            yield Rejected(location, location, f"not text in each of {', '.join(_COLUMNS)}")
            continue
        picture = picture_of(content, identity, directory)
        values = {"id": identity, "sentence": sentence, "label": label, "picture": picture}
        yield Raw(item.line, values)


def picture_of(content: Content, identity: str, directory: str) -> str:
    """The path of an example's picture, the boxes in their first order."""
    split = content.name.rpartition("!")[2].rpartition("/")[2].partition(".")[0]
    return f"{split}/images/{directory}/{split}-{identity}-0.png"
