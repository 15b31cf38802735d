"""GloVe: products of word vectors are logarithms of how often words stand near each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.protocols import Context
from models.training.job import Outcome, TrainingJob, TrainingListener
from models.vectors.squares import GloveRows, Squares, train_squares

NEEDS = ("static",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
TRAINS = True


class Glove:
    """Weighted least squares on the counts of pairs.

    It trains itself: pairs are counted on disk, then read in random order, each pass in another
    one. The network's table is the sum of both tables, as the authors' code writes it. There is no
    held-out loss, because new text has other counts. Where it differs from the authors' code: 1,024
    pairs are one update, whose squares AdaGrad counts before its step; and these are the squares of
    gradients, as in Duchi et al., there of gradients times the rate. So the first passes go less
    far here; after 15 passes over a small corpus both losses are alike.

    Args:
        context: What is fixed for the stage.
        window: Words to each side that are counted, by one over their distance.
        most: Count from which a pair has full weight (x_max).
        power: Exponent of the weight below that (α).
        learning_rate: AdaGrad's rate.

    Raises:
        RecipeError: A setting is out of range, or no document is longer than the window.
        ContractViolation: The text has no pairs of words.

    Reference:
        Pennington et al. 2014, ACL D14-1162, section 3.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        window: int = 15,
        most: float = 100.0,
        power: float = 0.75,
        learning_rate: float = 0.05,
    ):
        self.context = context
        self.settings = Squares(window, most, power, learning_rate)

    def attach(self, network: Any) -> GloveRows:
        """Both tables and biases."""
        return GloveRows(network)

    @classmethod
    def train(
        cls, job: TrainingJob, folder: Path, listener: TrainingListener | None = None
    ) -> Outcome:
        """As `models.training.own_trainer.OwnTrainer.train`."""
        made = cls(
            Context(job.tokenizer, job.stage.sequence_length), **job.stage.objectives["glove"]
        )
        return train_squares(job, folder, listener, made.settings)
