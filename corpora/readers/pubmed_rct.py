"""Labelled sentences of abstracts in the format of PubMed RCT: one sentence per row.

An abstract begins with a line of ``###`` and its id. Each line after it is a label, a tab and a
sentence; a blank line ends the abstract. Rows have the columns ``label``, ``text`` and
``abstract``.

Reference:
    Dernoncourt and Lee 2017, arXiv 1710.06071.
"""

from __future__ import annotations

from collections.abc import Iterator

from corpora.archives import Content
from corpora.decoding import lines
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = ()  # files end in .txt, which means plain text

MARK = "###"


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each sentence with its label and its abstract."""
    abstract = ""
    for item in lines(content, source):
        if isinstance(item, Rejected):
            yield item
            continue
        number, line = item
        line = line.strip()
        label, tab, text = line.partition("\t")
        if line.startswith(MARK):
            abstract = line.removeprefix(MARK)
        elif tab:
            yield Raw(number, {"label": label, "text": text, "abstract": abstract})
        elif line:
            location = f"{content.name}:{number}"
            yield Rejected(location, location, "no tab between label and sentence")
