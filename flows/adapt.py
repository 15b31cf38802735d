"""The stages domain and task: continue pre-training on text closer to the user's own."""

from __future__ import annotations

from prefect import flow

from tasks.orchestration.failures import says_what_next
from tasks.orchestration.naming import named
from tasks.run.recipe_run import work_on
from tasks.run.record_stage import show_stage


@flow(name="adapt", flow_run_name=named("adapt", "stage", "recipe"))
@says_what_next("run")
def adapt(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    stage: str = "domain",
) -> dict:
    """Continue training from the stage before, and measure what was gained and forgotten.

    Gururangan et al. 2020 (arXiv 2004.10964): domain-adaptive (DAPT) and task-adaptive (TAPT)
    pre-training.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        stage: The stage's name.

    Returns:
        The stage's folder in the store.
    """
    with work_on(recipe, overrides or [], smoke) as work:
        made = work.make(f"stage {stage}")
        work.make(f"measurement {stage}")
        show_stage(work, stage)
        return made.reference
