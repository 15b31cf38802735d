"""Evidence for the gate: a version's evaluation, stored in MLflow.

A version may be promoted long after its evaluation and from another machine. Its evidence (metrics,
predictions by row id, latency) is therefore an artifact of the run that registered it.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fourstage.errors import EnvironmentFault
from tasks.registry.gate import Evidence, Predictions
from tasks.store.ancestry import Ancestry, from_json
from tasks.store.artifacts import Artifact
from tasks.store.registry_memory import Version
from tasks.tracking.connection import Tracking, answered
from tasks.tracking.runs import is_active

EVIDENCE = "fourstage.evidence"  # tag: sha256 of the file
HOLDER = "fourstage.evidence_run"  # tag: run that has the file, where the version's own is deleted


class EvidenceLost(EnvironmentFault):
    """A version's evidence is no longer in MLflow, or was altered there."""


def evidence_of(evaluation: Artifact, dataset: Artifact, version: int) -> Evidence:
    """The evidence in an evaluation artifact, of rows of a dataset."""
    import pandas

    from tasks.store.predictions import GATE_PREDICTIONS

    table = pandas.read_parquet(evaluation.path(GATE_PREDICTIONS))
    facts = evaluation.facts
    return Evidence(
        version=version,
        metrics=facts["gate"]["metrics"],
        split=facts["gate"]["split"],
        predictions=Predictions(
            ids=tuple(table["id"]),
            labels=tuple(table["label"]),
            predicted=tuple(table["predicted"]),
            texts=tuple(table["text"].tolist()),
            kind=facts["gate"]["answers"],
            digests=row_digests(dataset, table["id"].tolist()),
        ),
        baseline=facts["gate"]["baseline"],
        baseline_predicted=tuple(table["baseline"]) if "baseline" in table else (),
        slices=facts["gate"]["slices"],
        forgetting=facts["forgetting"],
        latency_ms=evaluation.notes["latency_ms"],
        size_mb=facts["size_mb"],
    )


def row_digests(dataset: Artifact, ids: Sequence[str]) -> tuple[str, ...]:
    """A digest of the texts and the picture of each row, 16 hex digits."""
    import pandas

    from corpora.prepared import prepared_rows

    profile = pandas.read_parquet(dataset.path("profile.parquet"), columns=["id", "digest"])
    # These know pictures by what is in them, and texts but for case and punctuation.
    known = dict(zip(profile["id"], profile["digest"], strict=True))
    found = {
        row.id: _digest(json.dumps([known[row.id], *row.texts]).encode())[:16]
        for row in prepared_rows(dataset.folder)
    }
    return tuple(found[name] for name in ids)


@answered
def keep_evidence(
    tracking: Tracking,
    version: Version,
    evidence: Evidence,
    rules: dict[str, Any],
    evaluation: Ancestry | None = None,
    run_id: str | None = None,
) -> None:
    """Store a version's evidence and its recipe's rules with the run that registered it.

    If somebody deleted that run, another one has them, which the version names.

    Args:
        tracking: The MLflow connection.
        version: The version.
        evidence: Its evidence.
        rules: ``{"require": …, "overlap": …, "contracts": …, …}`` of its recipe.
        evaluation: Ancestry of its evaluation. The version's logged model holds that of the first.
        run_id: The lifecycle run that goes on now.
    """
    kept = {"evidence": asdict(evidence), "rules": rules}
    if evaluation is not None:
        kept["lineage"] = evaluation.to_json()
    text = json.dumps(kept, ensure_ascii=False)
    holder = _holder(version)
    name, number = version.name, str(version.number)
    if run_id is not None and not (holder and is_active(tracking, holder)):
        holder = run_id
        tracking.client.set_model_version_tag(name, number, HOLDER, holder)
    assert holder is not None
    tracking.client.log_text(holder, text, _place(version))
    tracking.client.set_model_version_tag(name, number, EVIDENCE, _digest(text.encode()))


@answered
def read_evidence(tracking: Tracking, version: Version) -> tuple[Evidence, dict[str, Any]]:
    """Read a version's evidence and its recipe's rules.

    Raises:
        EvidenceLost: The run no longer has them, or they were altered.
        EnvironmentFault: A newer version of Fourstage kept them, with what this one does not know.
    """
    kept = _read(tracking, version)
    facts = kept["evidence"]
    said, cheap = facts.pop("predictions"), tuple(facts.pop("baseline_predicted", ()))
    kind = said.pop("kind", "label")
    known = {*Evidence.__dataclass_fields__, *Predictions.__dataclass_fields__}
    if newer := sorted({*facts, *said} - known):
        raise EnvironmentFault(
            f"{version.name} version {version.number}: its evaluation was kept by a newer version"
            f" of Fourstage, with {', '.join(newer)}, which this one does not know. Run that one;"
            f" or, if this version is the champion, `fourstage rollback {version.name}` makes the"
            " one before it the champion again."
        )
    predictions = Predictions(**{n: tuple(values) for n, values in said.items()}, kind=kind)
    evidence = Evidence(**facts, predictions=predictions, baseline_predicted=cheap)
    return evidence, kept["rules"]


@answered
def last_evaluation(tracking: Tracking, version: Version) -> Ancestry | None:
    """The ancestry of a version's last evaluation; None of one registered by older code.

    Raises:
        EvidenceLost: The run no longer has its evidence, or it was altered.
    """
    lineage = _read(tracking, version).get("lineage")
    return lineage and from_json(lineage)


def _read(tracking: Tracking, version: Version) -> dict[str, Any]:
    import mlflow.artifacts
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as folder:
        try:
            path = mlflow.artifacts.download_artifacts(
                run_id=_holder(version),
                artifact_path=_place(version),
                dst_path=folder,
                tracking_uri=tracking.uri,
            )
            content = Path(path).read_bytes()
            if _digest(content) != version.tags.get(EVIDENCE):
                raise ValueError("not what was kept")
            return json.loads(content)
        except (MlflowException, OSError, ValueError) as error:
            tracking.client.search_experiments(max_results=1)  # raises if the server is gone
            raise EvidenceLost(
                f"{version.name} version {version.number}: its evaluation {_place(version)} can't"
                f" be read from MLflow run {_holder(version)}, or was altered there"
                f" ({type(error).__name__}); run its recipe again, which registers the artifacts in"
                " the store again without training."
            ) from error


def _holder(version: Version) -> str | None:
    """The run that has a version's evidence."""
    return version.tags.get(HOLDER, version.run_id)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _place(version: Version) -> str:
    return f"evaluation/version-{version.number}.json"
