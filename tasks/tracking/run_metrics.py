"""Metrics of a finished run, for MLflow's tables, charts and searches.

A score of the evaluation has its plain name (``accuracy``), for searching and sorting. Related
scores have a prefix (``baseline/accuracy``). A figure measured after every stage is one metric with
a step per stage (``heldout_loss/CORPUS``); step 0 is the unigram loss. Scores of answers from a
prompt (``few_shot/DATASET/METRIC``) have a step per number of examples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.store.ancestry import Manifest
from tasks.store.model_facts import ModelFacts
from tasks.store.step_names import subject_of
from tasks.tracking.connection import Tracking, answered
from tasks.tracking.dataset_inputs import name_and_digest
from tasks.tracking.runs import BATCH, metric_name

if TYPE_CHECKING:
    from mlflow.entities import Metric


@dataclass(frozen=True)
class Figure:
    """One value of a metric.

    Attributes:
        name: Name of the metric.
        value: The value.
        step: Number of the stage after which it was measured; 0 for a single figure.
        text: The dataset or corpus it was measured on.
        stage: Key of the measured stage; None for the whole model.
    """

    name: str
    value: float
    step: int = 0
    text: Manifest | None = None
    stage: str | None = None


def figures(facts: ModelFacts) -> Iterator[Figure]:
    """All figures of a model. Scores come first, since MLflow keeps the order."""
    yield from _scores(facts)
    yield from _by_stage(facts)


def _by_stage(facts: ModelFacts) -> Iterator[Figure]:
    """Losses, cost and the task metric of each stage; how often its texts name an entity."""
    for kind in ("tokens", "rows"):
        for text in facts.ancestry.of_kind(kind):
            if names := text.facts.get("names"):
                of, tokens = subject_of(text.name), sum(text.facts["tokens"].values())
                yield Figure(f"names_linked/{of}", names["linked"] / max(1, names["found"]))
                yield Figure(f"names_linked_a_token/{of}", names["linked"] / max(1, tokens))
    met: Counter[str | None] = Counter()
    for number, stage in enumerate(facts.stages, 1):
        of, key = stage.stage, stage.key
        again = met[of]  # a refreshed stage continues an older one of the same name
        met[of] += 1
        yield Figure(f"tokens/{of}", stage.facts.get("tokens", 0), again, stage=key)
        yield Figure(f"seconds/{of}", stage.notes.get("seconds", 0), again, stage=key)
        measured = facts.measurements.get(stage.key)
        if measured is None:
            continue
        for name, (text, guessed) in facts.corpora(measured).items():
            if number == 1 and guessed is not None:
                yield Figure(f"heldout_loss/{name}", guessed, 0, text)
            loss = measured.facts["heldout_loss"][name]
            yield Figure(f"heldout_loss/{name}", loss, number, text, key)
            for told in ("heldout_loss_a_character", "heldout_loss_a_word"):
                loss = measured.facts.get(told, {}).get(name)
                if loss is not None:
                    yield Figure(f"{told}/{name}", loss, number, text, key)
        if metric := measured.facts.get("task_metric"):
            labelled = stage.settings.get("stage") == "finetune"
            name = f"dev/{metric['name']}" if labelled else f"probe/{metric['name']}"
            step = again if labelled else number
            yield Figure(name, metric["value"], step, facts.dataset, key)


def _scores(facts: ModelFacts) -> Iterator[Figure]:
    """Figures of the evaluation: scores, baselines, forgetting, latency, size."""
    found = facts.scores
    for place, table in (
        ("", "metrics"),
        ("clean/", "metrics_clean"),
        ("baseline/", "baseline"),
        ("seeing_baseline/", "seeing_baseline"),
        ("majority/", "majority"),
    ):
        for metric, value in found.get(table, {}).items():
            yield Figure(f"{place}{metric}", value, text=facts.dataset)
    for probe in facts.ancestry.of_kind("probe"):
        dataset = subject_of(probe.name)
        for place, table in (("probe", "metrics"), ("baseline", "baseline")):
            for metric, value in probe.facts[table].items():
                yield Figure(f"{place}/{dataset}/{metric}", value, text=facts.dataset_of(probe))
    yield from _few_shot(facts)
    for told in facts.ancestry.of_kind("prototypes"):
        dataset, text = subject_of(told.name), facts.dataset_of(told)
        for place, table in (("prototypes", "metrics"), ("baseline", "baseline")):
            for asked, value in told.facts[table].items():
                yield Figure(f"{place}/{dataset}/{asked}", value, text=text)
    for ranked in facts.ancestry.of_kind("links"):
        place, text = f"links/{subject_of(ranked.name)}", facts.dataset_of(ranked)
        for metric, value in ranked.facts["metrics"].items():
            yield Figure(f"{place}/{metric}", value, text=text)
    for test in facts.ancestry.of_kind("word_relations"):
        for metric, value in test.facts["metrics"].items():
            yield Figure(f"word_relations/{subject_of(test.name)}/{metric}", value)
    for test in facts.ancestry.of_kind("word_in_context"):
        place, text = f"word_in_context/{subject_of(test.name)}", facts.dataset_of(test)
        yield Figure(f"{place}/accuracy", test.facts["metrics"]["accuracy"], text=text)
        for name in ("constant", "form"):
            yield Figure(f"{place}/{name}", test.facts[name], text=text)
        for number, layer in enumerate(test.facts["layers"]):
            yield Figure(f"{place}/accuracy_by_layer", layer["accuracy"], number, text)
    for test in facts.ancestry.of_kind("polysemy"):
        for word, occurrences in test.facts["words"].items():
            for number, layer in enumerate(occurrences["layers"]):
                for name in ("within", "between"):
                    yield Figure(f"polysemy/{word}/{name}", layer[name], number)
                share = layer["same_sense"] / len(occurrences["senses"])
                yield Figure(f"polysemy/{word}/same_sense", share, number)
    for corpus, rise in found.get("forgetting", {}).items():
        yield Figure(f"forgetting/{corpus}", rise)
    for percentile, milliseconds in found.get("latency_ms", {}).items():
        yield Figure(f"latency_ms/{percentile}", milliseconds)
    if (size := found.get("size_mb")) is not None:
        yield Figure("size_mb", size)


def _few_shot(facts: ModelFacts) -> Iterator[Figure]:
    """Scores of answers from a prompt; the step is the number of examples."""
    for asked in facts.ancestry.of_kind("few_shot"):
        place, text = f"few_shot/{subject_of(asked.name)}", facts.dataset_of(asked)
        metric = asked.facts["metric"]
        # The last value is that of most examples, in whatever order a recipe names them.
        for point in sorted(asked.facts["curve"], key=lambda point: point["shots"]):
            for name, value in (
                (metric, point["score"]),
                (f"{metric}_low", point["low"]),
                (f"{metric}_high", point["high"]),
                (f"clean/{metric}", point["clean"]),
                ("examples", point["examples"]),
            ):
                if value is not None:
                    yield Figure(f"{place}/{name}", value, point["shots"], text)
        for name in ("chance", "majority", "seen_before"):
            if (value := asked.facts[name]) is not None:
                yield Figure(f"{place}/{name}", value, text=text)


@answered
def log_figures(
    tracking: Tracking,
    run_id: str,
    found: Iterable[Figure],
    *,
    model_id: str | None = None,
    stage_models: Mapping[str, str] | None = None,
    timestamp: int,
) -> None:
    """Log figures to a run and to the models they describe. Idempotent.

    Args:
        tracking: The MLflow connection.
        run_id: The lifecycle run.
        found: The figures.
        model_id: The logged model for figures of the whole model, if there is one.
        stage_models: Logged model of each stage, by the stage's key.
        timestamp: Time in ms; MLflow stores the same figure at the same time once.
    """
    some = [figure for figure in found if math.isfinite(figure.value)]
    last = {figure.name: figure.step for figure in some}
    about: dict[str | None, list[Figure]] = {None: some}
    if model_id:
        # A model has no curves: of a metric with steps, it gets the last value.
        about[model_id] = [figure for figure in some if figure.step == last[figure.name]]
    for key, identity in (stage_models or {}).items():
        about[identity] = [figure for figure in some if figure.stage == key]
    for identity, its in about.items():
        # A stage that many runs reuse must not get duplicates.
        known = {_measured(metric) for metric in _metrics_of(tracking, identity)}
        metrics = [_metric(figure, identity, timestamp) for figure in its]
        fresh = [metric for metric in metrics if _measured(metric) not in known]
        for start in range(0, len(fresh), BATCH):
            tracking.client.log_batch(run_id, metrics=fresh[start : start + BATCH])


def _metric(figure: Figure, model_id: str | None, timestamp: int) -> Metric:
    from mlflow.entities import Metric

    name, digest = name_and_digest(figure.text) if figure.text else (None, None)
    return Metric(
        metric_name(figure.name),
        float(figure.value),
        timestamp,
        figure.step,
        model_id=model_id,
        dataset_name=name,
        dataset_digest=digest,
    )


def _metrics_of(tracking: Tracking, model_id: str | None) -> list[Metric]:
    return (tracking.client.get_logged_model(model_id).metrics or []) if model_id else []


def _measured(metric: Metric) -> tuple[Any, ...]:
    return metric.key, metric.value, metric.dataset_name, metric.dataset_digest
