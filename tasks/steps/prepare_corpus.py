"""Prepare documents or rows from files: read, clean, deduplicate, decontaminate, split, profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.steps.durable import durable
from tasks.store.artifacts import Findings, Input
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from corpora.evaluation_rows import EvaluationRows

EVALUATION = "evaluation"  # role prefix of the datasets that corpora are decontaminated against


@durable()
def prepare_corpus(step: Bound, folder: Path) -> Findings:
    """Prepare unlabelled text; writes ``documents.arrow``, one document per line."""
    from corpora.preparation import prepare_corpus as prepare

    counts = prepare(
        step.step.given["source"],
        step.step.given["snapshot"],
        folder,
        evaluation_texts=_evaluation_texts(
            step.inputs, step.step.settings.get("evaluation_markings", {})
        ),
        heldout_share=step.step.settings["heldout_share"],
    )
    return Findings({"counts": counts.to_json()}, _notes(step))


@durable()
def prepare_dataset(step: Bound, folder: Path) -> Findings:
    """Prepare labelled rows; writes ``rows.arrow``, one row per line."""
    from corpora.preparation import prepare_dataset as prepare

    counts = prepare(
        step.step.given["source"],
        step.step.given["snapshot"],
        folder,
        overlap=step.step.settings["overlap"],
        elsewhere=_evaluation_rows(step),
        training_rows=step.step.settings.get("training_rows"),
    )
    labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    answers = step.step.given["source"].answers
    return Findings(
        {"counts": counts.to_json(), "labels": labels, "answers": answers}, _notes(step)
    )


def _evaluation_rows(step: Bound) -> EvaluationRows | None:
    """The evaluation rows of the dataset that this one is learnt beside; None without one."""
    from corpora.answers import texts_in
    from corpora.evaluation_rows import EvaluationRow, EvaluationRows
    from corpora.prepared import prepared_rows

    for role, dataset in step.inputs.items():
        if role.startswith(EVALUATION):
            name = role.removeprefix(EVALUATION).strip()
            rows = (
                EvaluationRow(
                    (f"{row.split} of {name}", row.id),
                    row.text,
                    row.text_pair,
                    texts_in(dataset.facts["answers"], row.label),
                )
                for row in prepared_rows(dataset.folder)
                if row.split != "train"
            )
            return EvaluationRows(rows, step.step.settings["evaluation_markings"])
    return None


def _evaluation_texts(
    inputs: Mapping[str, Input], markings: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """The texts of dev and test rows: each of a pair or of the choices, and all together.

    Also without the markings of their source, by role: a marking with letters, such as ``<e1>``,
    would be a word that no corpus has.
    """
    from corpora.answers import texts_in
    from corpora.decontamination import Variant
    from corpora.identity import normal_form
    from corpora.prepared import prepared_rows

    for role, dataset in sorted(inputs.items()):
        if role.startswith(EVALUATION):
            marks = markings.get(role, ())
            for row in prepared_rows(dataset.folder):
                if row.split != "train":
                    for text in dict.fromkeys((row.whole, *row.texts)):
                        bare = normal_form(text, marks) if marks else ""
                        marked = marks and bare != normal_form(text)
                        alone = text in row.texts
                        yield text if alone and not marked else Variant(text)
                        if marked:
                            yield bare if alone else Variant(bare)
                    yield from texts_in(dataset.facts["answers"], row.label)


def _notes(step: Bound) -> dict[str, Any]:
    """Facts about the source for lineage: name, licence, language, origin."""
    source = step.step.given["source"]
    said = source.model_dump(mode="json", include={"name", "licence", "language", "origin"})
    return {"source": said}
