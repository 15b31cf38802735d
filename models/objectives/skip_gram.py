"""Skip-gram: a word's vector predicts each word around it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from models.protocols import Capability, Context, TokenisedCorpus, Tokenizer
from models.training.job import Outcome, TrainingJob, TrainingListener
from models.vectors.context import ContextVectors
from models.vectors.logistic import Score, answered
from models.vectors.measuring import measured_losses
from models.vectors.training import Settings, Vectors, train_vectors
from models.vectors.windows import Block

NEEDS = ("static",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
TRAINS = True
MEASURED = {}
PER_TOKEN = False  # the loss is of all questions that a predicted word is asked


class SkipGram:
    """Each word of a window is predicted from the word in its middle.

    It trains itself, by gradient descent without momentum on the rows that a block of text touches
    (`models.vectors`), because few of the rows of a table change in an update. Where it differs
    from word2vec.c: a block of 256 words is one update, and 32 words share their noise words; the
    middle predicts the words around it, as in the paper, where the code swaps the two.

    Args:
        context: What is fixed for the stage.
        window: Words to each side at most; each word's window is drawn from 1 to this.
        noise_words: Noise words for each predicted word; 0 for hierarchical softmax in place of
            negative sampling.
        noise_power: Exponent of a word's frequency among the noise words (fastText: 0.5).
        subsampling: Share of the text above which a word is thinned out, before windows are cut;
            0 keeps all words.
        learning_rate: Rate at the start; it falls linearly.

    Raises:
        RecipeError: A setting is out of range, or no document is longer than the window.
        ContractViolation: The text has no words.

    Reference:
        Mikolov et al. 2013, arXiv 1310.4546, equations 1 to 5; defaults are those of word2vec.c.
    """

    needs = frozenset(Capability(name) for name in NEEDS)
    provides = frozenset(Capability(name) for name in PROVIDES)
    chooses = CHOOSES
    prepares = PREPARES

    def __init__(
        self,
        context: Context,
        *,
        window: int = 5,
        noise_words: int = 5,
        noise_power: float = 0.75,
        subsampling: float = 1e-3,
        learning_rate: float = 0.025,
    ):
        self.context = context
        self.settings = Settings(window, noise_words, noise_power, subsampling, learning_rate)

    def attach(self, network: Any) -> ContextVectors:
        """The vectors of predicted words."""
        return ContextVectors(network, "skip_gram")

    @classmethod
    def train(
        cls, job: TrainingJob, folder: Path, listener: TrainingListener | None = None
    ) -> Outcome:
        """As `models.training.own_trainer.OwnTrainer.train`."""
        made = cls(
            Context(job.tokenizer, job.stage.sequence_length), **job.stage.objectives["skip_gram"]
        )
        return train_vectors(job, folder, listener, "skip_gram", made.settings, skip_gram)

    @classmethod
    def heldout_losses(
        cls,
        folder: Path,
        tokenizer: Tokenizer,
        corpora: Mapping[str, TokenisedCorpus],
        folders: tuple[Path, ...] = (),
    ) -> dict[str, dict[str, float]]:
        """As `models.training.own_trainer.OwnTrainer.heldout_losses`."""
        settings = cls(Context(tokenizer, 0)).settings
        return measured_losses(
            folder, tokenizer, corpora, "skip_gram", settings, skip_gram, folders
        )


def skip_gram(vectors: Vectors, block: Block, rng: np.random.Generator, rate: float = 0.0) -> Score:
    """As `models.vectors.training.Update`."""
    questions = vectors.output.questions(block.around, block.pairs, rng)
    score, for_words, for_context = answered(
        vectors.words.vectors(block.words),
        vectors.context.vectors(questions.rows),
        questions,
        float(block.pairs.sum()),
    )
    if rate:
        asked = questions.asked
        vectors.words.descend(block.words, for_words, asked.sum(axis=2), rate)
        vectors.context.descend(questions.rows, for_context, asked.sum(axis=1), rate)
    return score
