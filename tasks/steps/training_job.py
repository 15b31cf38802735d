"""Build the training loop's job from a stage's step.

This is separate from the task, so that changes in the task's messages and records do not invalidate
trained stages.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from models.catalogue import TEACHER
from tasks.steps.tokens import HELDOUT, ROWS, documents, load_tokenizer
from tasks.store.step_names import WIDE, earlier, tokens_step
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from models.training.job import TrainingJob


def training_job(
    step: Bound, seconds_left: float | None = None, bytes_left: float | None = None
) -> TrainingJob:
    """The training job of a step, with its inputs and its remaining seconds and bytes."""
    from corpora.shards import TokenisedRows
    from models.linear_machine import Machine
    from models.training.job import TrainingJob

    stage, folders = step.step.given["stage"], step.step.given["folders"]
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
    beside = {
        name: TokenisedRows(step.inputs[tokens_step(name)].path(ROWS), "train")
        for name in (stage.mixture or {}).get("beside", ())
    }
    markings: tuple[str, ...] = ()
    if stage.dataset:
        dataset = step.inputs[tokens_step(stage.dataset)]
        rows = {s: TokenisedRows(dataset.path(ROWS), s) for s in ("train", "dev")}
        markings = tuple(dataset.facts["markings"])
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    return TrainingJob(
        stage=replace(stage, objectives=objectives, precision=step.step.settings["precision"]),
        tokenizer=tokenizer,
        corpora={
            name: (documents(tokens[name], tokenizer, stage.family, folders), share)
            for name, share in stage.corpora.items()
        },
        earlier={
            name: (documents(step.inputs[earlier(name)], tokenizer, stage.family, folders), share)
            for name, share in stage.earlier.items()
        },
        heldout={
            name: documents(artifact, tokenizer, stage.family, folders, HELDOUT)
            for name, artifact in tokens.items()
        },
        rows=rows,
        beside=beside,
        markings=markings,
        machine=Machine.read(step.inputs[WIDE].folder) if WIDE in step.inputs else None,
        initial=before.folder if before else None,
        starts=starts,
        folders=folders,
        deadline_seconds=seconds_left,
        most_bytes=bytes_left,
    )
