"""Tagged words in columns: one word per line, a blank line after each sentence.

Columns are separated by tabs, or where a line has none by blanks. `columns` names them; in `fields`
they can be given by number, from 1, or from -1 at the end. Without either the word is the first
column and the tag the last. A line ``-DOCSTART-`` begins a document, which the column ``document``
names. Every sentence is a row: its words as ``text``, its tags as ``label``. A line before the
first word of a sentence that begins with ``# `` and isn't a tagged word is a comment.

Reference:
    Tjong Kim Sang and De Meulder 2003, arXiv cs/0306050.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from corpora.archives import Content
from corpora.cleaning import clean
from corpora.decoding import check_text, lines
from corpora.readers import Raw
from corpora.tags import TAG, joined
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation, did_you_mean

SUFFIXES = (".conll", ".iob", ".iob2", ".bio")

DOCUMENT = "-DOCSTART-"

_NAMED = re.compile(r"-DOCSTART-\s*\((.+)\)\s*")
_NUMBER = re.compile(r"-?[1-9]\d?", re.ASCII)


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each sentence with its tags; one with a malformed line is rejected as a whole."""
    fields = source.fields
    word = _place(content, source, fields.text, 0)
    tag = None if fields.label is None else _place(content, source, fields.label, -1)
    of_any = None if source.label_names else tag
    width = len(source.columns)
    document: dict[str, str] = {}
    sentence: list[list[str]] = []
    started, wrong = 0, ""
    for item in chain(lines(content, source), ((0, ""),)):
        if isinstance(item, Rejected):
            started, wrong = started or int(item.location.rpartition(":")[2]), item.reason
            continue
        number, line = item
        if line.startswith(DOCUMENT) or _is_blank(line):
            if wrong:
                location = f"{content.name}:{started}"
                yield Rejected(location, location, wrong)
            elif sentence:
                words = [cells[word] for cells in sentence]
                if tag is None:
                    values = {fields.text: joined(words, source.language)[0]}
                else:
                    tags = [cells[tag] for cells in sentence]
                    values = {fields.text: words, fields.label or "": tags, **document}
                yield check_text(Raw(started, values), content.name)
            sentence, started, wrong = [], 0, ""
            if line.startswith(DOCUMENT):
                named = _NAMED.fullmatch(line)
                document = {"document": named[1] if named else f"{content.name}:{number}"}
            continue
        line = line.rstrip("\r\n")
        if not (sentence or wrong) and is_comment(line, width, of_any):
            continue
        started = started or number
        cells = cells_of(line)
        width = width or len(cells)
        if len(cells) != width:
            wrong = wrong or "wrong number of columns"
        if not all(-width <= place < width for place in (word, tag or 0)):
            wrong = wrong or "fewer columns than 'fields' counts"
        sentence.append([cell.strip() for cell in cells])


def cells_of(line: str) -> list[str]:
    """The columns of a line."""
    return line.split("\t") if "\t" in line else line.split()


def is_comment(line: str, width: int, tag: int | None) -> bool:
    """Whether a line before a sentence's first word is a comment, and not a word ``#``.

    Args:
        line: The line.
        width: Number of columns; 0 if it is unknown.
        tag: The place of the tag; None if any text may be one.
    """
    if not line.startswith(("# ", "#\t")):
        return False
    cells = cells_of(line)
    if width and len(cells) != width:
        return True
    return tag is not None and not any(map(TAG.fullmatch, map(str.strip, cells[tag:][:1])))


def _is_blank(line: str) -> bool:
    """Whether a line has only blanks, or invisible characters such as a byte order mark."""
    return not line.strip() or (not line.isascii() and not clean(line).text)


def _place(content: Content, source: Source, name: str, usual: int) -> int:
    """The place of a column, for use as an index."""
    if name in source.columns:
        return source.columns.index(name)
    if _NUMBER.fullmatch(name):
        return int(name) - (int(name) > 0)
    if source.columns:
        raise ContractViolation(
            f"{content.where}: expected a column {name!r}{did_you_mean(name, source.columns)} "
            f"Columns: {', '.join(each[:40] for each in source.columns[:20])}."
        )
    return usual
