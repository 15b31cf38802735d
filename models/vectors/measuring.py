"""The loss of word vectors on held-out text, the same way before, between and after stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from models.evaluation.resampling import ratio_error
from models.inputs.randomness import generator
from models.protocols import TokenisedCorpus, Tokenizer
from models.training.trained_stage import load_stage
from models.vectors import text
from models.vectors.context import ContextVectors
from models.vectors.context_windows import blocks
from models.vectors.logistic import QuestionSums
from models.vectors.tables import Table
from models.vectors.training import Settings, Update, Vectors, output_of
from models.weights import array_of

SEED = 20_201  # of windows and noise words
MOST = 200_000  # tokens measured of each corpus, in portions of a drawn order


def measured_losses(
    folder: Path,
    tokenizer: Tokenizer,
    corpora: Mapping[str, TokenisedCorpus],
    objective: str,
    settings: Settings,
    update: Update,
    folders: tuple[Path, ...] = (),
) -> dict[str, dict[str, float]]:
    """Loss of a stage's vectors; as `models.evaluation.heldout.heldout_losses`.

    Windows and noise are those of the given settings, whatever the stage was trained with, unless
    its vectors are those of a tree's nodes. No word is thinned out. Noise is drawn by the
    frequencies of the held-out text itself, so that losses of different stages can be compared.

    Returns:
        {source: {"loss": nats for each predicted word and its noise words, "accuracy": share of
        questions answered right, "error": standard error of the loss}}.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    scorer: ContextVectors = stage.scorer(objective, stage.objective(objective, folders))
    context, tree = scorer.arrays()
    if tree.any():
        settings = replace(settings, noise_words=0)
    words = array_of(stage.network.token_embedding.embeddings)
    found: dict[str, dict[str, float]] = {}
    for source, corpus in corpora.items():
        given = {source: (corpus, 1.0)}
        frequencies = text.frequencies(given, tokenizer)
        vectors = Vectors(Table(words), Table(context), output_of(settings, frequencies, tree))
        kept = text.kept_shares(frequencies, 0.0)
        total, parts = QuestionSums(), []
        with threadpool_limits(1):
            for portion in text.portions(given, min(MOST, corpus.num_tokens), SEED):
                rng = generator(SEED, "heldout", portion.number)
                ids, documents = text.kept_words(portion, given, kept, rng)
                for block in blocks(ids, documents, settings.window, rng):
                    score = update(vectors, block, rng, 0.0)
                    total += score
                    parts.append((score.loss, score.pairs))
        found[source] = {
            "loss": total.loss / max(total.pairs, 1.0),
            "accuracy": total.right / max(total.questions, 1.0),
        }
        if len(parts) > 1 and total.pairs:
            found[source]["error"] = ratio_error(*np.transpose(parts))
    return found
