"""Let MLflow know a stage: its run, its model and ancestry, its place in the lifecycle."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.activity import activity
from tasks.orchestration.naming import flow_tags
from tasks.run.work import Work
from tasks.steps.durable import store
from tasks.store.ancestry import gather
from tasks.tracking.published import Published, ensure_published, point_to
from tasks.tracking.runs import RECIPE, experiment_of


@task(
    name="record_stage",
    task_run_name="record-{stage}",
    retries=2,
    retry_delay_seconds=5,
    cache_policy=NO_CACHE,
)
def record_stage(work: Work, stage: str) -> Published:
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
