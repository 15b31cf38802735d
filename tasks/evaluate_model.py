"""Measure a network after each stage, and a fine-tuned model on the rows the gate decides on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.artifacts import Findings, Input
from tasks.durable import durable
from tasks.fit_baseline import ANSWERS
from tasks.steps import Bound
from tasks.tokenize_corpus import DOCUMENTS, ROWS, a_character, load_tokenizer

PREDICTIONS = "predictions.parquet"
LATENCY_CALLS = 100
GUESSER = "masked_lm"  # the head under which held-out text is measured


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
    # Without any pre-training there is no head that could guess a hidden word.
    measurable = f"heads/{GUESSER}.safetensors" in stage.outputs
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
            objective=GUESSER,
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
            score = probe(
                stage.folder, tokenizer, train, dev, num_labels, metrics=[metric], folders=folders
            )
        found["task_metric"] = {"name": metric, "value": score[metric]}
    (folder / "measured.json").write_text(json.dumps(found, indent=1, sort_keys=True))
    return Findings(found)


@durable()
def evaluate_model(step: Bound, folder: Path) -> Findings:
    """Score the model on the gate's rows beside the cheap baseline; keep every prediction.

    Predictions hold ids and labels and no text, so that a later model can be compared with this one
    row by row.
    """
    import pandas

    from corpora.prepared import prepared_rows
    from corpora.shards import TokenisedRows
    from models.evaluation.classification import evaluate, left_out
    from models.evaluation.predict import predict
    from models.evaluation.slices import forgetting, slices_of

    settings, folders = step.step.settings, step.step.given["folders"]
    split, metrics = settings["split"], settings["metrics"]
    tokenized, tokenizer = step.inputs["rows"], load_tokenizer(step.inputs["tokenizer"])
    rows = TokenisedRows(tokenized.path(ROWS), split)
    names = tokenized.facts["labels"]
    said = predict(step.inputs["stage"].folder, tokenizer, rows, folders=folders)
    rivals = _rivals(step.inputs["baseline"], rows.ids, names)

    def score(predicted: np.ndarray, which: Any = slice(None)) -> dict[str, float]:
        return evaluate(rows.labels[which], predicted[which], len(names), metrics)

    pandas.DataFrame(
        {
            "id": rows.ids,
            "label": [names[i] for i in rows.labels],
            "predicted": [names[i] for i in said.label_ids],
            "probability": said.probabilities.max(axis=1).round(6),
            "baseline": [names[i] for i in rivals["cheap_baseline"]],
        }
    ).to_parquet(folder / PREDICTIONS)
    grouped = slices_of(settings["slices"], np.asarray(rows.lengths), rows.labels, names)
    unseen = _unseen(step.inputs["dataset"], rows.ids)
    losses = [
        measured.facts["heldout_loss"]
        for role, measured in step.inputs.items()
        if role.startswith("measurement ")
    ]
    package = step.inputs["package"]
    facts = {
        "split": split,
        "rows": len(rows),
        "metrics": score(said.label_ids),
        "labels_left_out": [names[i] for i in left_out(rows.labels, said.label_ids, len(names))],
        "metrics_clean": score(said.label_ids, unseen),
        "rows_clean": len(unseen),
        "baseline": score(rivals["cheap_baseline"]),
        "majority": score(rivals["majority"]),
        "slices": {name: score(said.label_ids, which) for name, which in grouped.items()},
        "forgetting": forgetting(losses, settings["forgetting_on"]),
        "size_mb": package.facts["size_mb"],
    }
    texts = prepared_rows(step.inputs["dataset"].folder)
    latency = _latency(package, [row for row in texts if row.split == split])
    return Findings(facts, {"latency_ms": latency})


def _rivals(baseline: Input, ids: Sequence[str], names: Sequence[str]) -> dict[str, np.ndarray]:
    """(rows,) label ids that each cheap rival says of the rows."""
    import pandas

    said = pandas.read_parquet(baseline.path(ANSWERS)).set_index("id").loc[list(ids)]
    number = {name: i for i, name in enumerate(names)}
    return {rival: said[rival].map(number).to_numpy(np.int64) for rival in said}


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
