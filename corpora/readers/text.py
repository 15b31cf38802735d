"""Plain text: one document per file, line, block between blank lines, or section of a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpora.archives import Content
from corpora.decoding import lines, whole
from corpora.limits import MAX_DOCUMENT_BYTES, MEBIBYTE
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation

SUFFIXES = (".txt", ".text", ".md")

# WikiText's top heading is `= Title =`; its sections are `= = Section = =`.
_HEADING = re.compile(r"\s*= [^=](?:.*[^=])? =\s*")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each document of a text file, under the column that the source names for its text."""
    column = source.fields.text
    document = source.document or "file"
    if document == "file":
        text = whole(content, source, MAX_DOCUMENT_BYTES)
        yield text if isinstance(text, Rejected) else Raw(1, {column: text})
        return
    started, held, size = 1, list[str](), 0
    for item in lines(content, source):
        if isinstance(item, Rejected):
            yield item
            continue
        number, line = item
        if document == "line":
            if line.strip():
                yield Raw(number, {column: line.rstrip("\r\n")})
            continue
        ends = not line.strip() if document == "paragraphs" else bool(_HEADING.fullmatch(line))
        if ends and held:
            yield Raw(started, {column: "".join(held)})
            held, size = [], 0
        if ends and document == "paragraphs":
            continue
        if not held:
            if not line.strip():
                continue
            started = number
        held.append(line)
        size += len(line)
        if size > MAX_DOCUMENT_BYTES:
            raise ContractViolation(
                f"{content.where}: line {started}: a document of more than "
                f"{MAX_DOCUMENT_BYTES // MEBIBYTE} MiB; set `document: line` to split it."
            )
    if held:
        yield Raw(started, {column: "".join(held)})
