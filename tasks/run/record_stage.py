"""A finished stage: recorded in MLflow, and its card on Prefect's page."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.utilities.annotations import quote

from fourstage.activity import activity
from tasks.orchestration.naming import flow_tags
from tasks.reports.cards import stage_card
from tasks.run.recipe_run import RecipeRun
from tasks.steps.durable import results_of
from tasks.store.ancestry import gather
from tasks.store.artifacts import store
from tasks.tracking.published import Published, ensure_published, point_to
from tasks.tracking.runs import experiment_of
from tasks.tracking.tags import RECIPE


@task(
    name="record_stage",
    task_run_name="record-{stage}",
    retries=2,
    retry_delay_seconds=5,
    cache_policy=NO_CACHE,
)
def record_stage(work: RecipeRun, stage: str) -> Published:
    """Publish a stage that was trained; point to one that was reused, published anew if lost.

    Args:
        work: The run of the recipe.
        stage: The stage's name.
    """
    with activity(f"stage {stage}: recording it in MLflow"):
        published = ensure_published(
            work.tracking,
            gather(store().root, work.made[f"stage {stage}"]),
            experiment=experiment_of(work.plan.recipe),
            parent_run_id=work.lifecycle_run,
            tags={RECIPE: work.plan.recipe.name, **flow_tags()},
        )
        point_to(work.tracking, work.lifecycle_run, stage, published)
    return published


def show_stage(work: RecipeRun, stage: str) -> None:
    """Record a stage in MLflow and post its card."""
    artifact = work.made[f"stage {stage}"]
    measured = work.made[f"measurement {stage}"]
    published = record_stage(quote(work), stage, wait_for=results_of(artifact, measured))
    links = {
        "MLflow run": work.tracking.run_page(published.run_id),
        "MLflow model": work.tracking.model_page(published.model_id),
    }
    card = stage_card(
        artifact,
        work.status[f"stage {stage}"] == "reused",
        links,
        _losses_before(work, stage),
        measured.facts["heldout_loss"],
        _labelled_counts(work, stage),
    )
    work.post(f"stage-{stage}", card, f"Stage {stage}: what it cost and what it bought")


def _losses_before(work: RecipeRun, stage: str) -> dict[str, float]:
    """Held-out losses after the stage before; none before the first of a network."""
    stages = work.plan.recipe.stages
    place = [one.name for one in stages].index(stage)
    goes_on = place and not stages[place].starts_network
    measured = work.made.get(f"measurement {stages[place - 1].name}") if goes_on else None
    return dict(measured.facts["heldout_loss"]) if measured else {}


def _labelled_counts(work: RecipeRun, stage: str) -> dict[str, Any] | None:
    """What became of the rows of a stage's dataset."""
    (dataset,) = (one.dataset for one in work.plan.recipe.stages if one.name == stage)
    made = work.made.get(f"dataset {dataset}")  # not there where an older stage is taken as it is
    return made.facts["counts"] if made else None
