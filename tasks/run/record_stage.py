"""Record a finished stage in MLflow and post its card in Prefect."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.activity import activity
from tasks.orchestration.handing import handed
from tasks.orchestration.naming import flow_tags
from tasks.reports.cards import stage_card
from tasks.reports.word_region_plot import word_regions_of
from tasks.run.recipe_run import RecipeRun
from tasks.steps.durable import results_of
from tasks.store.ancestry import gather
from tasks.store.artifacts import store
from tasks.store.step_names import dataset_step, measurement_step, stage_step
from tasks.tracking.runs import experiment_of
from tasks.tracking.stage_models import Published, ensure_published, point_to
from tasks.tracking.tags import RECIPE


@task(
    name="record_stage",
    task_run_name="record-{stage}",
    retries=2,
    retry_delay_seconds=5,
    cache_policy=NO_CACHE,
)
def record_stage(run: RecipeRun, stage: str) -> Published:
    """Publish a stage to MLflow, unless it is already there, and link it to the lifecycle run.

    Args:
        run: The run of the recipe.
        stage: The stage's name.
    """
    with activity(f"stage {stage}: recording it in MLflow"):
        published = ensure_published(
            run.tracking,
            gather(store().root, run.made[stage_step(stage)]),
            experiment=experiment_of(run.plan.recipe),
            parent_run_id=run.lifecycle_run,
            tags={RECIPE: run.plan.recipe.name, **flow_tags()},
        )
        point_to(run.tracking, run.lifecycle_run, stage, published)
    return published


def show_stage(run: RecipeRun, stage: str) -> None:
    """Record a stage in MLflow and post its card."""
    artifact = run.made[stage_step(stage)]
    measured = run.made[measurement_step(stage)]
    published = record_stage(handed(run), stage, wait_for=results_of(artifact, measured))
    links = {
        "MLflow run": run.tracking.run_page(published.run_id),
        "MLflow model": run.tracking.model_page(published.model_id),
    }
    card = stage_card(
        artifact,
        run.status[stage_step(stage)] == "reused",
        links,
        _losses_before(run, stage),
        measured.facts["heldout_loss"],
        _labelled_counts(run, stage),
        word_regions_of(measured),
    )
    run.post(f"stage-{stage}", card, f"Stage {stage}: what it cost and what it bought")


def _losses_before(run: RecipeRun, stage: str) -> dict[str, float]:
    """Held-out losses after the stage before; empty for the first stage of a network."""
    stages = run.plan.recipe.stages
    place = [one.name for one in stages].index(stage)
    goes_on = place and not stages[place].starts_network
    measured = run.made.get(measurement_step(stages[place - 1].name)) if goes_on else None
    return dict(measured.facts["heldout_loss"]) if measured else {}


def _labelled_counts(run: RecipeRun, stage: str) -> dict[str, Any]:
    """Row counts of a stage's datasets, by name."""
    (names,) = (one.datasets for one in run.plan.recipe.stages if one.name == stage)
    # Missing if an older stage was pinned.
    made = {name: run.made.get(dataset_step(name)) for name in names}
    return {name: each.facts["counts"] for name, each in made.items() if each}
