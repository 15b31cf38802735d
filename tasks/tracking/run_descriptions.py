"""Descriptions of runs in MLflow: recipe, inputs and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasks.orchestration.naming import FLOW_PAGE
from tasks.store.ancestry import Ancestry, Manifest, made_as
from tasks.tracking.tags import RECIPE

if TYPE_CHECKING:
    from mlflow.entities import LoggedModel, Run


def lifecycle_note(tags: Mapping[str, str], stages: Mapping[str, Run]) -> str:
    """The description of a lifecycle run.

    Args:
        tags: Its tags.
        stages: Run of each stage, by the stage's name.
    """
    lines = [f"Recipe **{tags[RECIPE]}**"]
    for name, run in stages.items():
        page = f"#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
        lines.append(f"- stage [{name}]({page})")
    return "\n".join([*lines, *_prefect(tags)])


def stage_note(ancestry: Ancestry, tags: Mapping[str, str], before: LoggedModel | None) -> str:
    """The description of a stage's run.

    Args:
        ancestry: The stage's ancestry.
        tags: The run's tags.
        before: The logged model of the stage before.
    """
    stage = ancestry.artifact
    of = f" of recipe **{tags[RECIPE]}**" if RECIPE in tags else ""
    lines = [f"Stage **{stage.stage}**{of}, {made_as(stage)}"]
    if before is not None:
        page = f"#/experiments/{before.experiment_id}/models/{before.model_id}"
        lines.append(f"- from stage [{before.name}]({page})")
    lines += [f"- read {_text(text)}" for text in ancestry.read_by(stage, "corpus", "dataset")]
    return "\n".join([*lines, *_prefect(tags)])


def _text(text: Manifest) -> str:
    counts = text.facts.get("counts", {})
    kept = f", {counts['kept']:,} kept of {counts['read']:,}" if "kept" in counts else ""
    return f"{text.name}{kept}"


def _prefect(tags: Mapping[str, str]) -> list[str]:
    return [f"- [flow run in Prefect]({tags[FLOW_PAGE]})"] if FLOW_PAGE in tags else []
