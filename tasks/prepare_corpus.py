"""From files to documents or rows: read, clean, deduplicate, decontaminate, split, profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tasks.artifacts import Artifact
from tasks.durable import durable
from tasks.steps import Bound

EVALUATION = "evaluation"  # role prefix of the datasets whose rows may be in no corpus


@durable()
def prepare_corpus(step: Bound, folder: Path) -> dict:
    """Unlabelled text: one document a line of ``documents.arrow``."""
    from corpora.preparation import prepare_corpus as prepare

    counts = prepare(
        step.step.given["source"],
        step.step.given["snapshot"],
        folder,
        evaluation_texts=_evaluation_texts(step.inputs),
        heldout_share=step.step.settings["heldout_share"],
    )
    return {"counts": counts, "source": step.step.settings["source"]["name"]}


@durable()
def prepare_dataset(step: Bound, folder: Path) -> dict:
    """Labelled rows: one row a line of ``rows.arrow``."""
    from corpora.preparation import prepare_dataset as prepare

    counts = prepare(
        step.step.given["source"],
        step.step.given["snapshot"],
        folder,
        overlap=step.step.settings["overlap"],
    )
    labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    return {"counts": counts, "labels": labels, "source": step.step.settings["source"]["name"]}


def _evaluation_texts(inputs: Mapping[str, Artifact]) -> Iterator[str]:
    from corpora.preparation import read_rows

    for role, dataset in sorted(inputs.items()):
        if role.startswith(EVALUATION):
            for row in read_rows(dataset.folder):
                if row.split != "train":
                    yield row.text if row.text_pair is None else f"{row.text} {row.text_pair}"
