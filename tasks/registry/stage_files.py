"""The files of a stage behind a registered version: from the store, else from MLflow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.digests import hash_file
from fourstage.errors import EnvironmentFault, RecipeError, located
from fourstage.settings import home
from models.stage_format import TOKENIZER
from tasks.registry.lineage import Hop, trace
from tasks.store.artifacts import Artifact, Store
from tasks.tracking.connection import Tracking, connect
from tasks.tracking.logged_files import verified

if TYPE_CHECKING:
    from fourstage.recipe.schema import Recipe

COPIES = "versions"  # folder of the home; whatever lies there can be made again


@contextmanager
def stage_files(uri: str) -> Iterator[tuple[Path, Path]]:
    """The folders of a version's last stage and of its tokenizer.

    Args:
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``.

    Raises:
        EnvironmentFault: Neither the store nor MLflow has its weights.
    """
    tracking, store = connect(), Store(home())
    found = trace(tracking, uri, store.root, every_file=False)
    with _files(tracking, store, uri, found.stages()[-1]) as folders:
        yield folders


def pretrained_stage(uri: str) -> tuple[str, Path]:
    """The version an address names, and a copy of what it was pre-trained to.

    That is its last stage before the fine-tuning, whose network still knows the language at large,
    with its tokenizer beside it.

    Args:
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``.

    Returns:
        ``models:/NAME/3``, and a folder under ``$FOURSTAGE_HOME/versions``.

    Raises:
        RecipeError: There is no such version, or nothing of it was pre-trained.
        EnvironmentFault: Neither the store nor MLflow has its weights.
        ContractViolation: MLflow holds others than the stage had.
    """
    from models.interchange.new_folder import written_whole

    tracking, store = connect(), Store(home())
    found = trace(tracking, uri, store.root, every_file=False)
    address = f"models:/{found.version.name}/{found.version.number}"
    stages = [each for each in found.stages() if each.manifest.settings["stage"] != "finetune"]
    if not stages:
        raise RecipeError(f"{address}: nothing of it was pre-trained, it has a finetune stage only")
    stage = stages[-1].manifest
    key = stage.inputs["tokenizer"]["key"]
    made = next(hop.manifest for hop in found.hops if hop.manifest.key == key)
    parts = {"": _deciding(stage.outputs), TOKENIZER: _deciding(made.outputs)}
    copy = home() / COPIES / stage.digest
    with tracking.alone(f"copy-{stage.digest[:16]}"):
        if all(_is_whole(copy / name, files) for name, files in parts.items()):
            return address, copy
        shutil.rmtree(copy, ignore_errors=True)
        with (
            _files(tracking, store, uri, stages[-1]) as folders,
            written_whole(copy) as part,
        ):
            for source, (name, files) in zip(folders, parts.items(), strict=True):
                for file in files:
                    (part / name / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source / file, part / name / file)
    return address, copy


def _deciding(outputs: Mapping[str, str]) -> dict[str, str]:
    """An artifact's files with their digests, without what only tells of its making."""
    return {name: digest for name, digest in outputs.items() if not name.startswith("notes/")}


def _is_whole(folder: Path, files: Mapping[str, str]) -> bool:
    return all(
        (folder / name).is_file() and hash_file(folder / name) == digest
        for name, digest in files.items()
    )


def _in_store(store: Store, kind: str, key: str, digest: str) -> Artifact | None:
    """What a version was made of; this machine may have made other outputs under the key."""
    found = store.find(kind, key)
    return found if isinstance(found, Artifact) and found.digest == digest else None


@contextmanager
def _files(tracking: Tracking, store: Store, uri: str, stage: Hop) -> Iterator[tuple[Path, Path]]:
    """The folders of a stage and of its tokenizer."""
    made, vocabulary = stage.manifest, stage.manifest.inputs["tokenizer"]
    kept = _in_store(store, "stage", made.key, made.digest)
    tokenizer = _in_store(store, "tokenizer", vocabulary["key"], vocabulary["digest"])
    if kept and tokenizer:
        yield kept.folder, tokenizer.folder
        return
    if stage.model_id is None:
        raise EnvironmentFault(f"{uri}: neither the store nor MLflow has the weights of its stage")
    with located(uri), verified(tracking, stage.model_id) as folder:
        yield folder, folder / TOKENIZER


def by_number(recipe: Recipe) -> tuple[Recipe, dict[str, Path]]:
    """The registered version that a recipe starts from, looked up where it names one.

    Args:
        recipe: As `load_recipe` returns it.

    Returns:
        The recipe, which names the version by its number instead of an alias, so that what it made
        says which it was; and where the version's files lie, by that address.

    Raises:
        RecipeError: There is no such version, or nothing of it was pre-trained.
        EnvironmentFault: Its weights are nowhere, or MLflow does not answer.
    """
    first, *later = recipe.stages
    if first.init is None or not first.init.startswith("models:/"):
        return recipe, {}
    from tasks.registry.stage_files import pretrained_stage

    with located(f"{recipe.where}: stages[0].init"):
        address, folder = pretrained_stage(first.init)
    first = first.model_copy(update={"init": address})
    return recipe.model_copy(update={"stages": (first, *later)}), {address: folder}
