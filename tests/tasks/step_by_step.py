"""The steps of a plan, made one by one in this process: without flows, servers, runs and cards."""

from __future__ import annotations

from pathlib import Path

from models.training.trainer import train
from tasks.planning.layout import Plan
from tasks.run.recipe_run import TASKS
from tasks.steps.train_stage import told
from tasks.steps.training_job import training_job
from tasks.store.artifacts import Artifact, Findings, store
from tasks.store.steps import Bound, bind


def made_here(plan: Plan) -> dict[str, Artifact]:
    """Every step's entry in the store, by name; what is there already is left as it is."""
    made: dict[str, Artifact] = {}
    for name, step in plan.steps.items():
        bound = bind(step, made)
        assert isinstance(bound, Bound)
        if step.kind == "stage":
            _train(bound)
        else:
            TASKS[step.kind].fn(bound)
        found = store().find(step.kind, bound.key)
        assert isinstance(found, Artifact), found
        made[name] = found
    return made


def _train(step: Bound) -> None:
    """Train a stage with nobody listening: its task tells MLflow and Prefect of it."""

    def work(folder: Path) -> Findings:
        return told(step.step.given["stage"], train(training_job(step), folder), folder)

    store().make("stage", step.step.name, step.preimage, work, step.made_from)
