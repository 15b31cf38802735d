"""Let MLflow know a stage: its run, its model and ancestry, its place in the lifecycle."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.ancestry import gather
from tasks.durable import store
from tasks.published import Published, ensure_published, find_published, point_to, publish_stage
from tasks.runs import find_run
from tasks.work import Work, flow_tags


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
    artifact = work.made[f"stage {stage}"]
    tracking = work.tracking
    ancestry = gather(store().root, artifact)
    published = find_published(tracking, artifact.key)
    if published is None:
        run = find_run(tracking, artifact.key)
        if run is not None:
            published = publish_stage(tracking, run.info.run_id, ancestry, tags=flow_tags())
        else:
            published = ensure_published(
                tracking,
                ancestry,
                recipe_name=work.plan.recipe.name,
                parent_run_id=work.lifecycle_run,
                tags=flow_tags(),
            )
    point_to(tracking, work.lifecycle_run, stage, published)
    return published
