"""A project folder for one's own recipes, sources and model parts, with an example that runs.

The example's text is Python's own reference, which every installation carries: sections of it as a
corpus, and paragraphs with the chapter they stand in as a labelled set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from fourstage.digests import write_atomically
from fourstage.errors import RecipeError

MARKER = "fourstage.project"
FOLDERS = ("recipes", "sources", "suites", "families", "objectives", "heads", "data")
SECTION = 1200  # characters of a document of the example corpus, about
PARAGRAPH = 80  # characters below which a paragraph says too little to be labelled
CHAPTERS = {
    "compound": "statements",
    "specialnames": "objects",
    "formatstrings": "text",
    "string-methods": "text",
    "debugger": "debugger",
}

README = """\
# A project of Fourstage

    fourstage plan recipes/first.yaml     # what would be made
    fourstage run recipes/first.yaml      # four stages, evaluation, gate, promotion
    fourstage list sources                # every source that a recipe may name

| folder | what goes there |
| --- | --- |
| recipes/ | recipes, one YAML each: `fourstage run recipes/NAME.yaml` |
| sources/ | where a corpus or a dataset comes from, one YAML each |
| suites/ | contracts of your own, one JSON each |
| families/ objectives/ heads/ | model parts of your own, one Python file each |
| data/ | the example's files; sources may name files anywhere |

What lies here is searched before what comes with Fourstage. To use your own text, change `files`
and `fields` in sources/my_text.yaml and sources/my_rows.yaml. What runs leave behind goes to var/
(or `$FOURSTAGE_HOME`).
"""

RECIPE = """\
# A first recipe: four stages in minutes on two processor cores. A small BERT reads the
# documentation of installed packages, then Python's reference, and learns what each of its
# chapters is about.
# Papers: Devlin et al. 2019 (arXiv 1810.04805); Gururangan et al. 2020 (arXiv 2004.10964).
name: first
family: bert
size: tiny
tokenizer: {vocabulary_size: 8000}
stages:
  - stage: general                          # English about programming, from the installed packages
    corpora: {python_infrastructure: 1.0}
    objectives: {masked_lm: {rate: 0.15}, next_sentence: {}}
    sequence_length: 64
    budget: {steps: 200}
    optimizer: {adamw: {peak_learning_rate: 1.0e-3}}
  - stage: domain                           # your domain's text, and a tenth of general text
    corpora: {my_text: 0.9, python_infrastructure: 0.1}
    budget: {steps: 100}
    optimizer: {adamw: {peak_learning_rate: 5.0e-4}}
  - stage: task                             # the text of your labelled rows
    budget: {steps: 50}
    optimizer: {adamw: {peak_learning_rate: 5.0e-4}}
  - stage: finetune                         # your labels
    dataset: my_rows
    head: {sequence_classification: {}}
    budget: {epochs: 12}
    optimizer: {adamw: {peak_learning_rate: 1.0e-3}}
evaluate: {metrics: [accuracy, macro_f1], forgetting_on: [python_infrastructure]}
promote: {model: first, require: {macro_f1: {at_least: 0.3}}}
"""

CORPUS = """\
name: my_text
description: Sections of Python's reference, an example of a corpus
language: en
licence: PSF-2.0
fetch: none
files: [data/text.jsonl]
fields: {id: id, text: text}
"""

DATASET = """\
name: my_rows
description: Paragraphs of Python's reference and their subject, an example of a dataset
language: en
licence: PSF-2.0
fetch: none
files: {train: data/train.jsonl, dev: data/dev.jsonl, test: data/test.jsonl}
fields: {id: id, text: text, label: label}
"""


def make_project(folder: Path) -> list[Path]:
    """Make a project with an example in it.

    Args:
        folder: New or empty.

    Returns:
        The files made.

    Raises:
        RecipeError: If there is something in it already.
    """
    if folder.exists() and not folder.is_dir():
        raise RecipeError(f"{folder}: expected a new or empty folder, got a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise RecipeError(
            f"{folder}: expected a new or empty folder, got one with "
            f"{sum(1 for _ in folder.iterdir())} entries; nothing was changed"
        )
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    texts = {
        "README.md": README,
        ".gitignore": "var/\n",
        "recipes/first.yaml": RECIPE,
        "sources/my_text.yaml": CORPUS,
        "sources/my_rows.yaml": DATASET,
        "data/text.jsonl": _lines(_sections()),
        **{f"data/{split}.jsonl": _lines(rows) for split, rows in _rows().items()},
        # Last: a folder without its marker is not taken for a project.
        MARKER: "This file marks a project folder of Fourstage.\n",
    }
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return [folder / name for name in texts]


def _lines(records: Iterator[dict[str, str]] | list[dict[str, str]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _sections() -> Iterator[dict[str, str]]:
    """Runs of paragraphs of the chapters that are not labelled."""
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
    """Labelled paragraphs, each text once: of ten, one to choose weights by and two to test."""
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
    """Chapters of the reference in a fixed order, with their paragraphs on one line each."""
    from pydoc_data.topics import topics

    for chapter in sorted(topics):
        paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", topics[chapter])]
        yield chapter.lower(), [part for part in paragraphs if part]
