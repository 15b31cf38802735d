"""Only the stages before the labels: a base that several recipes then share."""

from __future__ import annotations

from prefect import flow

from flows.adapt import adapt
from flows.prepare import prepare
from flows.pretrain import pretrain
from tasks.run.recipe_run import work_on

BEFORE_LABELS = {"general": pretrain, "domain": adapt}


@flow(name="base", flow_run_name="base-{recipe}")
def base(recipe: str, overrides: list[str] | None = None, smoke: bool = False) -> None:
    """Prepare a recipe's text and train its stages general and domain.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
    """
    overrides = overrides or []
    with work_on(recipe, overrides, smoke) as work:
        prepare(recipe, overrides, smoke)
        for stage in work.plan.recipe.stages:
            if stage.kind in BEFORE_LABELS:
                BEFORE_LABELS[stage.kind](recipe, overrides, smoke, stage.name)
