"""Learn a vocabulary from the documents that kept their contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tasks.artifacts import Artifact
from tasks.durable import durable
from tasks.steps import Bound


@durable()
def train_tokenizer(step: Bound, folder: Path) -> dict:
    """WordPiece from training documents only; held-out text has no say in the vocabulary."""
    from models.tokenizers.wordpiece import WordPiece, learn

    settings = step.step.settings["tokenizer"]
    corpora = {role: a for role, a in step.inputs.items() if a.kind == "corpus"}
    texts = (
        text
        for role, corpus in sorted(corpora.items())
        for _, text, split in kept_documents(corpus, step.inputs[f"contract {role}"])
        if split == "train"
    )
    vocabulary = learn(
        texts,
        vocabulary_size=settings["vocabulary_size"],
        lowercase=settings["lowercase"],
    )
    tokenizer = WordPiece(vocabulary, settings["lowercase"])
    tokenizer.save(folder)
    return {"vocabulary_size": len(vocabulary), "digest": tokenizer.digest}


def kept_documents(corpus: Artifact, contract: Artifact) -> Iterator[tuple[str, str, str]]:
    """(id, text, split) of each document that its contract did not send to quarantine."""
    from corpora.preparation import read_documents

    quarantined = json.loads(contract.path("quarantined.json").read_text(encoding="utf-8"))
    for document in read_documents(corpus.folder):
        if document.id not in quarantined:
            yield document.id, document.text, document.split
