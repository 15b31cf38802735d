"""Build the training loop's job from a stage's step.

This is separate from the task, so that changes in the task's messages and records do not invalidate
trained stages.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from models.catalogue import TEACHER, provided
from tasks.steps.tokens import DOCUMENTS, ROWS, load_tokenizer
from tasks.store.artifacts import Input
from tasks.store.step_names import tokens_step
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from models.protocols import TokenisedCorpus, Tokenizer
    from models.training.job import TrainingJob


def training_job(
    step: Bound, seconds_left: float | None = None, bytes_left: float | None = None
) -> TrainingJob:
    """The training job of a step, with its inputs and its remaining seconds and bytes."""
    from corpora.shards import TokenisedCorpus, TokenisedRows
    from models.training.job import TrainingJob

    stage = step.step.given["stage"]
    tokens = {name: step.inputs[tokens_step(name)] for name in stage.corpora}
    before = step.inputs.get("stage before")
    teachers = {
        name: {TEACHER: str(step.inputs[f"teacher of {name}"].folder)} for name in stage.teachers
    }
    starts = {
        part: step.inputs[role].folder
        if (role := f"start of {part}") in step.inputs
        else Path(said)
        for part, said in stage.starts_from.items()
    }
    objectives = {n: {**said, **teachers.get(n, {})} for n, said in stage.objectives.items()}
    rows: dict[str, TokenisedRows] = {}
    markings: tuple[str, ...] = ()
    if stage.dataset:
        dataset = step.inputs[tokens_step(stage.dataset)]
        rows = {s: TokenisedRows(dataset.path(ROWS), s) for s in ("train", "dev")}
        markings = tuple(dataset.facts["markings"])
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    sees = "regions" in provided(stage.family, step.step.given["folders"])
    return TrainingJob(
        stage=replace(stage, objectives=objectives, precision=step.step.settings["precision"]),
        tokenizer=tokenizer,
        corpora={
            name: (_text(tokens[name], tokenizer, sees), share)
            for name, share in stage.corpora.items()
        },
        heldout={
            name: TokenisedCorpus(artifact.path(DOCUMENTS), "heldout")
            for name, artifact in tokens.items()
        },
        rows=rows,
        markings=markings,
        initial=before.folder if before else None,
        starts=starts,
        folders=step.step.given["folders"],
        deadline_seconds=seconds_left,
        most_bytes=bytes_left,
    )


def _text(tokens: Input, tokenizer: Tokenizer, sees: bool) -> TokenisedCorpus:
    """The documents to train on: for a network that sees, a dataset's rows with their pictures."""
    from corpora import shards
    from models.inputs.captions import Captions

    if sees and "labels" in tokens.facts:
        rows = shards.TokenisedRows(tokens.path(ROWS), "train")
        if rows.most_regions:
            return Captions(rows, tokenizer)
    return shards.TokenisedCorpus(tokens.path(DOCUMENTS), "train")
