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

    A question with a word that has no vector is skipped and counted; fastText has one of each word
    that has n-grams.
    """
    from models.evaluation.word_relations import stage_relations

    given = step.step.given
    (file,) = given["snapshot"].files
    metric, whole, sections = stage_relations(
        step.inputs["stage"].folder,
        load_tokenizer(step.inputs["tokenizer"]),
        Path(file.path),
        given["folders"],
    )
    return Findings(
        {
            "asked": whole.asked,
            "skipped": whole.skipped,
            "metrics": {} if math.isnan(whole.score) else {metric: whole.score},
            "sections": {name: each.score for name, each in sections.items() if each.asked},
        }
    )
