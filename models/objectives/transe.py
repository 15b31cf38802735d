"""TransE: relations are steps from the vectors of heads to those of tails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.protocols import Context, TokenisedCorpus, Tokenizer
from models.training.job import Outcome, TrainingJob, TrainingListener
from models.vectors.graph import NothingBeside, measured_losses, train_graph
from models.vectors.translation import Translation

NEEDS = ("static",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
TRAINS = True
READS_TRIPLES = True
MEASURED = {}
DISTANCES = ("l1", "l2")  # of `distance`, as `models.vectors.translation` has them
PER_TOKEN = False  # the loss compares two triples


class TransE:
    """A triple is told from one whose head or tail is another: the true tail is nearer.

    It trains itself: an update is a batch of triples, whose summed gradient moves the rows it
    touches. A text is three names, head, relation and tail; triples with unknown names are left
    out. Where it differs from the paper: a name with more than 4 / rate gradients in one update
    goes as far as so many would take it (`models.vectors.tables`), and training ends with its
    budget, not with the best score on validation triples.

    Args:
        context: What is fixed for the stage.
        margin: γ, by how much a triple has to be nearer than the corrupted one.
        distance: ``l1``, the sum of absolute differences, or ``l2``, the Euclidean distance.
        learning_rate: Rate of stochastic gradient descent.

    Raises:
        RecipeError: A setting is out of range.
        UnknownNameError: There is no such distance.
        ContractViolation: A text is no triple, no triple has only known names, or a name is both
            an entity and a relation.

    Reference:
        Bordes et al. 2013, "Translating Embeddings for Modeling Multi-relational Data", NIPS,
        section 2 and algorithm 1; defaults are those for Freebase 15k (4.1).
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        margin: float = 1.0,
        distance: str = "l1",
        learning_rate: float = 0.01,
    ):
        self.context = context
        self.settings = Translation(margin, distance, learning_rate)

    def attach(self, network: Any) -> NothingBeside:
        """Nothing: all that is learned is the network's table."""
        return NothingBeside("transe")

    @classmethod
    def train(
        cls, job: TrainingJob, folder: Path, listener: TrainingListener | None = None
    ) -> Outcome:
        """As `models.training.own_trainer.OwnTrainer.train`."""
        context = Context(job.tokenizer, job.stage.sequence_length)
        settings = cls(context, **job.stage.objectives["transe"]).settings
        return train_graph(job, folder, listener, "transe", settings)

    @classmethod
    def heldout_losses(
        cls, folder: Path, tokenizer: Tokenizer, corpora: Mapping[str, TokenisedCorpus]
    ) -> dict[str, dict[str, float]]:
        """As `models.training.own_trainer.OwnTrainer.heldout_losses`."""
        return measured_losses(folder, tokenizer, corpora, cls(Context(tokenizer, 0)).settings)
