"""Families and objectives that train themselves.

A stage is trained by gradient. A family that is trained otherwise, such as a counted n-gram model,
says ``TRAINS = True`` among its literals and is an `OwnTrainer`. So does an objective that trains
its network otherwise, such as one of static word vectors; a head then fine-tunes that network by
gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from models.catalogue import find, literals
from models.protocols import TokenisedCorpus, Tokenizer
from models.training.job import Outcome, TrainingJob, TrainingListener


class OwnTrainer(Protocol):
    """A family or an objective that trains itself; all of it are class methods."""

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


def own_trainer(
    family: str, objectives: Iterable[str] = (), folders: Sequence[Path] = ()
) -> OwnTrainer | None:
    """The family, if it trains itself, else the first of the objectives that does.

    Args:
        family: Name of the family.
        objectives: Names of the objectives that train or measure; none where there is a head.
        folders: Project folders, searched first.
    """
    parts = [("families", family), *(("objectives", name) for name in objectives)]
    for kind, name in parts:
        if literals(kind, name, folders).get("TRAINS"):
            return find(kind, name, folders)  # pyright: ignore[reportReturnType]
    return None
