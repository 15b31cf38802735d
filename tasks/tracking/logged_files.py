"""Integrity of logged models: every file is verified against the digest it was logged with.

A listing with the digest of every file is logged with the model, and the listing's own digest is a
tag. So MLflow's database is trusted, but the folder or bucket of files is not. Files are verified
before they are used, and the verified copy is what is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fourstage.digests import hash_file
from fourstage.errors import ContractViolation, EnvironmentFault
from tasks.tracking.connection import Tracking, answered
from tasks.tracking.tags import FILES

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel

LISTING = "lineage/files.json"


class FilesLost(EnvironmentFault):
    """Files of a logged model are missing."""


class AlteredFiles(ContractViolation):
    """Files of a logged model differ from those that were logged."""


def list_files(folder: Path) -> str:
    """Write the listing of a folder before it is logged, and return the listing's digest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listing = {path.relative_to(folder).as_posix(): hash_file(path) for path in files}
    path = folder / LISTING
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(listing, indent=1), encoding="utf-8")
    return hash_file(path)


@contextmanager
def verified(tracking: Tracking, model_id: str | None, *names: str) -> Iterator[Path]:
    """A verified temporary copy of a model's files, with the logged files only.

    Args:
        tracking: The MLflow connection.
        model_id: ``m-…``, or None if the version has no logged model.
        *names: Names of the files; default: all.

    Raises:
        FilesLost: A file is missing.
        AlteredFiles: A file differs from the one that was logged; the message names it.
    """
    model = _model(tracking, model_id)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if names:
            for name in (LISTING, *names):
                _download(tracking, model, folder / Path(name).parent, name)
        else:
            folder = _download(tracking, model, folder)
        listing = _listing(model, folder)
        _compare(model, folder, {name: listing.get(name, "") for name in names or listing})
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            if path.relative_to(folder).as_posix() not in listing:
                path.unlink()  # added by loading: a file of MLflow's, Python's cache
        yield folder


def check_files(tracking: Tracking, model_id: str | None) -> None:
    """Verify a model's files as `verified` does, without copying files on this machine."""
    model = _model(tracking, model_id)
    folder = _here(model)
    if folder is None:
        with verified(tracking, model_id):
            return
    _compare(model, folder, _listing(model, folder))


def lost_folder(tracking: Tracking, model_id: str | None) -> str:
    """Why a model's folder is lost, in a look; empty if it is there or not on this machine."""
    try:
        _here(_model(tracking, model_id))
    except FilesLost as error:
        return str(error)
    return ""


def _here(model: LoggedModel) -> Path | None:
    """The folder of a model on this machine; None if its files are elsewhere."""
    from mlflow.utils.file_utils import local_file_uri_to_path

    if not model.artifact_location.startswith("file:"):
        return None
    folder = Path(local_file_uri_to_path(model.artifact_location))
    if not folder.is_dir():
        raise FilesLost(f"the files of {model.model_id} are not in {folder}")
    return folder


@answered
def _model(tracking: Tracking, model_id: str | None) -> LoggedModel:
    from mlflow.exceptions import MlflowException

    if model_id is None:
        raise FilesLost("it has no logged model")
    try:
        return tracking.client.get_logged_model(model_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise  # the server failed, so the model may still exist
        raise FilesLost(f"MLflow has no {model_id}: {_first_line(error)}") from error


def _download(tracking: Tracking, model: LoggedModel, into: Path, name: str = "") -> Path:
    import mlflow.artifacts
    from mlflow.exceptions import MlflowException

    into.mkdir(parents=True, exist_ok=True)
    # `models:/m-…/file` does not resolve, so use the artifact location.
    place = f"{model.artifact_location}/{name}" if name else model.artifact_location
    try:
        return Path(
            mlflow.artifacts.download_artifacts(
                artifact_uri=place, dst_path=str(into), tracking_uri=tracking.uri
            )
        )
    except (MlflowException, OSError) as error:
        raise FilesLost(
            f"{name or 'the files'} of {model.model_id}: {_first_line(error)}"
        ) from error


def _listing(model: LoggedModel, folder: Path) -> Mapping[str, str]:
    """The verified listing, including the listing file itself."""
    if FILES not in model.tags:
        raise AlteredFiles(
            f"MLflow has no digest of the files of {model.model_id}, which an older version of"
            " Fourstage logged. Run its recipe again to log the artifacts in the store again."
        )
    path = folder / LISTING
    if not path.is_file():
        raise FilesLost(f"{LISTING} of {model.model_id} is gone")
    _compare(model, folder, {LISTING: model.tags[FILES]})
    return {**json.loads(path.read_text(encoding="utf-8")), LISTING: model.tags[FILES]}


def _compare(model: LoggedModel, folder: Path, digests: Mapping[str, str]) -> None:
    for name, expected in digests.items():
        path = folder / name
        if not path.is_file():
            raise FilesLost(f"{name} of {model.model_id} is gone")
        if hash_file(path) != expected:
            raise AlteredFiles(f"{name} of {model.model_id} is not the file that was logged")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]
