"""The files of the stage behind a registered version: from the store, else from MLflow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fourstage.errors import EnvironmentFault
from fourstage.settings import home
from tasks.artifacts import Artifact, Store
from tasks.lineage import trace
from tasks.tracking import connect


@contextmanager
def stage_files(uri: str) -> Iterator[tuple[Path, Path]]:
    """The folders of a version's last stage and of its tokenizer.

    Args:
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``.

    Raises:
        EnvironmentFault: Neither the store nor MLflow has its weights.
    """
    import mlflow.artifacts

    tracking = connect()
    store = Store(home())
    found = trace(tracking, uri, store.root)
    by_key = {hop.manifest.key: hop for hop in found.hops}
    stage = by_key[by_key[str(found.version.key)].manifest.inputs["stage"]["key"]]
    kept = store.find("stage", stage.manifest.key)
    tokenizer = store.find("tokenizer", stage.manifest.inputs["tokenizer"]["key"])
    if isinstance(kept, Artifact) and isinstance(tokenizer, Artifact):
        yield kept.folder, tokenizer.folder
        return
    if stage.model_id is None:
        raise EnvironmentFault(f"{uri}: neither the store nor MLflow has the weights of its stage")
    place = tracking.client.get_logged_model(stage.model_id).artifact_location
    with TemporaryDirectory() as temporary:
        folder = Path(
            mlflow.artifacts.download_artifacts(
                artifact_uri=place, dst_path=temporary, tracking_uri=tracking.uri
            )
        )
        yield folder, folder / "tokenizer"
