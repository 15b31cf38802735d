"""A trained stage's folder: written after training; read by the next stage and for predictions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models import catalogue
from models.catalogue import TEACHER
from models.inputs.captions import has_pictures
from models.inputs.rows import mark_ids
from models.layers.frozen_features import FrozenFeatures
from models.protocols import Capability, Context, Tokenizer
from models.stage_format import (
    ANSWERS,
    BEFORE_REGIONS,
    CONFIG,
    EARLIER,
    FEATURE_BASED,
    HEADS,
    HISTORY,
    METRICS,
    MIXTURE,
    NETWORK,
    head_file,
    head_files,
)
from models.training.assembly import build_network, build_objectives
from models.training.job import TrainingJob
from models.weights import (
    WIDE,
    array_of,
    load_weights,
    named_weights,
    part_of_weights,
    save_weights,
)

_BESIDE = (WIDE, "shared_tokens/")  # parts of a head that it may begin or cease to have


def config_of(folder: Path) -> dict[str, Any]:
    """The ``config.json`` of a stage's folder."""
    return json.loads((folder / CONFIG).read_text("utf-8"))


def tasks_before(job: TrainingJob) -> dict[str, int]:
    """{task: its number} of the previous stages."""
    if job.initial is None:
        return {}
    return dict(config_of(job.initial).get("tasks", {}))


def load_before(job: TrainingJob, network: Any, scorers: Mapping[str, Any]) -> None:
    """Load the weights of the previous stage into a network, and into the heads that both have.

    Args:
        job: The job, with the folder of the previous stage.
        network: A built network.
        scorers: {objective: its scorer}. A scorer that the previous stage does not have, or has
            with other shapes or answers, keeps its weights, unless it starts as another one of
            that stage.

    Raises:
        RecipeError: The previous stage's network has other shapes.
    """
    assert job.initial is not None
    try:
        load_weights(network, job.initial / NETWORK)
    except ValueError as error:
        raise RecipeError(f"{job.stage.kind}: the previous stage does not fit: {error}") from error
    sees_first = config_of(job.initial).get(BEFORE_REGIONS) and not _before_regions(job)
    if sees_first and hasattr(network, "begin_regions"):
        network.begin_regions()
    asks = catalogue.asking(job.stage.objectives, job.folders)
    for name, scorer in scorers.items():
        if name in asks and list(job.answers) != config_of(job.initial).get(ANSWERS):
            continue  # its outputs are other answers
        for source, part in {name: "", **getattr(scorer, "starts_as", {})}.items():
            path = head_file(job.initial, source)
            if path.exists():
                # Other shapes, such as another number of labels: keeps its new weights.
                with suppress(ValueError):
                    load_weights(scorer, _fitting(scorer, part_of_weights(path, part)))
                break


