"""Register a packaged model as a version."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.digests import digest
from fourstage.languages import main_language
from fourstage.settings import REPOSITORY
from tasks.registry.versions import (
    CHALLENGER,
    EVALUATION_TAG,
    MODEL_TAG,
    SMOKE_TAG,
    aliases,
    find_version,
    registered_name,
    version,
)
from tasks.store.ancestry import Ancestry, BrokenLineage, join
from tasks.store.registry_memory import CHAMPION, METRICS_TAG, Version
from tasks.tracking.connection import Tracking, answered, made_once
from tasks.tracking.stage_models import find_model, model_tags, upload, write_ancestry
from tasks.tracking.tags import FILES, KEY

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel
    from mlflow.entities.model_registry import ModelVersion

# The code of a model by its kind of answer, and that of all models of pictures, pairs and vectors,
# and of one text with entities.
MODEL_CODE = {
    "label": "text_model.py",
    "spans": "spans_model.py",
    "number": "rows_model.py",
    "label_set": "rows_model.py",
    "choice": "choices_model.py",
    "text": "rows_model.py",
}
PICTURES_CODE = "pictures_model.py"
PAIRS_CODE = "pairs_model.py"
EMBEDDING_CODE = "embedding_model.py"
ENTITIES_CODE = "rows_model.py"
SERVED = REPOSITORY / "models" / "served"
DECODING = REPOSITORY / "models" / "decoding"
SEARCH = ("cached.py", "filters.py", "generate.py", "search.py", "settings.py")  # without Keras
CORPORA = REPOSITORY / "corpora"
LOOKING = ("encoded_pictures.py", "limits.py", "regions.py")  # what finds regions
LINKING = ("gazetteer.py", "linking.py")  # what finds the entities that a text names
REQUIREMENTS = ("tensorflow", "tensorflow-text", "mlflow")
TO_LOOK = ("pillow", "scipy")
TO_LINK = ("ahocorasick_rs",)
EXAMPLES = {"en": "This is a sentence.", "zh": "这是一个句子。"}  # not from any data
# A white PNG of 8 × 8 pixels, which is one region.
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAIAQAAAADsdIMmAAAADUlEQVR42mP4z8SA"
    "DAEPcQEOdvOI0AAAAABJRU5ErkJggg=="
)


@answered
def register(
    tracking: Tracking,
    package: Ancestry,
    *,
    name: str,
    run_id: str,
    evaluation: Ancestry | None = None,
    smoke: bool = False,
    tags: Mapping[str, str] | None = None,
) -> Version:
    """Register a package as a version, or find its existing version; it becomes ``challenger``.

    Args:
        tracking: The MLflow connection.
        package: The package's ancestry, from `tasks.store.ancestry.gather`.
        name: The model's name in the recipe; see `registered_name`.
        run_id: The lifecycle run.
        evaluation: The evaluation's ancestry; its metrics become tags.
        smoke: Whether this is a smoke run.
        tags: More tags, such as ``prefect.flow_run_id`` and ``prefect.flow_run_url``.

    Returns:
        The version. A key that is registered again gives the same version.

    Raises:
        BrokenLineage: The package's ancestry is not complete.
        RecipeError: The name is reserved for smoke runs.
    """
    name = registered_name(name, smoke)
    whole = join(package, evaluation) if evaluation else package
    if faults := whole.faults():
        raise BrokenLineage(
            f"{name}: not registered, because its lineage is not complete: {faults[0]}"
            + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
        )
    marks = _version_tags(whole, evaluation, smoke) | dict(tags or {})
    client = tracking.client
    # Recipes that differ in the model's name alone have one package, which is uploaded once.
    with (
        tracking.alone(f"register-{name}"),
        tracking.alone(f"package-{package.root[:16]}"),
    ):
        found = find_version(tracking, name, package.root)
        created = found is None
        if found is None:
            model = find_model(tracking, package.artifact)
            if model is None:
                model = _log_package(tracking, run_id, whole, name, marks)
            _ensure_registered_model(tracking, name)
            found = _create_version(tracking, name, model, run_id, marks)
        if evaluation:
            # The same package may have a new evaluation, with other rows or more metrics.
            for tag in (METRICS_TAG, EVALUATION_TAG):
                client.set_model_version_tag(name, found.version, tag, marks[tag])
        if aliases(tracking, name).get(CHAMPION) != int(found.version):
            client.set_registered_model_alias(name, CHALLENGER, found.version)
    registered = version(tracking, name, int(found.version))
    return Version(**{**registered.__dict__, "created": created})


def save_text_model(
    package: Path, folder: Path, model: LoggedModel | None = None, language: str = ""
) -> None:
    """Write a package as a model that MLflow can load and serve.

    Args:
        package: Folder that `models.interchange.saved_model.export_text_model` wrote.
        folder: The model's new folder.
        model: The logged model that will own the files.
        language: Language of the model's texts, for its input example.
    """
    import mlflow.pyfunc
    from mlflow.models import Model
    from mlflow.models.utils import _save_example

    described = Model()
    if model is not None:
        described = Model(
            artifact_path=model.artifact_location,
            model_uuid=model.model_id,
            model_id=model.model_id,
            run_id=model.source_run_id,
        )
    head = json.loads((package / "head.json").read_text("utf-8"))
    # Packages made before such models could be packaged say nothing of regions or entities.
    looks, links = bool(head.get("most_regions")), bool(head.get("reads_entities"))
    if looks:
        name = PICTURES_CODE
    elif head["pairs"]:
        name = EMBEDDING_CODE if head["embeds"] else PAIRS_CODE
    elif links:
        name = ENTITIES_CODE
    else:
        name = MODEL_CODE[head["answers"]]
    code = Path(__file__).with_name(name)
    required = (*REQUIREMENTS, *(TO_LOOK if looks else ()), *(TO_LINK if links else ()))
    also = (*(LOOKING if looks else ()), *(LINKING if links else ()))
    settings, modules = "labels", None
    with tempfile.TemporaryDirectory() as place:
        if code.name != MODEL_CODE["label"]:
            settings = "head"
            code, served = _taken_along(code, Path(place), also)
            modules = [str(served)]
        mlflow.pyfunc.save_model(
            str(folder),
            python_model=str(code),
            code_paths=modules,
            artifacts={
                "saved_model": str(package / "saved_model"),
                settings: str(package / f"{settings}.json"),
                **({"entities": str(package / "entities.json")} if links else {}),
            },
            # Explicit: inferring them imports TensorFlow in a separate process (16 s).
            pip_requirements=[f"{each}=={installed(each)}" for each in required],
            mlflow_model=described,
        )
    # MLflow records the files' paths on this machine; loading uses only their names.
    facts = described.flavors["python_function"]
    facts["model_code_path"] = code.name
    for artifact in facts["artifacts"].values():
        artifact["uri"] = artifact["path"]
    # Not by `save_model`, which would predict on it and load TensorFlow into this process.
    example = EXAMPLES.get(main_language(language), EXAMPLES["en"])
    shown: str | dict[str, str | list[str]] = (
        {"text": example, "text_pair": example} if head["pairs"] else example
    )
    if head["answers"] == "choice":
        shown = {"text": example, "choices": [example, example]}
    if looks:
        shown = {"text": example, **({"text_pair": example} if head["pairs"] else {})}
        shown["picture"] = PICTURE
    _save_example(described, [shown], str(folder))
    described.save(str(folder / "MLmodel"))


def _taken_along(code: Path, place: Path, also: Sequence[str]) -> tuple[Path, Path]:
    """Copies of a model's code, and of what it needs of this project under a name of its own.

    One process may load versions of different times and kinds, each with its own modules: a kind
    imports those it needs when it is first asked, and the files of another may be gone by then.

    Args:
        code: The model's code.
        place: An empty folder.
        also: Files of `corpora` that it needs.
    """
    taken = [*sorted(SERVED.glob("*.py")), *(DECODING / file for file in SEARCH)]
    taken += [CORPORA / file for file in also]
    files = {file.name: file.read_text("utf-8") for file in taken}
    model = code.read_text("utf-8")
    name = f"fourstage_served_{digest({**files, code.name: model})[:12]}"
    served = place / name
    served.mkdir()
    of_corpora = "|".join(file.removesuffix(".py") for file in (*LOOKING, *LINKING))
    own = re.compile(rf"\b(?:models\.(?:served|decoding)\b|corpora\b(?=\.(?:{of_corpora})\b))")
    for file, text in files.items():
        (served / file).write_text(own.sub(name, text), "utf-8")
    copy = place / code.name
    copy.write_text(own.sub(name, model), "utf-8")
    return copy, served


def _log_package(
    tracking: Tracking, run_id: str, package: Ancestry, name: str, tags: Mapping[str, str]
) -> LoggedModel:
    from mlflow.entities import LoggedModelInput, LoggedModelOutput

    client = tracking.client
    run = client.get_run(run_id)
    parent = package.parent_stage()
    parent_model = find_model(tracking, parent) if parent else None
    if parent_model:
        tags = {**tags, "fourstage.parent_model_id": parent_model.model_id}
        known = {used.model_id for used in run.inputs.model_inputs} if run.inputs else set()
        if parent_model.model_id not in known:
            client.log_inputs(run_id, models=[LoggedModelInput(parent_model.model_id)])
    shown = {name: value for name, value in tags.items() if name != METRICS_TAG}

    languages = [text.source.get("language", "") for text in package.of_kind("dataset")]

    def fill(model: LoggedModel, place: Path) -> None:
        folder = package.folders[package.root]
        save_text_model(folder, place / "model", model, "".join(languages[:1]))
        for path in (place / "model").iterdir():
            shutil.move(path, place)
        (place / "model").rmdir()
        write_ancestry(package, place)

    model = upload(tracking, run.info.experiment_id, run_id, fill, name=name, tags=shown)
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, 0)])
    return model


def _version_tags(whole: Ancestry, evaluation: Ancestry | None, smoke: bool) -> dict[str, str]:
    tags = {**model_tags(whole), SMOKE_TAG: str(smoke).lower()}
    if evaluation:
        metrics = dict(evaluation.artifact.facts.get("metrics", {}))
        tags[METRICS_TAG] = json.dumps(metrics)
        tags[EVALUATION_TAG] = evaluation.root
    return tags


def _ensure_registered_model(tracking: Tracking, name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        tracking.client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def _create_version(
    tracking: Tracking,
    name: str,
    model: LoggedModel,
    run_id: str,
    tags: Mapping[str, str],
) -> ModelVersion:
    """Create a version. If another machine registers the key at the same time, the first wins."""
    with tracking.as_default():
        made = made_once(
            lambda: tracking.client.create_model_version(
                name,
                source=f"models:/{model.model_id}",
                run_id=run_id,
                tags={**tags, MODEL_TAG: model.model_id, FILES: model.tags[FILES]},
                model_id=model.model_id,
            ),
            lambda: find_version(tracking, name, tags[KEY]),
        )
    first = find_version(tracking, name, tags[KEY])
    if first is not None and int(first.version) < int(made.version):
        tracking.client.delete_model_version(name, made.version)
        return first
    return made
