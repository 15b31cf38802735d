"""Parallel text: files with as many lines, of which line n of one is line n of the other.

The files differ in their last suffix, as Moses names them: ``train.en`` and ``train.de``. A source
lists the files of one language and joins those of the other by ``line``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from corpora.archives import Content
from corpora.decoding import lines
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = ()  # those of languages; a source names the format


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each line, empty ones included: its number as ``line``, its text under the file's suffix."""
    name = content.name.lower().removesuffix(".gz").removesuffix(".bz2")
    column = PurePosixPath(name).suffix.removeprefix(".")
    for item in lines(content, source):
        if isinstance(item, Rejected):
            yield item
            continue
        number, line = item
        yield Raw(number, {"line": str(number), column: line.rstrip("\r\n")})
