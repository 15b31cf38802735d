"""What the objectives over windows of words share: they differ in their use of a block."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from models.protocols import Context, TokenisedCorpus, Tokenizer
from models.training.job import Outcome, TrainingJob, TrainingListener
from models.vectors.context import ContextVectors
from models.vectors.measuring import measured_losses
from models.vectors.training import Settings, Update, train_vectors


class WindowObjective:
    """An objective over windows, which trains its network itself.

    A subclass has a `name`, an `update`, and a constructor that takes a context and the recipe's
    settings and sets `settings`.
    """

    name: ClassVar[str]
    update: ClassVar[Update]
    settings: Settings

    def attach(self, network: Any) -> ContextVectors:
        """The vectors of predicted words."""
        return ContextVectors(network, self.name)

    @classmethod
    def train(
        cls, job: TrainingJob, folder: Path, listener: TrainingListener | None = None
    ) -> Outcome:
        """As `models.training.own_trainer.OwnTrainer.train`."""
        made: Any = cls
        context = Context(job.tokenizer, job.stage.sequence_length)
        settings = made(context, **job.stage.objectives[cls.name]).settings
        return train_vectors(job, folder, listener, cls.name, settings, cls.update)

    @classmethod
    def heldout_losses(
        cls,
        folder: Path,
        tokenizer: Tokenizer,
        corpora: Mapping[str, TokenisedCorpus],
        folders: tuple[Path, ...] = (),
    ) -> dict[str, dict[str, float]]:
        """As `models.training.own_trainer.OwnTrainer.heldout_losses`."""
        made: Any = cls
        settings = made(Context(tokenizer, 0)).settings
        return measured_losses(folder, tokenizer, corpora, cls.name, settings, cls.update, folders)