def _fitting(scorer: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A head's weights, but for its parts beside the network's that only one of both heads has."""
    beside = {
        name: array_of(variable)
        for name, variable in named_weights(scorer).items()
        if name.startswith(_BESIDE)
    }
    kept = {n: a for n, a in arrays.items() if n in beside or not n.startswith(_BESIDE)}
    return beside | kept


def write_weights(job: TrainingJob, folder: Path, network: Any, scorers: Mapping[str, Any]) -> None:
    """Write a trained stage's weights.

    Args:
        job: The job that was trained.
        folder: The stage's folder.
        network: The trained network.
        scorers: {objective: its trained scorer}, and whatever else has a file in ``heads/``.
    """
    save_weights(network, folder / NETWORK)
    (folder / HEADS).mkdir(exist_ok=True)
    for name, scorer in scorers.items():
        # A scorer without weights of its own has an empty file, which says that it was trained.
        save_weights(scorer, head_file(folder, name))
    # Heads that this stage did not use are copied: a later stage may need them, and their loss
    # shows how much was forgotten.
    if job.initial is not None:
        for name, path in head_files(job.initial).items():
            if name not in scorers:
                shutil.copyfile(path, head_file(folder, name))


def write_settings(
    job: TrainingJob,
    folder: Path,
    *,
    precision: str,
    tasks: Mapping[str, int],
    history: Sequence[Mapping[str, float]],
    metrics: Mapping[str, Any],
    chosen: Mapping[str, Any] | None = None,
) -> None:
    """Write a trained stage's configuration, history and metrics.

    Args:
        job: The job that trained the stage.
        folder: The stage's folder.
        precision: ``float32`` or ``bfloat16``.
        tasks: {task: its number}.
        history: Metric rows.
        metrics: Plain JSON.
        chosen: The head's settings that training has chosen.
    """
    config = {
        "stage": job.stage.kind,
        "family": job.stage.family,
        "network": dict(job.stage.network),
        "vocabulary_size": job.tokenizer.vocabulary_size,
        "sequence_length": job.stage.sequence_length,
        "precision": precision,
        "objectives": _objectives(job),
        FEATURE_BASED: job.stage.feature_based and dict(job.stage.feature_based),
        "head": job.stage.head and {job.stage.head: {**job.stage.head_settings, **(chosen or {})}},
        "label_names": list(job.label_names),
        "markings": list(job.markings),
        **({MIXTURE: dict(job.stage.mixture)} if job.stage.mixture else {}),
        **_answers(job),
        **({BEFORE_REGIONS: True} if _before_regions(job) else {}),
        **({EARLIER: earlier} if (earlier := _earlier(job)) else {}),
        "tasks": dict(tasks),
        "tokenizer_digest": job.tokenizer.digest,
    }
    for name, value in (
        (CONFIG, config),
        (HISTORY, list(history)),
        (METRICS, metrics),
    ):
        text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
        (folder / name).write_text(text + "\n", "utf-8")


def _objectives(job: TrainingJob) -> dict[str, dict[str, Any]]:
    """The stage's own, with their settings."""
    # A teacher's folder is specific to this machine; the stage's key identifies the teacher.
    return {
        name: {key: value for key, value in settings.items() if key != TEACHER}
        for name, settings in job.stage.objectives.items()
    }


def _earlier(job: TrainingJob) -> dict[str, dict[str, Any]]:
    """Those of the stages before, whose heads it copies, with the settings that they had."""
    if job.initial is None:
        return {}
    before = config_of(job.initial)
    known = before.get(EARLIER, {}) | before.get("objectives", {})
    return {name: settings for name, settings in known.items() if name not in job.stage.objectives}


def _answers(job: TrainingJob) -> dict[str, list[str]]:
    """The answers of captions that the stage has learned, or a stage before whose head it keeps."""
    answers = list(job.answers)
    if not answers and job.initial is not None:
        answers = config_of(job.initial).get(ANSWERS, [])
    return {ANSWERS: answers} if answers else {}


def _before_regions(job: TrainingJob) -> bool:
    """Whether the network can see pictures, and neither this stage nor one before has any."""
    provided = catalogue.literals("families", job.stage.family, job.folders).get("PROVIDES", ())
    texts = [corpus for corpus, _ in job.corpora.values()] + [*job.rows.values()]
    if Capability.REGIONS not in provided or any(map(has_pictures, texts)):
        return False
    return job.initial is None or config_of(job.initial).get(BEFORE_REGIONS, False)


@dataclass(frozen=True)
class TrainedStage:
    """A finished stage, loaded.

    Attributes:
        folder: The stage's folder.
        config: Contents of its ``config.json``.
        network: The trained network.
        context: Tokenizer, longest sequence length, label names, answers of captions.
        under_head: What the head reads: the network, or the features of the frozen one.
    """

    folder: Path
    config: Mapping[str, Any]
    network: Any
    context: Context
    under_head: Any

    def objective(self, name: str | None = None, folders: Sequence[Path] = ()) -> Any:
        """An objective or the head of the stage, or of one before it, with the settings it had.

        Args:
            name: Name of the objective or head; by default the head, else the first objective.
            folders: Project folders, searched first.
        """
        head, objectives = self.config["head"] or {}, self.config["objectives"]
        chosen = name or next(iter(head or objectives))
        if chosen in head:
            parts = build_objectives({}, {chosen: head[chosen]}, self.context, folders)
        else:
            settings = (self.config.get(EARLIER, {}) | objectives).get(chosen, {})
            parts = build_objectives({chosen: settings}, None, self.context, folders)
        return parts[chosen]

    def scorer(self, name: str, objective: Any) -> Any:
        """The objective's scorer with the weights in ``heads/``.

        Raises:
            RecipeError: The stage has no such head.
        """
        path = head_file(self.folder, name)
        if not path.exists():
            there = ", ".join(head_files(self.folder)) or "none"
            raise RecipeError(f"{self.folder.name}: no head {name!r} in this stage; it has {there}")
        scorer = objective.attach(
            self.under_head if name in (self.config["head"] or {}) else self.network
        )
        load_weights(scorer, path)
        return scorer


def load_stage(
    folder: Path,
    tokenizer: Tokenizer,
    *,
    precision: str | None = None,
    folders: Sequence[Path] = (),
) -> TrainedStage:
    """Load a finished stage.

    Args:
        folder: The stage's folder, with ``config.json`` and ``network.safetensors``.
        tokenizer: The tokenizer it was trained with.
        precision: Precision of the matrix products; None for that of training.
        folders: Project folders, searched first.

    Raises:
        RecipeError: The tokenizer is not the one it was trained with.
    """
    config = config_of(folder)
    if config["tokenizer_digest"] != tokenizer.digest:
        raise RecipeError(
            f"{folder.name}: trained with tokenizer {config['tokenizer_digest'][:12]}, got"
            f" {tokenizer.digest[:12]}; use the tokenizer of the stage's recipe"
        )
    network = build_network(
        config["family"],
        config["network"],
        vocabulary_size=config["vocabulary_size"],
        precision=precision or config["precision"],
        folders=folders,
    )
    load_weights(network, folder / NETWORK)
    context = Context(
        tokenizer,
        config["sequence_length"],
        tuple(config["label_names"]),
        marks=mark_ids(tokenizer, config.get("markings", ())),
        network=network.provides,
        answers=tuple(config.get(ANSWERS, ())),
    )
    under_head = network
    if settings := config.get(FEATURE_BASED):
        under_head = FrozenFeatures(network, **settings)
        load_weights(under_head.reader, head_file(folder, FEATURE_BASED))
    return TrainedStage(folder, config, network, context, under_head)
