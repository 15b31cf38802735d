"""The stages domain and task: go on pre-training on text nearer to the user's own."""

from __future__ import annotations

from prefect import flow

from tasks.failures import says_what_next
from tasks.naming import named
from tasks.pages import show_stage
from tasks.work import work_on


@flow(name="adapt", flow_run_name=named("adapt", "stage", "recipe"))
@says_what_next("run")
def adapt(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    stage: str = "domain",
) -> dict:
    """Train the stage from the one before it and measure what it gained and what it forgot.

    Gururangan et al. 2020 (arXiv 2004.10964): domain-adaptive (DAPT) and task-adaptive (TAPT)
    pre-training.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings laid over it.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        stage: The stage's name.

    Returns:
        Where the store has the stage.
    """
    with work_on(recipe, overrides or [], smoke) as work:
        made = work.make(f"stage {stage}")
        work.make(f"measurement {stage}")
        show_stage(work, stage)
        return made.reference
