"""Files of the stages of a registered version, from the store or else from MLflow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

VERSION = "models:/"  # how the address of a registered version begins
COPIES = "versions"  # folder of the home; its contents can be copied again


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
    """Find a version and copy its last pre-training stage, with its tokenizer.

    Args:
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``.

    Returns:
        ``models:/NAME/3``, and a folder under ``$FOURSTAGE_HOME/versions``.

    Raises:
        RecipeError: There is no such version, or it has no pre-training stage.
        EnvironmentFault: Neither the store nor MLflow has its weights.
        ContractViolation: The weights in MLflow are not those of the stage.
    """
    from models.interchange.new_folder import written_whole

    tracking, store = connect(), Store(home())
    found = trace(tracking, uri, store.root, every_file=False)
    address = f"models:/{found.version.name}/{found.version.number}"
    stages = [each for each in found.stages() if each.manifest.settings["stage"] != "finetune"]
    if not stages:
        raise RecipeError(
            f"{address}: expected a version with a pre-training stage to start from, got one with"
            " a finetune stage alone"
        )
    stage = stages[-1].manifest
    key = stage.inputs["tokenizer"]["key"]
    made = next(hop.manifest for hop in found.hops if hop.manifest.key == key)
    parts = {"": _deciding(stage.outputs), TOKENIZER: _deciding(made.outputs)}
    copy = home() / COPIES / stage.digest
    with tracking.alone(copying(stage.digest)):
        if all(_is_whole(copy / name, files) for name, files in parts.items()):
            os.utime(copy)  # the garbage collector goes by last use
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


def copying(digest: str) -> str:
    """What the lock of a copy is taken for, by the digest of its stage."""
    return f"copy-{digest[:16]}"


def _deciding(outputs: Mapping[str, str]) -> dict[str, str]:
    """An artifact's files with their digests, without notes."""
    return {name: digest for name, digest in outputs.items() if not name.startswith("notes/")}


def _is_whole(folder: Path, files: Mapping[str, str]) -> bool:
    return all(
        (folder / name).is_file() and hash_file(folder / name) == digest
        for name, digest in files.items()
    )


def _in_store(store: Store, kind: str, key: str, digest: str) -> Artifact | None:
    """The artifact with this digest; None if the store has none or other outputs under its key."""
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
        raise EnvironmentFault(
            f"{uri}: neither the store nor MLflow has the weights of its stage; run its recipe"
            " again"
        )
    with located(uri), verified(tracking, stage.model_id) as folder:
        yield folder, folder / TOKENIZER


def by_number(recipe: Recipe) -> tuple[Recipe, dict[str, Path]]:
    """Resolve the registered versions that a recipe starts from: ``init`` and ``starts_from``.

    Args:
        recipe: As `load_recipe` returns it.

    Returns:
        The recipe, with a version's number in place of an alias, so that its artifacts record
        which version it was; and the folder of each version's files, by its address.

    Raises:
        RecipeError: There is no such version, or it has no pre-training stage.
        EnvironmentFault: Its weights are lost, or MLflow does not answer.
    """
    folders: dict[str, Path] = {}

    def numbered(place: str, said: str) -> str:
        if not said.startswith(VERSION):
            return said
        with located(f"{recipe.where}: {place}"):
            address, folder = pretrained_stage(said)
        folders[address] = folder
        return address

    stages = []
    for i, stage in enumerate(recipe.stages):
        update: dict[str, Any] = {}
        if i == 0 and stage.init is not None:
            update["init"] = numbered(f"stages[{i}].init", stage.init)
        if stage.starts_from:
            update["starts_from"] = {
                part: numbered(f"stages[{i}].starts_from.{part}", said)
                for part, said in stage.starts_from.items()
            }
        stages.append(stage.model_copy(update=update))
    return recipe.model_copy(update={"stages": tuple(stages)}), folders
