"""CBOW, the continuous bag of words: the mean of the vectors around a word predicts it."""

from __future__ import annotations

import numpy as np

from models.protocols import Context
from models.vectors.context_windows import Block
from models.vectors.logistic import QuestionSums
from models.vectors.objective import WindowObjective
from models.vectors.training import Settings, Vectors

NEEDS = ("static",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
TRAINS = True
MEASURED = {}
PER_TOKEN = False  # the loss is of all questions that a predicted word is asked


def cbow(
    vectors: Vectors, block: Block, rng: np.random.Generator, rate: float = 0.0
) -> QuestionSums:
    """As `models.vectors.training.Update`."""
    number = block.pairs.sum(axis=2, keepdims=True)  # (C, T, 1)
    shares = block.pairs / np.maximum(number, 1.0)  # (C, T, J)
    means = shares @ vectors.words.vectors(block.around)  # (C, T, D)
    # Each input predicts its own word, unless nothing is around it.
    there = number[..., 0] > 0
    questions = vectors.output.own_questions(block.words, there, rng)
    outputs = vectors.context.vectors(questions.rows)
    score, gradient = questions.answered(means, outputs, float(there.sum()))
    if rate:
        into = block.pairs.swapaxes(1, 2)  # (C, J, T)
        for_around = into @ questions.for_inputs(gradient, outputs)  # (C, J, D)
        of_around = (into @ questions.of_inputs()[..., None])[..., 0]  # (C, J)
        vectors.words.descend(block.around, for_around, of_around, rate)
        vectors.context.step(*questions.for_outputs(gradient, means), rate)
    return score


class Cbow(WindowObjective):
    """The word in the middle of a window is predicted from the mean of the vectors around it.

    It trains itself, as `skip_gram` does, and differs from word2vec.c in the same two ways. As
    there, each word of a window gets the whole gradient of the mean, without the division by their
    number.

    Args:
        context: What is fixed for the stage.
        window: Words to each side at most; each word's window is drawn from 1 to this.
        noise_words: Noise words for each predicted word; 0 for hierarchical softmax in place of
            negative sampling.
        noise_power: Exponent of a word's frequency among the noise words.
        subsampling: Share of the text above which a word is thinned out, before windows are cut;
            0 keeps all words.
        learning_rate: Rate at the start; it falls linearly.

    Raises:
        RecipeError: A setting is out of range, or no document is longer than the window.
        ContractViolation: The text has no words.

    Reference:
        Mikolov et al. 2013, arXiv 1301.3781, 3.1; defaults are those of word2vec.c.
    """

    chooses = CHOOSES
    name = "cbow"
    update = staticmethod(cbow)

    def __init__(
        self,
        context: Context,
        *,
        window: int = 5,
        noise_words: int = 5,
        noise_power: float = 0.75,
        subsampling: float = 1e-3,
        learning_rate: float = 0.05,
    ):
        self.context = context
        self.settings = Settings(window, noise_words, noise_power, subsampling, learning_rate)
