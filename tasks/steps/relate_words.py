"""Hold a network's word vectors against similarities and analogies."""

from __future__ import annotations

import math
from pathlib import Path

from tasks.steps.durable import durable
from tasks.steps.tokens import load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.steps import Bound


@durable()
def relate_words(step: Bound, folder: Path) -> Findings:
    """Score a file of similarities or analogies on the vectors of whole words.

    A question with a word that is not in the vocabulary is skipped and counted.
    """
    from models.evaluation.word_relations import stage_relations

    (file,) = step.step.given["snapshot"].files
    metric, whole, sections = stage_relations(
        step.inputs["stage"].folder, load_tokenizer(step.inputs["tokenizer"]), Path(file.path)
    )
    return Findings(
        {
            "asked": whole.asked,
            "skipped": whole.skipped,
            "metrics": {} if math.isnan(whole.score) else {metric: whole.score},
            "sections": {name: each.score for name, each in sections.items() if each.asked},
        }
    )
