"""Train one stage: general, domain, task or finetune. The same task for all four."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from fourstage.digests import hash_file
from fourstage.errors import Interrupted
from tasks.artifacts import NOTES
from tasks.durable import durable
from tasks.progress import StageReport
from tasks.steps import Bound
from tasks.tokenize_corpus import DOCUMENTS, ROWS, load_tokenizer


@durable()
def train_stage(
    step: Bound, folder: Path, lifecycle_run: str | None = None, seconds_left: float | None = None
) -> dict:
    """Train from the stage before, or from nothing; go on from a checkpoint, if there is one."""
    from models.training.gradient import train

    stage = step.step.given["stage"]
    with StageReport(step, step.step.given["recipe"], lifecycle_run) as report:
        try:
            outcome = train(training_job(step, seconds_left), folder, report)
        except Interrupted as interruption:
            if interruption.signal_number:
                _die_of(interruption.signal_number)
            raise
    notes = folder / NOTES
    notes.mkdir()
    for name in ("history.json", "metrics.json"):
        (folder / name).rename(notes / name)
    return {
        "stage": stage.name,
        "kind": stage.kind,
        "steps": outcome.steps,
        "tokens": outcome.tokens,
        "seconds": outcome.seconds,
        "tokens_per_second": outcome.tokens_per_second,
        "metrics": dict(outcome.metrics),
        "passes": dict(outcome.passes),
        "weights_digest": hash_file(folder / "network.safetensors"),
        "run_id": report.run_id,
    }


def training_job(step: Bound, seconds_left: float | None = None) -> Any:
    """Everything the training loop needs, from a step and its inputs."""
    from corpora.shards import TokenisedCorpus, TokenisedRows
    from models.training.job import Budget, Phase, TrainingJob

    stage = step.step.given["stage"]
    settings = step.step.settings
    tokens = {name: step.inputs[f"tokens {name}"] for name in stage.corpora}
    before = step.inputs.get("stage before")
    rows: dict[str, Any] = {}
    label_names: tuple[str, ...] = ()
    if stage.dataset:
        dataset = step.inputs[f"tokens {stage.dataset}"]
        rows = {s: TokenisedRows(dataset.path(ROWS), s) for s in ("train", "dev")}
        label_names = tuple(dataset.details["labels"])
    return TrainingJob(
        stage=stage.kind,
        family=stage.family,
        network=stage.network,
        tokenizer=load_tokenizer(step.inputs["tokenizer"]),
        phases=[Phase(p.sequence_length, p.share, p.batch_size) for p in stage.phases],
        batch_size=stage.batch_size,
        budget=Budget(stage.budget.unit, stage.budget.amount),
        optimizer={stage.optimizer.name: stage.optimizer.settings},
        objectives=stage.objectives,
        weights=stage.weights,
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
        accumulation=stage.micro_batches,
        stop=stage.stop,
        select=stage.select,
        precision=settings["precision"],
        initial=before.folder if before else None,
        seed=stage.seed,
        folders=step.step.given["folders"],
        deadline_seconds=seconds_left,
    )


def _die_of(signal_number: int) -> None:
    """Let the signal have the process, now that the checkpoint is written.

    Prefect must see the signal itself: an exception would end the run as Failed instead of Crashed,
    and retries would apply.
    """
    os.kill(os.getpid(), signal_number)
    signal.pause()
