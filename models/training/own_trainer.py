"""Families that train themselves.

A family of networks is trained by gradient. One that is trained otherwise, such as a counted n-gram
model, says ``TRAINS = True`` among its literals and is an `OwnTrainer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from models.catalogue import find, literals
from models.protocols import TokenisedCorpus, Tokenizer
from models.training.job import Outcome, TrainingJob, TrainingListener


class OwnTrainer(Protocol):
    """A family that trains itself; all of it are class methods."""

    def train(
        self, job: TrainingJob, folder: Path, listener: TrainingListener | None = None
    ) -> Outcome:
        """Train a stage, as `models.training.gradient.train`.

        It writes its arrays as ``network.safetensors``, and the other files by `write_settings`.
        """
        ...

    def heldout_losses(
        self, folder: Path, tokenizer: Tokenizer, corpora: Mapping[str, TokenisedCorpus]
    ) -> dict[str, dict[str, float]]:
        """As `models.evaluation.heldout.heldout_losses`: ``loss`` a corpus, or more."""
        ...


def own_trainer(family: str, folders: Sequence[Path] = ()) -> OwnTrainer | None:
    """The family, if it trains itself."""
    if literals("families", family, folders).get("TRAINS"):
        return find("families", family, folders)  # pyright: ignore[reportReturnType]
    return None
