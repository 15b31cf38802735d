"""SubRip subtitles: one document a file, its spoken lines in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpora.archives import Content
from corpora.decoding import lines
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = (".srt",)

_TIME = re.compile(r"\d+:\d\d:\d\d,\d{3} --> ")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """The file's spoken lines; numbers and times are left out."""
    spoken: list[str] = []
    for item in lines(content, source):
        if isinstance(item, Rejected):
            yield item
            continue
        _, line = item
        line = line.strip()
        if line and not line.isdigit() and not _TIME.match(line):
            spoken.append(line)
    if spoken:
        yield Raw(1, {source.fields.text: "\n".join(spoken)})
