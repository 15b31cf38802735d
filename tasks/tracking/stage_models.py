"""Stages in MLflow: a run with its inputs, and a logged model with its ancestry."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.stage_format import HISTORY, TOKENIZER
from tasks.store.ancestry import FILE, Ancestry, Manifest
from tasks.store.artifacts import NOTES
from tasks.store.step_names import subject_of
from tasks.tracking.connection import Tracking, answered, made_once
from tasks.tracking.dataset_inputs import dataset_input
from tasks.tracking.logged_files import list_files
from tasks.tracking.run_descriptions import stage_note
from tasks.tracking.runs import (
    ensure_experiment,
    experiment_ids,
    finish_run,
    finished_run,
    log_history,
    metric_name,
    open_run,
    set_tags,
    stage_run,
)
from tasks.tracking.tags import DIGEST, FILES, HOME, KEY, KIND, NOTE, STAGE

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel


@dataclass(frozen=True)
class Published:
    """Location of a stage in MLflow.

    Attributes:
        key: Key of the stage's artifact.
        run_id: Run that trained it.
        model_id: Its logged model, ``m-…``.
    """

    key: str
    run_id: str
    model_id: str


@answered
def find_published(tracking: Tracking, stage: Manifest) -> Published | None:
    """A stage's finished model and finished run; None if this server lacks either."""
    model = find_model(tracking, stage)
    run = finished_run(tracking, stage.key, stage.digest)
    # A kill may have come between the two; publishing again adds the missing one.
    if model is None or run is None:
        return None
    return Published(stage.key, run.info.run_id, model.model_id)


@answered
def find_model(tracking: Tracking, made: Manifest) -> LoggedModel | None:
    """The finished logged model of an artifact, with a file listing.

    Both key and digest must match: another machine may have made other weights under the same key.
    """
    # MLflow can't filter by status.
    for model in _models(tracking, {KEY: made.key, DIGEST: made.digest}):
        if str(model.status) == "READY" and FILES in model.tags:
            return model
    return None


@answered
def publish_stage(
    tracking: Tracking,
    run_id: str,
    ancestry: Ancestry,
    *,
    tags: Mapping[str, str] | None = None,
) -> Published:
    """Log a stage's inputs, files and model to its run, and finish the run. Idempotent.

    Args:
        tracking: The MLflow connection.
        run_id: The stage's run, from `stage_run`.
        ancestry: The stage's ancestry, gathered from the store.
        tags: More tags for run and model, such as ``prefect.flow_run_id``.
    """
    from mlflow.entities import LoggedModelOutput

    stage = ancestry.artifact
    folder = ancestry.folders[stage.key]
    history = _history(folder)
    log_history(tracking, run_id, history)
    parent = ancestry.parent_stage()
    parent_model = find_model(tracking, parent) if parent else None
    taught_by = [find_model(tracking, teacher) for teacher in ancestry.teachers()]
    _log_inputs(tracking, run_id, ancestry, [parent_model, *taught_by])
    _log_files(tracking, run_id, ancestry, history)
    model = find_model(tracking, stage)
    if model is None:
        marks = {**model_tags(ancestry), **(tags or {})}
        if parent_model:
            marks["fourstage.parent_model_id"] = parent_model.model_id
        model = _log_model(tracking, run_id, ancestry, marks)
    outputs = tracking.client.get_run(run_id).outputs
    if not outputs or all(out.model_id != model.model_id for out in outputs.model_outputs):
        step = int(stage.facts.get("steps", 0))
        tracking.client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step)])
    marks = {**tracking.client.get_run(run_id).data.tags, **(tags or {})}
    facts = {
        "fourstage.model_id": model.model_id,
        DIGEST: stage.digest,
        NOTE: stage_note(ancestry, marks, parent_model),
    }
    set_tags(tracking, run_id, {**facts, **(tags or {})})
    finish_run(tracking, run_id)
    return Published(stage.key, run_id, model.model_id)


