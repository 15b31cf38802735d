"""Tokenised text for later steps: file names, the tokenizer, the documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.catalogue import provided
from tasks.store.artifacts import Artifact, Input

if TYPE_CHECKING:
    from models.protocols import TokenisedCorpus, Tokenizer
    from tasks.store.steps import Bound

DOCUMENTS = "documents.arrow"
ROWS = "rows.arrow"
PROFILE = "profile.parquet"
HELDOUT = "heldout"


def load_tokenizer(artifact: Input) -> Tokenizer:
    """Load a tokenizer artifact."""
    from models import saved_tokenizer

    return saved_tokenizer.load_tokenizer(artifact.folder)


def linked_entities(step: Bound) -> list[tuple[str, int]]:
    """(name, number) of the entities whose vectors another stage has, by its vocabulary.

    Args:
        step: A step with the list of ``entities`` and, as input, that stage's tokenizer.
    """
    from corpora.entities import numbered, read_entities

    graph: Any = load_tokenizer(step.inputs["entities"])  # one with whole names
    path = step.step.given["entities"]
    known = {name: i for i, name in enumerate(graph.vocabulary) if i not in graph.special_ids}
    ids, names = zip(*read_entities(path), strict=True)
    return list(zip(names, numbered(path, ids, known), strict=True))


def documents(
    tokens: Artifact | Input,
    tokenizer: Tokenizer,
    family: str,
    folders: Sequence[Path],
    split: str = "train",
) -> TokenisedCorpus:
    """The documents that pre-training reads: for a family that sees, rows with their pictures.

    Args:
        tokens: A tokenised corpus or dataset.
        tokenizer: Its tokenizer.
        family: The network's.
        folders: Project folders, searched first.
        split: ``train``, or `HELDOUT`, which of rows are those of dev.
    """
    from corpora.shards import TokenisedCorpus, TokenisedRows
    from models.inputs.captions import Captions

    if "labels" in tokens.facts and "regions" in provided(family, folders):
        rows = TokenisedRows(tokens.path(ROWS), "dev" if split == HELDOUT else split)
        if rows.most_regions:
            return Captions(rows, tokenizer, tokens.facts["labels"])
    return TokenisedCorpus(tokens.path(DOCUMENTS), split)
