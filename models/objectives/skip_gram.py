"""Skip-gram: a word's vector predicts each word around it."""

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


def skip_gram(
    vectors: Vectors, block: Block, rng: np.random.Generator, rate: float = 0.0
) -> QuestionSums:
    """As `models.vectors.training.Update`."""
    questions = vectors.output.questions(block.around, block.pairs, rng)
    inputs = vectors.words.vectors(block.words)
    outputs = vectors.context.vectors(questions.rows)
    score, gradient = questions.answered(inputs, outputs, float(block.pairs.sum()))
    if rate:
        for_words = questions.for_inputs(gradient, outputs)
        vectors.words.descend(block.words, for_words, questions.of_inputs(), rate)
        vectors.context.step(*questions.for_outputs(gradient, inputs), rate)
    return score


class SkipGram(WindowObjective):
    """Each word of a window is predicted from the word in its middle.

    It trains itself, by gradient descent without momentum on the rows that a block of text touches
    (`models.vectors`), because few of the rows of a table change in an update. Where it differs
    from word2vec.c: a block of 512 words is one update, and 32 words share their noise words; the
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

    chooses = CHOOSES
    name = "skip_gram"
    update = staticmethod(skip_gram)

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