@answered
def ensure_published(
    tracking: Tracking,
    ancestry: Ancestry,
    *,
    experiment: str,
    parent_run_id: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> Published:
    """Find a stage on this server; finish its open run, or publish it from the store, if needed.

    Args:
        tracking: The MLflow connection.
        ancestry: The stage's ancestry, gathered from the store.
        experiment: Name of the experiment for a newly published run.
        parent_run_id: The lifecycle run, parent of a newly published run.
        tags: More tags of a newly published run and model.
    """
    stage = ancestry.artifact
    with tracking.alone(f"publish-{stage.key[:16]}"):
        if run := open_run(tracking, stage.key):  # trained here, now or before a kill
            return publish_stage(tracking, run.info.run_id, ancestry, tags=tags)
        if found := find_published(tracking, stage):
            return found
        run_id = stage_run(
            tracking,
            ensure_experiment(tracking, experiment),
            stage.key,
            stage=stage.stage or stage.name,
            parent_run_id=parent_run_id,
            settings=stage.settings,
            tags={
                "fourstage.published_from": "store",
                # The commit that trained it, not that of this process.
                "git.commit": str(stage.notes.get("git", {}).get("commit") or "none"),
                **(tags or {}),
            },
        )
        return publish_stage(tracking, run_id, ancestry, tags=tags)


@answered
def point_to(tracking: Tracking, lifecycle_run_id: str, name: str, stage: Published) -> None:
    """Link a lifecycle run to the run of a stage that it trained or reused."""
    place = f"{STAGE}.{name}"
    set_tags(
        tracking,
        lifecycle_run_id,
        {
            f"{place}.key": stage.key,
            f"{place}.run_id": stage.run_id,
            f"{place}.model_id": stage.model_id,
        },
    )


def stages_of(tags: Mapping[str, str]) -> dict[str, Published]:
    """The stages that a lifecycle run links to, by name."""
    names = [
        tag.removeprefix(f"{STAGE}.").removesuffix(".run_id")
        for tag in tags
        if tag.startswith(f"{STAGE}.") and tag.endswith(".run_id")
    ]
    return {
        name: Published(*(tags[f"{STAGE}.{name}.{fact}"] for fact in ("key", "run_id", "model_id")))
        for name in names
    }


def model_tags(ancestry: Ancestry) -> dict[str, str]:
    """Tags of a model: keys, digests, licences and commit, never a text."""
    artifact = ancestry.artifact
    git = artifact.notes.get("git", {})
    tags = {
        KEY: artifact.key,
        KIND: artifact.kind,
        DIGEST: artifact.digest,
        "fourstage.licences": ", ".join(ancestry.licences()) or "none named",
        "git.commit": str(git.get("commit") or "none"),
        "git.dirty": str(git.get("dirty")).lower(),
    }
    if artifact.stage:
        tags[STAGE] = artifact.stage
    if artifact.weights_digest:
        tags["fourstage.weights_digest"] = artifact.weights_digest
    for tokenizer in ancestry.vocabularies():
        tags["fourstage.tokenizer_digest"] = tokenizer.digest
    for contract in ancestry.of_kind("contract"):
        of = metric_name(subject_of(contract.name))
        tags[f"fourstage.contract.{of}"] = contract.digest
    return tags


def write_ancestry(ancestry: Ancestry, folder: Path) -> None:
    """Write an ancestry's manifests into a model's folder."""
    path = folder / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ancestry.to_json(), ensure_ascii=False), encoding="utf-8")


def link_files(folder: Path, names: Iterable[str], into: Path) -> None:
    """Link files of the store into a folder, one by one: MLflow does not follow linked folders."""
    for name in names:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).symlink_to(folder / name)


