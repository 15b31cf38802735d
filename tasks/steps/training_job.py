"""From a stage's step to the job of the training loop.

Apart from the task, which may change in what it says and records without training anything anew.
"""

from __future__ import annotations

from typing import Any

from models.catalogue import TEACHER
from tasks.steps.tokens import DOCUMENTS, ROWS, load_tokenizer
from tasks.store.steps import Bound


def training_job(
    step: Bound, seconds_left: float | None = None, bytes_left: float | None = None
) -> Any:
    """Everything the training loop needs, from a step, its inputs and what it may use up."""
    from corpora.shards import TokenisedCorpus, TokenisedRows
    from models.training.job import Budget, Phase, TrainingJob

    stage = step.step.given["stage"]
    settings = step.step.settings
    tokens = {name: step.inputs[f"tokens {name}"] for name in stage.corpora}
    before = step.inputs.get("stage before")
    teachers = {
        name: {TEACHER: str(step.inputs[f"teacher of {name}"].folder)} for name in stage.teachers
    }
    rows: dict[str, Any] = {}
    label_names: tuple[str, ...] = ()
    markings: tuple[str, ...] = ()
    if stage.dataset:
        dataset = step.inputs[f"tokens {stage.dataset}"]
        rows = {s: TokenisedRows(dataset.path(ROWS), s) for s in ("train", "dev")}
        label_names = tuple(dataset.facts["labels"])
        markings = tuple(dataset.facts["markings"])
    return TrainingJob(
        stage=stage.kind,
        family=stage.family,
        network=stage.network,
        tokenizer=load_tokenizer(step.inputs["tokenizer"]),
        phases=[Phase(p.sequence_length, p.share, p.batch_size) for p in stage.phases],
        batch_size=stage.batch_size,
        budget=Budget(stage.budget.unit, stage.budget.amount),
        optimizer={stage.optimizer.name: stage.optimizer.settings},
        objectives={n: {**said, **teachers.get(n, {})} for n, said in stage.objectives.items()},
        weights=stage.weights,
        alternate=stage.alternate,
        head={stage.head: stage.head_settings} if stage.head else None,
        corpora={
            name: (TokenisedCorpus(tokens[name].path(DOCUMENTS), "train"), share)
            for name, share in stage.corpora.items()
        },
        heldout={
            name: TokenisedCorpus(artifact.path(DOCUMENTS), "heldout")
            for name, artifact in tokens.items()
        },
        dataset=stage.dataset or "rows",
        rows=rows,
        label_names=label_names,
        markings=markings,
        accumulation=stage.micro_batches,
        stop=stage.stop,
        select=stage.select,
        precision=settings["precision"],
        initial=before.folder if before else None,
        seed=stage.seed,
        folders=step.step.given["folders"],
        deadline_seconds=seconds_left,
        most_bytes=bytes_left,
    )
