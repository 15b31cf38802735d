"""Measure a network after each stage, and a fine-tuned model on the rows the gate decides on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.steps.answers import rivals_of, texts_of
from tasks.steps.durable import durable
from tasks.steps.tokenize_corpus import DOCUMENTS, ROWS, a_character, load_tokenizer
from tasks.store.artifacts import Findings, Input
from tasks.store.steps import Bound

PREDICTIONS = "predictions.parquet"
GATE_PREDICTIONS = "gate-predictions.parquet"
LATENCY_CALLS = 100
GATE = ("split", "rows", "metrics", "baseline", "slices")  # what it reads of its rows' scores


@durable()
def measure_stage(step: Bound, folder: Path) -> Findings:
    """Held-out loss on every corpus of the recipe, and what the network knows of the labels.

    Before the finetune stage the task metric is a linear probe's on frozen features; after it, the
    fine-tuned model's own, both on the dev rows.
    """
    from corpora.shards import TokenisedCorpus, TokenisedRows
    from models.evaluation.classification import evaluate
    from models.evaluation.heldout import heldout_losses
    from models.evaluation.predict import predict
    from models.evaluation.probe import probe

    settings, folders = step.step.settings, step.step.given["folders"]
    stage, tokenizer = step.inputs["stage"], load_tokenizer(step.inputs["tokenizer"])
    tokens = {
        role.removeprefix("tokens "): artifact
        for role, artifact in step.inputs.items()
        if role.startswith("tokens ")
    }
    # Without any pre-training there is no head that could guess a token.
    objective = settings["objective"]
    measurable = f"heads/{objective}.safetensors" in stage.outputs
    heldout = {
        name: TokenisedCorpus(artifact.path(DOCUMENTS), "heldout")
        for name, artifact in tokens.items()
        if measurable and artifact.facts["tokens"].get("heldout")
    }
    losses: Mapping[str, Mapping[str, float]] = {}
    if heldout:
        losses = heldout_losses(
            stage.folder,
            tokenizer,
            heldout,
            objective=objective,
            sequence_length=settings["sequence_length"],
            folders=folders,
        )
    loss = {name: scores["loss"] for name, scores in losses.items()}
    found: dict[str, Any] = {
        "heldout_loss": loss,
        "heldout_error": {n: scores["error"] for n, scores in losses.items() if "error" in scores},
        "heldout_loss_a_character": a_character(loss, tokens),
        "heldout_accuracy": {name: scores["accuracy"] for name, scores in losses.items()},
    }
    if settings["dataset"]:
        rows = tokens[settings["dataset"]]
        dev = TokenisedRows(rows.path(ROWS), "dev")
        num_labels, metric = len(rows.facts["labels"]), settings["metric"]
        if settings["stage"] == "finetune":
            said = predict(stage.folder, tokenizer, dev, folders=folders)
            score = evaluate(dev.labels, said.label_ids, num_labels, [metric])
        else:
            train = TokenisedRows(rows.path(ROWS), "train")
            said = probe(
                stage.folder,
                tokenizer,
                train,
                dev,
                markings=rows.facts["markings"],
                folders=folders,
            )
            score = evaluate(dev.labels, said, num_labels, [metric])
        found["task_metric"] = {"name": metric, "value": score[metric]}
    (folder / "measured.json").write_text(json.dumps(found, indent=1, sort_keys=True))
    return Findings(found)


@durable()
def evaluate_model(step: Bound, folder: Path) -> Findings:
    """Score the model beside the cheap baseline, and on the rows its gate will decide on.

    Where those have no rows, the gate decides on those of the scores.
    """
    from corpora.prepared import prepared_rows
    from corpora.shards import TokenisedRows
    from models.evaluation.slices import forgetting

    settings = step.step.settings
    split = settings["split"]
    facts = _score(step, split, folder / PREDICTIONS)
    if asked := settings["gate_split"]:
        there = len(TokenisedRows(step.inputs["rows"].path(ROWS), asked))
        gate = _score(step, asked if there else split, folder / GATE_PREDICTIONS)
        facts["gate"] = {name: gate[name] for name in GATE}
    losses = [
        measured.facts["heldout_loss"]
        for role, measured in step.inputs.items()
        if role.startswith("measurement ")
    ]
    package = step.inputs["package"]
    facts |= {
        "forgetting": forgetting(losses, settings["forgetting_on"]),
        "size_mb": package.facts["size_mb"],
    }
    texts = prepared_rows(step.inputs["dataset"].folder)
    latency = _latency(package, [row for row in texts if row.split == split])
    return Findings(facts, {"latency_ms": latency})


def _score(step: Bound, split: str, path: Path) -> dict[str, Any]:
    """The scores of a split's rows; every answer is kept in a file.

    Answers hold ids and labels and no text, so that a later model can be compared with this one row
    by row; ``text`` is one number for all rows of one text, whose answers are no independent ones.
    """
    import pandas

    from corpora.shards import TokenisedRows
    from models.evaluation.classification import evaluate, left_out
    from models.evaluation.predict import predict
    from models.evaluation.slices import slices_of

    settings, folders = step.step.settings, step.step.given["folders"]
    tokenized, tokenizer = step.inputs["rows"], load_tokenizer(step.inputs["tokenizer"])
    rows = TokenisedRows(tokenized.path(ROWS), split)
    names = tokenized.facts["labels"]
    said = predict(step.inputs["stage"].folder, tokenizer, rows, folders=folders)
    rivals = rivals_of(step.inputs["baseline"], rows.ids, names)

    def score(predicted: np.ndarray, which: Any = slice(None)) -> dict[str, float]:
        return evaluate(rows.labels[which], predicted[which], len(names), settings["metrics"])

    pandas.DataFrame(
        {
            "id": rows.ids,
            "text": texts_of(step.inputs["dataset"], rows.ids, settings["markings"]),
            "label": [names[i] for i in rows.labels],
            "predicted": [names[i] for i in said.label_ids],
            "probability": said.probabilities.max(axis=1).round(6),
            "baseline": [names[i] for i in rivals["cheap_baseline"]],
        }
    ).to_parquet(path)
    grouped = slices_of(settings["slices"], np.asarray(rows.lengths), rows.labels, names)
    unseen = _unseen(step.inputs["dataset"], rows.ids)
    return {
        "split": split,
        "rows": len(rows),
        "metrics": score(said.label_ids),
        "labels_left_out": [names[i] for i in left_out(rows.labels, said.label_ids, len(names))],
        "metrics_clean": score(said.label_ids, unseen),
        "rows_clean": len(unseen),
        "baseline": score(rivals["cheap_baseline"]),
        "majority": score(rivals["majority"]),
        "slices": {name: score(said.label_ids, which) for name, which in grouped.items()},
    }


def _unseen(dataset: Input, ids: Sequence[str]) -> np.ndarray:
    """Numbers of the rows whose text stands in no training row."""
    import pandas

    profile = pandas.read_parquet(dataset.path("profile.parquet")).set_index("id")
    seen = profile["duplicate_of_train"].notna()
    return np.flatnonzero([not seen.get(i, False) for i in ids])


def _latency(package: Input, rows: Sequence[Any]) -> dict[str, float]:
    """Milliseconds of one row through the served model, one call at a time, in this process."""
    from models.interchange.saved_model import load_text_model

    model = load_text_model(package.folder)
    calls = [
        [[row.text]] if row.text_pair is None else [[row.text], [row.text_pair]] for row in rows
    ]
    calls = [calls[i % len(calls)] for i in range(LATENCY_CALLS)]
    for texts in calls[:10]:
        model(*texts)
    seconds = []
    for texts in calls:
        start = time.perf_counter()
        model(*texts)
        seconds.append(time.perf_counter() - start)
    p50, p95 = np.percentile(seconds, [50, 95]) * 1000.0
    return {"p50": float(p50), "p95": float(p95)}
