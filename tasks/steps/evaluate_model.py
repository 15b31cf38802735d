"""Score a fine-tuned model and its baselines, on the evaluation split and on the gate's rows."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.steps.durable import durable
from tasks.steps.fit_baseline import SEEING
from tasks.steps.prediction_columns import rivals_of, texts_of
from tasks.steps.tokens import ROWS, load_tokenizer
from tasks.store.artifacts import Findings, Input
from tasks.store.predictions import GATE_PREDICTIONS, PREDICTIONS
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from models.protocols import Answers

LATENCY_CALLS = 100
GATE = (
    "split",
    "rows",
    "answers",
    "metrics",
    "baseline",
    "slices",
)  # fields of the scores that the gate reads


@durable()
def evaluate_model(step: Bound, folder: Path) -> Findings:
    """Score the model and the cheap baseline on the evaluation split and on the gate's split.

    If the gate's split has no rows, the gate uses the evaluation split.
    """
    from corpora.prepared import prepared_rows
    from corpora.shards import TokenisedRows
    from models.evaluation.forgetting import forgetting

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
    facts |= {"forgetting": forgetting(losses, settings["forgetting_on"]), "size_mb": None}
    if "package" not in step.inputs:
        return Findings(facts, {"latency_ms": {}})
    package = step.inputs["package"]
    facts["size_mb"] = package.facts["size_mb"]
    dataset = step.inputs["dataset"].folder
    latency = _latency(package, [r for r in prepared_rows(dataset) if r.split == split], dataset)
    return Findings(facts, {"latency_ms": latency})


def _score(step: Bound, split: str, path: Path) -> dict[str, Any]:
    """Score the rows of a split and write every answer to a file.

    The file allows a row-by-row comparison with a later model. It holds ids and labels, but no
    text; ``text`` is a number shared by all rows of a text, since their answers are not
    independent.
    """
    import pandas

    from corpora.shards import TokenisedRows
    from models.catalogue import answers_name, answers_of
    from models.evaluation.predict import predict
    from models.evaluation.slices import slices_of

    settings, folders = step.step.settings, step.step.given["folders"]
    tokenized, tokenizer = step.inputs["rows"], load_tokenizer(step.inputs["tokenizer"])
    rows = TokenisedRows(tokenized.path(ROWS), split)
    answers = answers_of(settings["head"], folders)
    found = predict(
        step.inputs["stage"].folder,
        tokenizer,
        rows,
        metrics=settings["metrics"],
        folders=folders,
    )
    said, true = (np.array(texts, object) for texts in ([a.text for a in found], rows.answers))
    rivals = rivals_of(step.inputs["baseline"], rows.ids) if "baseline" in step.inputs else {}
    learned = TokenisedRows(tokenized.path(ROWS), "train").answers
    names = answers.names(learned) if answers.is_class else ()

    def score(predicted: np.ndarray, which: slice | np.ndarray = slice(None)) -> dict[str, float]:
        return defined_scores(answers, true[which], predicted[which], settings["metrics"])

    pandas.DataFrame(
        {
            "id": rows.ids,
            "text": texts_of(step.inputs["dataset"], rows.ids, settings["markings"]),
            "label": true,
            "predicted": said,
            "probability": np.round([answer.probability for answer in found], 6),
            **({"baseline": rivals["cheap_baseline"]} if rivals else {}),
        }
    ).to_parquet(path)
    grouped = slices_of(settings["slices"], np.asarray(rows.lengths), true, names)
    unseen = _unseen(step.inputs["dataset"], rows.ids)
    kind = answers_name(settings["head"], folders)
    plain = np.array(list(map(_without_likelihood, said)), object) if kind == "text" else said
    return {
        "split": split,
        "rows": len(rows),
        "answers": kind,
        "metrics": score(said),
        "commonest": _commonest(plain, true),
        "labels_left_out": labels_left_out(answers, learned, true, said),
        "metrics_clean": score(said, unseen),
        "rows_clean": len(unseen),
        "baseline": score(rivals["cheap_baseline"]) if rivals else {},
        "majority": score(rivals["majority"]) if rivals else {},
        **({"seeing_baseline": score(rivals[SEEING])} if SEEING in rivals else {}),
        "slices": {name: score(said, which) for name, which in grouped.items()},
    }


def defined_scores(
    answers: Answers, true: np.ndarray, said: np.ndarray, metrics: Sequence[str]
) -> dict[str, float]:
    """{metric: value} of those that are defined; of no rows none is.

    Args:
        answers: The kind of answer.
        true: (rows,) correct answers.
        said: (rows,) answers.
        metrics: Names of metrics.
    """
    from models.evaluation.resampling import scores

    found = scores(answers, true, said, metrics) if len(true) else {}
    return {metric: value for metric, value in found.items() if not isnan(value)}


def labels_left_out(
    answers: Answers, learned: Sequence[str], true: np.ndarray, said: np.ndarray
) -> list[str]:
    """Labels or types of spans that a mean over them leaves out: no row and no answer has them.

    Args:
        answers: The kind of answer.
        learned: Answers of the training rows.
        true: (rows,) correct answers.
        said: (rows,) answers.
    """
    if not {"macro_f1", "entity_macro_f1"} & answers.metrics.keys():
        return []
    there = set(answers.names([*true, *said]))
    return [name for name in answers.names(learned) if name not in there]


def _without_likelihood(answer: str) -> str:
    """An answer that is a text, without the likelihood of its row's reference."""
    said = json.loads(answer or "[]")
    texts = said.get("texts", []) if isinstance(said, dict) else said
    return json.dumps(texts, ensure_ascii=False)


def _commonest(said: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Shares of rows, 0-1, that get the commonest prediction, and of which it is the answer."""
    answers, counts = np.unique(said.astype(str), return_counts=True)
    if not len(answers):
        return {}
    most = answers[counts.argmax()]
    return {"predicted": float((said == most).mean()), "right": float((true == most).mean())}


def _unseen(dataset: Input, ids: Sequence[str]) -> np.ndarray:
    """Positions of the rows whose text is in no training row."""
    import pandas

    profile = pandas.read_parquet(dataset.path("profile.parquet")).set_index("id")
    seen = profile["duplicate_of_train"].notna()
    return np.flatnonzero([not seen.get(i, False) for i in ids])


def _latency(package: Input, rows: Sequence[Any], dataset: Path) -> dict[str, float]:
    """Latency in ms of the packaged model for one row per call, in this process: p50 and p95.

    Of a row with a picture, from the regions that were found in it before.
    """
    from corpora.linking import linker
    from corpora.pictures import PreparedRegions
    from models.interchange.saved_model import HEAD, load_text_model

    model = load_text_model(package.folder, linker)
    rows = [rows[i % len(rows)] for i in range(LATENCY_CALLS)]
    calls = [
        [[part] for part in (row.text, row.text_pair, row.choices) if part is not None]
        for row in rows
    ]
    if json.loads(package.path(HEAD).read_text(encoding="utf-8")).get("most_regions"):
        regions = PreparedRegions(dataset)
        for call, row in zip(calls, rows, strict=True):
            call.append([regions.of(row.picture)])
    for texts in calls[:10]:
        model(*texts)
    seconds = []
    for texts in calls:
        start = time.perf_counter()
        model(*texts)
        seconds.append(time.perf_counter() - start)
    p50, p95 = np.percentile(seconds, [50, 95]) * 1000.0
    return {"p50": float(p50), "p95": float(p95)}
