"""Predicts the test rows once, stores the predictions, and packages the model."""

from __future__ import annotations

from prefect import flow

from tasks.orchestration.failures import says_what_next
from tasks.orchestration.naming import named
from tasks.run.pages import show_evaluation, show_probes
from tasks.run.recipe_run import work_on


@flow(name="evaluate", flow_run_name=named("evaluate", "recipe"))
@says_what_next("run")
def evaluate(recipe: str, overrides: list[str] | None = None, smoke: bool = False) -> dict:
    """Score the fine-tuned model next to the cheap baseline, by slice, with latency and size.

    If the recipe has probes, the network before fine-tuning is scored on them, too.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.

    Returns:
        The metrics on the test rows.
    """
    with work_on(recipe, overrides or [], smoke) as work:
        if work.make_all("probe"):
            show_probes(work)
        if not work.make_all("package", "evaluation"):
            return {}
        show_evaluation(work)
        return dict(work.made["evaluation"].facts["metrics"])
