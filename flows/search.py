"""Fine-tunes with several settings and goes on with the best by the dev rows."""

from __future__ import annotations

from prefect import flow

from tasks.orchestration.failures import says_what_next
from tasks.orchestration.handing import Handed
from tasks.orchestration.naming import named
from tasks.run.pages import show_search
from tasks.run.recipe_run import RecipeRun, join_or_open
from tasks.run.trials import choose


@flow(name="search", flow_run_name=named("search", "recipe"))
@says_what_next("run")
def search(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    run: Handed[RecipeRun] = None,
) -> dict:
    """Train every trial of the recipe's search, and choose. A recipe without one is left as it is.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        run: The lifecycle's run; without it, the flow opens its own.

    Returns:
        The table, as in ``search.json`` of the run in MLflow.
    """
    with join_or_open(run, recipe, overrides, smoke) as run:
        if run.plan.recipe.search is None:
            return {}
        table = choose(run, recipe, overrides or [], smoke)
        show_search(run, table)
        return table
