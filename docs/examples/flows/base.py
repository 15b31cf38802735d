"""Only the stages before the labels: a base that several recipes then share."""

from __future__ import annotations

from prefect import flow

from flows.prepare import prepare
from flows.stages import STAGE_FLOWS
from tasks.orchestration.handing import handed
from tasks.planning.plan import plan_recipe
from tasks.run.recipe_run import open_run


@flow(name="base", flow_run_name="base-{recipe}")
def base(recipe: str, overrides: list[str] | None = None, smoke: bool = False) -> None:
    """Prepare a recipe's text and train its stages general and domain.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
    """
    with open_run(plan_recipe(recipe, overrides or (), smoke)) as run:
        prepare(recipe, overrides, smoke, run=handed(run))
        for stage in run.plan.recipe.stages:
            if stage.kind in ("general", "domain"):
                train = STAGE_FLOWS[stage.kind]
                train(recipe, overrides, smoke, stage=stage.name, run=handed(run))
