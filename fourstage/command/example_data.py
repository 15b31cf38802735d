"""The data of the example project: Python's language reference, part of every installation.

Its sections are a corpus; paragraphs of some chapters, labelled by subject, are the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

SECTION = 1200  # approximate characters of a document of the example corpus
PARAGRAPH = 80  # characters; a shorter paragraph says too little to be labelled
CHAPTERS = {
    "compound": "statements",
    "specialnames": "objects",
    "formatstrings": "text",
    "string-methods": "text",
    "debugger": "debugger",
}


def example_files() -> dict[str, str]:
    """JSON lines by file name."""
    rows = {f"{split}.jsonl": _lines(rows) for split, rows in _rows().items()}
    return {"text.jsonl": _lines(_sections()), **rows}


def _lines(records: Iterable[dict[str, str]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _sections() -> Iterator[dict[str, str]]:
    """Runs of paragraphs from the chapters that are not labelled."""
    for chapter, paragraphs in _paragraphs():
        if chapter in CHAPTERS:
            continue
        section: list[str] = []
        number = 0
        for i, paragraph in enumerate(paragraphs):
            section.append(paragraph)
            if sum(map(len, section)) >= SECTION or i == len(paragraphs) - 1:
                number += 1
                yield {"id": f"{chapter}-{number}", "text": "\n\n".join(section)}
                section = []


def _rows() -> dict[str, list[dict[str, str]]]:
    """Labelled paragraphs without duplicates; of ten, one goes to dev and two to test."""
    splits: dict[str, list[dict[str, str]]] = {"train": [], "dev": [], "test": []}
    seen: set[str] = set()
    count = 0
    for chapter, paragraphs in _paragraphs():
        for number, paragraph in enumerate(paragraphs if chapter in CHAPTERS else (), start=1):
            if len(paragraph) < PARAGRAPH or paragraph in seen:
                continue
            seen.add(paragraph)
            split = {0: "dev", 1: "test", 2: "test"}.get(count % 10, "train")
            row = {"id": f"{chapter}-{number}", "text": paragraph, "label": CHAPTERS[chapter]}
            splits[split].append(row)
            count += 1
    return splits


def _paragraphs() -> Iterator[tuple[str, list[str]]]:
    """Chapters of the reference in a fixed order, with each paragraph on one line."""
    from pydoc_data.topics import topics

    for chapter in sorted(topics):
        paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", topics[chapter])]
        yield chapter.lower(), [part for part in paragraphs if part]