def upload(
    tracking: Tracking,
    experiment_id: str,
    run_id: str,
    fill: Callable[[LoggedModel, Path], None],
    *,
    name: str,
    tags: Mapping[str, str],
) -> LoggedModel:
    """Log a folder as a model, which becomes visible only when it is complete.

    Args:
        tracking: The MLflow connection.
        experiment_id: Experiment that lists the model.
        run_id: Run that produced it.
        fill: Writes the model's files into a folder.
        name: Its display name.
        tags: Its tags, including ``fourstage.key``.
    """
    client = tracking.client
    tags = {**tags, HOME: tracking.home}

    def half_made() -> list[LoggedModel]:
        # Only this home's: another home may be uploading its own.
        found = _models(tracking, {name: tags[name] for name in (KEY, HOME)})
        return [model for model in found if str(model.status) != "READY"]

    for left in half_made():
        _remove_files(tracking, left)
        client.delete_logged_model(left.model_id)
    model = made_once(
        lambda: client.create_logged_model(
            experiment_id,
            name=re.sub(r"[/:.%\"']", "_", name),  # characters that MLflow rejects
            source_run_id=run_id,
            tags=tags,
            model_type="fourstage",
        ),
        lambda: next(iter(half_made()), None),
    )
    try:
        with tempfile.TemporaryDirectory() as temporary:
            fill(model, Path(temporary))
            client.set_logged_model_tags(model.model_id, {FILES: list_files(Path(temporary))})
            client.log_model_artifacts(model.model_id, temporary)
    except BaseException:
        _remove_files(tracking, model)
        raise
    return client.finalize_logged_model(model.model_id, "READY")


def _remove_files(tracking: Tracking, half_made: LoggedModel) -> None:
    """Remove the files of a model that is not complete, if they lie in this home.

    MLflow keeps those of a model that is deleted, and each try on a full disk would add its own.
    """
    from mlflow.utils.file_utils import local_file_uri_to_path

    location = half_made.artifact_location
    if not location.startswith("file:"):
        return
    folder = Path(local_file_uri_to_path(location)).resolve()
    if (tracking.folder / "mlflow").resolve() in folder.parents:
        shutil.rmtree(folder, ignore_errors=True)


def _models(tracking: Tracking, tags: Mapping[str, str]) -> list[LoggedModel]:
    asked = " AND ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
    search = tracking.client.search_logged_models
    return list(search(experiment_ids(tracking), filter_string=asked))


def _log_model(
    tracking: Tracking, run_id: str, ancestry: Ancestry, tags: Mapping[str, str]
) -> LoggedModel:
    stage = ancestry.artifact

    def fill(model: LoggedModel, place: Path) -> None:
        weights = [name for name in stage.outputs if not name.startswith(NOTES)]
        link_files(ancestry.folders[stage.key], weights, place)
        # The stage's direct input: its tokens may name another tokenizer with equal bytes.
        if tokenizer := ancestry.manifests.get(stage.inputs.get("tokenizer", {}).get("key", "")):
            link_files(ancestry.folders[tokenizer.key], tokenizer.outputs, place / TOKENIZER)
        write_ancestry(ancestry, place)

    experiment_id = tracking.client.get_run(run_id).info.experiment_id
    return upload(tracking, experiment_id, run_id, fill, name=stage.stage or stage.name, tags=tags)


def _history(folder: Path) -> list[dict[str, float]]:
    path = folder / NOTES / HISTORY
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _log_inputs(
    tracking: Tracking, run_id: str, ancestry: Ancestry, learned_from: list[LoggedModel | None]
) -> None:
    from mlflow.entities import LoggedModelInput

    texts = ancestry.read_by(ancestry.artifact, "corpus", "dataset")
    datasets = [dataset_input(text, "training") for text in texts]
    before = tracking.client.get_run(run_id).inputs
    known = {model.model_id for model in before.model_inputs} if before else set()
    models = [
        LoggedModelInput(model.model_id)
        for model in learned_from
        if model and model.model_id not in known
    ]
    if datasets or models:
        tracking.client.log_inputs(run_id, datasets=datasets, models=models)


def _log_files(
    tracking: Tracking, run_id: str, ancestry: Ancestry, history: list[dict[str, Any]]
) -> None:
    """Log contract reports and the loss plot."""
    from tasks.reports.plots import loss_plot

    for contract in ancestry.read_by(ancestry.artifact, "contract"):
        folder = ancestry.folders[contract.key]
        name = contract.name.replace("/", "_")
        for report in ("report.html", "report.json"):
            if report in contract.outputs:
                tracking.client.log_artifact(run_id, str(folder / report), f"contracts/{name}")
    if picture := loss_plot(history):
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "loss.png"
            path.write_bytes(picture)
            tracking.client.log_artifact(run_id, str(path))
