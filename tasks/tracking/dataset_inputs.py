"""Corpora and datasets as inputs of MLflow runs: name, digest, published address; no text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasks.store.ancestry import Manifest

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

DIGEST_LENGTH = 36  # characters of a dataset's digest, MLflow's limit
NAME_LENGTH = 500  # characters of a dataset's name and of an input's tag, MLflow's limits
SOURCE_LENGTH = 65_535  # characters of a dataset's source, MLflow's limit


def dataset_input(text: Manifest, context: str) -> DatasetInput:
    """A corpus or dataset as an input of a run.

    Args:
        text: The corpus or dataset.
        context: Its use: ``training`` or ``evaluation``.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    kind, source = _source(text)
    name, digest = name_and_digest(text)
    tags = {
        "mlflow.data.context": context,
        "fourstage.key": text.key,
        "fourstage.digest": text.digest,
        "fourstage.licence": str(text.source.get("licence", "none named")),
        "fourstage.language": str(text.source.get("language", "")),
    }
    return DatasetInput(
        Dataset(
            name=name,
            digest=digest,
            source_type=kind,
            source=_fitting(source),
            profile=json.dumps(text.facts.get("counts", {})),
        ),
        [InputTag(name, value[:NAME_LENGTH]) for name, value in tags.items()],
    )


def name_and_digest(text: Manifest) -> tuple[str, str]:
    """Name and digest of a corpus or dataset in MLflow, which link it to metrics and models."""
    return str(text.source.get("name", text.name))[:NAME_LENGTH], text.digest[:DIGEST_LENGTH]


def _source(text: Manifest) -> tuple[str, dict[str, Any]]:
    """Type and facts of a source, readable by `mlflow.data.get_source` on any machine.

    A published source has an address, which MLflow's pages link to; a private one has only facts.
    """
    source = text.source
    facts = {
        "name": source.get("name", text.name),
        "origin": source.get("origin"),
        "licence": source.get("licence"),
        "snapshot": text.settings.get("snapshot"),
    }
    for origin in source.get("origin") or ():
        if str(origin.get("url", "")).startswith(("http://", "https://")):
            return "http", {"url": _address(origin), **facts}
    return "code", {"tags": facts}


def _fitting(source: dict[str, Any]) -> str:
    """A source as JSON; of one of more files than MLflow takes, only their number.

    Their digests are in the manifests that every model has.
    """
    told = json.dumps(source, ensure_ascii=False)
    if len(told) <= SOURCE_LENGTH:
        return told
    facts = source.get("tags", source)
    files = sum(len(origin.get("files") or ()) or 1 for origin in facts["origin"])
    facts["origin"] = f"{files:,} files, whose digests are in the lineage of each model"
    return json.dumps(source, ensure_ascii=False)


def _address(origin: Mapping[str, Any]) -> str:
    """Address of an origin's page; for a GitHub repository, at its commit."""
    url, commit = str(origin["url"]), origin.get("commit")
    return f"{url}/tree/{commit}" if commit and url.startswith("https://github.com/") else url
