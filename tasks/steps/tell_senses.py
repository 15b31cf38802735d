"""Find out how far the layers of a network tell the senses of words apart."""

from __future__ import annotations

from pathlib import Path

from tasks.steps.durable import durable
from tasks.steps.tokens import load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.steps import Bound


@durable()
def tell_senses(step: Bound, folder: Path) -> Findings:
    """Compare a word's vectors within a sense and between senses; occurrences have numbers."""
    from models.evaluation.marked_words import word_in
    from models.evaluation.polysemy import polysemy

    words = {
        word: [
            (sense, found)
            for sense, texts in senses.items()
            for text in texts
            if (found := word_in(text, word)) is not None  # the recipe has been checked
        ]
        for word, senses in step.step.settings["words"].items()
    }
    found = polysemy(
        step.inputs["stage"].folder,
        load_tokenizer(step.inputs["tokenizer"]),
        words,
        step.step.given["folders"],
    )
    return Findings(
        {
            "words": {
                word: {
                    "senses": [sense for sense, _ in words[word]],
                    "layers": [
                        {**vars(layer), "points": layer.points.round(4).tolist()}
                        for layer in layers
                    ],
                }
                for word, layers in found.items()
            }
        }
    )
