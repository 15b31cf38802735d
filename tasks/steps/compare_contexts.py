"""Hold the layers of a network against whether a word means the same in two sentences."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from tasks.steps.durable import durable
from tasks.steps.tokens import load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.kept import kept_rows
from tasks.store.predictions import PREDICTIONS
from tasks.store.steps import Bound


@durable()
def compare_contexts(step: Bound, folder: Path) -> Findings:
    """Judge each layer by a threshold on cosines that other rows than the judged ones chose.

    The cosines of the judged rows are written to a file, a column for each layer, beside the
    answers of the layer that is best on the rows that chose. Rows without one marked word a
    sentence are skipped and counted.
    """
    import numpy as np
    import pandas

    from models.catalogue import provided
    from models.evaluation.marked_words import DIFFERENT, SAME, pairs_of
    from models.evaluation.word_in_context import word_in_context
    from models.training.trained_stage import config_of

    settings, inputs, folders = step.step.settings, step.inputs, step.step.given["folders"]
    rows = list(kept_rows(inputs["dataset"], inputs["contract"]))
    pairs, skipped = {}, {}
    for split in (settings["chosen_on"], settings["split"]):
        own = ((row.id, row.texts, row.label) for row in rows if row.split == split)
        pairs[split], skipped[split] = pairs_of(own, settings["markings"])
    asked = pairs[settings["split"]]
    stage = inputs["stage"].folder
    tokenizer = load_tokenizer(inputs["tokenizer"])
    found = word_in_context(stage, tokenizer, pairs[settings["chosen_on"]], asked, folders)
    best = found.layers[found.best]
    answers = {
        "id": [pair.id for pair in asked],
        "label": [SAME if pair.same else DIFFERENT for pair in asked],
        "predicted": np.where(found.cosines[:, found.best] >= best.threshold, SAME, DIFFERENT),
    }
    by_layer = {f"cosine {each.layer}": found.cosines[:, i] for i, each in enumerate(found.layers)}
    pandas.DataFrame(answers | by_layer).to_parquet(folder / PREDICTIONS)
    return Findings(
        {
            "split": settings["split"],
            "rows": len(asked),
            "chosen_on": settings["chosen_on"],
            "chosen_by": len(pairs[settings["chosen_on"]]),
            "skipped": sum(skipped.values()),
            "static": "static" in provided(config_of(stage)["family"], folders),
            "layer": best.layer,
            "layers": [asdict(each) for each in found.layers],
            "metrics": {"accuracy": best.accuracy},
            "constant": found.constant,
            "form": found.form,
        }
    )
