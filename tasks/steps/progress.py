"""Progress of a stage's training in the terminal and Prefect, and its curves in MLflow."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact

from fourstage.activity import progress
from fourstage.errors import Interrupted
from fourstage.terminal import say
from tasks.orchestration.naming import card_key, flow_tags
from tasks.store.steps import Bound
from tasks.tracking.connection import Tracking, connect
from tasks.tracking.runs import (
    ensure_experiment,
    finish_run,
    log_history,
    stage_run,
    system_metrics,
)
from tasks.tracking.tags import RECIPE

UPDATE_SECONDS = 3  # a request to Prefect's API costs about 20 ms


class StageListener:
    """Sends a stage's progress and metrics to the terminal, Prefect and MLflow.

    A context manager around the training. It closes what it opened, also when the stage is killed
    or fails.

    Args:
        step: The stage's step.
        lifecycle_run: Lifecycle run in MLflow, parent of the stage's run.
    """

    def __init__(self, step: Bound, lifecycle_run: str | None):
        self._step = step
        self._stage: str = step.step.given["stage"].name
        self._lifecycle_run = lifecycle_run
        self._closing = ExitStack()
        self._artifact: UUID | None = None
        self._sent = 0.0

    def __enter__(self) -> StageListener:
        """Open the stage's MLflow run, or resume the one that a killed process left."""
        tracking = connect()
        self.tracking: Tracking = tracking
        self.run_id = stage_run(
            tracking,
            ensure_experiment(tracking, self._step.step.given["experiment"]),
            self._step.key,
            stage=self._stage,
            parent_run_id=self._lifecycle_run,
            settings=self._step.step.settings,
            tags={RECIPE: self._step.step.given["recipe"], **flow_tags()},
        )
        self._closing.enter_context(system_metrics(tracking, self.run_id))
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Mark the run of an unfinished stage as KILLED after a signal, otherwise as FAILED."""
        self._closing.close()
        if error is not None:
            killed = isinstance(error, Interrupted) or not isinstance(error, Exception)
            finish_run(self.tracking, self.run_id, "KILLED" if killed else "FAILED")

    def progress(self, step: int, total: int, scalars: Mapping[str, float]) -> None:
        """Show the progress of training."""
        shown = "  ".join(_shown(name, value) for name, value in scalars.items())
        progress(step, total, shown)
        now = time.monotonic()
        if self._sent == math.inf or (now - self._sent < UPDATE_SECONDS and step < total):
            return
        self._sent = now
        percent = 100.0 * step / max(1, total)
        try:
            self._show_in_prefect(percent, f"step {step:,} of {total:,}  {shown}")
        except httpx.TransportError:
            # The client has retried for a minute. Training needs no server; the task's end does.
            say(f"{self._stage}: Prefect does not answer; training goes on without progress there")
            self._sent = math.inf

    def _show_in_prefect(self, percent: float, told: str) -> None:
        if self._artifact is None:
            key = card_key(self._step.step.given["recipe"], f"progress-{self._stage}")
            artifact = create_progress_artifact(percent, key=key, description=told)
            assert isinstance(artifact, UUID)
            self._artifact = artifact
        else:
            update_progress_artifact(self._artifact, percent, description=told)

    def metrics(self, rows: Sequence[Mapping[str, float]]) -> None:
        """Log metrics by step; only at checkpoints, so a kill leaves no gaps or duplicates."""
        log_history(self.tracking, self.run_id, rows)


def _shown(name: str, value: float) -> str:
    return f"{value:,.0f} tokens/s" if name == "tokens_per_second" else f"{name} {value:.3f}"
