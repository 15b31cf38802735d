"""Probe a pre-trained network on a dataset, without training the network on its labels."""

from __future__ import annotations

from pathlib import Path

from tasks.steps.durable import durable
from tasks.steps.prediction_columns import rivals_of, texts_of
from tasks.steps.tokens import ROWS, load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.predictions import PREDICTIONS
from tasks.store.steps import Bound


@durable()
def probe_network(step: Bound, folder: Path) -> Findings:
    """Score a linear probe on the frozen network's vectors, and the baselines.

    The probe is fitted on the train rows. Its answers to the scored split are written in the format
    of `evaluate_model`.
    """
    import pandas

    from corpora.shards import TokenisedRows
    from models.answers.label import Label
    from models.evaluation.probe import probe
    from models.evaluation.resampling import scores

    settings, inputs = step.step.settings, step.inputs
    split, metric, markings = settings["split"], settings["metric"], settings["markings"]
    train, asked = (TokenisedRows(inputs["rows"].path(ROWS), of) for of in ("train", split))
    said = probe(
        inputs["stage"].folder,
        load_tokenizer(inputs["tokenizer"]),
        train,
        asked,
        markings=markings,
        folders=step.step.given["folders"],
    )
    rivals = rivals_of(inputs["baseline"], asked.ids)
    pandas.DataFrame(
        {
            "id": asked.ids,
            "text": texts_of(inputs["dataset"], asked.ids, markings),
            "label": asked.answers,
            "predicted": said,
            "baseline": rivals["cheap_baseline"],
        }
    ).to_parquet(folder / PREDICTIONS)
    answers = {
        "metrics": said,
        "baseline": rivals["cheap_baseline"],
        "majority": rivals["majority"],
    }
    scored = {of: scores(Label(), asked.answers, a, [metric]) for of, a in answers.items()}
    return Findings({"split": split, "rows": len(asked), **scored})
