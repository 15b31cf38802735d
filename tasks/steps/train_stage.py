"""Train a stage: one task for all four kinds (general, domain, task, finetune)."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.digests import hash_file
from models.stage_format import HISTORY, METRICS, NETWORK
from tasks.orchestration.cancellation import dying_of_signals
from tasks.steps.durable import durable
from tasks.steps.progress import StageListener
from tasks.steps.same_weights import stage_of_same_weights, take_weights
from tasks.steps.taken_over import brought_network, has_start
from tasks.steps.tokens import load_tokenizer
from tasks.steps.training_job import training_job
from tasks.store.artifacts import NOTES, Findings, store
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage
    from models.training.job import Outcome, TrainingJob


@durable()
def train_stage(
    step: Bound,
    folder: Path,
    lifecycle_run: str | None = None,
    seconds_left: float | None = None,
    bytes_left: float | None = None,
) -> Findings:
    """Train a stage from the one before or from scratch, resuming from a checkpoint if possible.

    A stage is not trained if it imports a network, or if another stage has its weights.
    """
    with StageListener(step, lifecycle_run) as report:
        if other := stage_of_same_weights(step, store()):
            found = take_weights(step, other, folder)
            report.metrics(json.loads((folder / NOTES / HISTORY).read_text("utf-8")))
        else:
            found = _made(step, folder, report, seconds_left, bytes_left)
    return replace(found, notes={**found.notes, "run_id": report.run_id})


def _made(
    step: Bound,
    folder: Path,
    report: StageListener,
    seconds_left: float | None,
    bytes_left: float | None,
) -> Findings:
    with dying_of_signals():
        outcome = (
            _taken_over(step, folder)
            if has_start(step.step)
            else _trained(training_job(step, seconds_left, bytes_left), folder, report)
        )
    return told(step.step.given["stage"], outcome, folder)


def told(stage: ResolvedStage, outcome: Outcome, folder: Path) -> Findings:
    """Facts and notes of a stage, among which its history and metrics are moved."""
    (folder / NOTES).mkdir()
    for name in (HISTORY, METRICS):
        (folder / name).rename(folder / NOTES / name)
    facts = {
        "steps": outcome.steps,
        "tokens": outcome.tokens,
        "passes": dict(outcome.passes),
        **({"turns": outcome.turns} if outcome.turns else {}),
        "weights_digest": hash_file(folder / NETWORK),
    }
    notes = {
        "stage": stage.name,
        "kind": stage.kind,
        "seconds": outcome.seconds,
        "tokens_per_second": outcome.tokens_per_second,
        "weights": outcome.weights,
        "trained_weights": outcome.trained_weights,
        "metrics": dict(outcome.metrics),
        **({"init": stage.init} if stage.init else {}),
        **({"versions": dict(stage.versions)} if stage.versions else {}),
    }
    return Findings(facts, notes)


def _trained(job: TrainingJob, folder: Path, report: StageListener) -> Outcome:
    from models.training.trainer import train

    # Networks are cycles of references. A process that trains one after another would hold several
    # with their optimizers, until Python happens to look for cycles among everything it has.
    gc.collect()
    return train(job, folder, report)


def _taken_over(step: Bound, folder: Path) -> Outcome:
    """Write the network of ``init`` as an untrained stage."""
    from models.interchange.stage_folder import fill_stage
    from models.training.job import Outcome

    fill_stage(brought_network(step, load_tokenizer(step.inputs["tokenizer"])), folder)
    (folder / HISTORY).write_text("[]\n", "utf-8")
    (folder / METRICS).write_text("{}\n", "utf-8")
    return Outcome(0, 0, 0.0, 0.0, {}, {})
