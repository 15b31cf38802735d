"""Draw chosen words of a table of vectors, and find their neighbours."""

from __future__ import annotations

from pathlib import Path

from tasks.steps.durable import durable
from tasks.steps.tokens import load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.steps import Bound


@durable()
def map_words(step: Bound, folder: Path) -> Findings:
    """Find the places of words in the plane. Words without a vector are named and left out.

    fastText has a vector of each word that has n-grams.
    """
    from models.evaluation.word_map import word_map
    from models.vectors.lookup import word_table

    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    words, folders = step.step.settings["words"], step.step.given["folders"]
    table = word_table(step.inputs["stage"].folder, tokenizer, words, folders)
    found = word_map(words, table)
    return Findings(
        {
            "words": list(found.words),
            "points": found.points.round(4).tolist(),
            "nearest": {
                word: [[name, round(cosine, 4)] for name, cosine in near]
                for word, near in found.nearest.items()
            },
            "unknown": list(found.unknown),
        }
    )
