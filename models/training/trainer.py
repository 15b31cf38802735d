"""Training a stage by the trainer of its family or objective, or by gradient descent."""

from __future__ import annotations

from pathlib import Path

from models.training.gradient import train as train_by_gradient
from models.training.job import Outcome, TrainingJob, TrainingListener
from models.training.own_trainer import own_trainer


def train(job: TrainingJob, folder: Path, listener: TrainingListener | None = None) -> Outcome:
    """Train a stage; as `models.training.gradient.train`."""
    objectives = () if job.stage.head else job.stage.objectives
    own = own_trainer(job.stage.family, objectives, job.folders)
    return (own.train if own else train_by_gradient)(job, folder, listener)
