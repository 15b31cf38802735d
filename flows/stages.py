"""The stage flows: pretrain, adapt and finetune, three names of the same flow."""

from __future__ import annotations

from prefect import flow

from flows.search import search
from tasks.orchestration.failures import says_what_next
from tasks.orchestration.handing import Handed, handed
from tasks.orchestration.naming import named
from tasks.run.recipe_run import RecipeRun, join_or_open
from tasks.run.record_stage import show_stage
from tasks.store.step_names import measurement_step, stage_step


@flow(name="train")
@says_what_next("run")
def train(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    *,
    stage: str,
    run: Handed[RecipeRun] = None,
) -> dict:
    """Train a stage and measure what it learned.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        stage: The stage's name.
        run: The lifecycle's run; without it, the flow opens its own.

    Returns:
        The stage's folder in the store.
    """
    with join_or_open(run, recipe, overrides, smoke) as run:
        if run.plan.recipe.search and _is_finetune(run, stage):
            search(recipe, overrides, smoke, handed(run))
        made = run.make(stage_step(stage))
        run.make(measurement_step(stage))
        show_stage(run, stage)
        return made.reference


def _is_finetune(run: RecipeRun, stage: str) -> bool:
    finetune = run.plan.recipe.finetune
    return finetune is not None and finetune.name == stage


pretrain = train.with_options(
    name="pretrain",
    flow_run_name=named("pretrain", "stage", "recipe"),
    description="The stage general: a language model from scratch, on general text.",
)
# Gururangan et al. 2020 (arXiv 2004.10964): domain-adaptive (DAPT) and task-adaptive (TAPT)
# pre-training.
adapt = train.with_options(
    name="adapt",
    flow_run_name=named("adapt", "stage", "recipe"),
    description="The stages domain and task: pre-training continued, on text closer to one's own.",
)
finetune = train.with_options(
    name="finetune",
    flow_run_name=named("finetune", "stage", "recipe"),
    description="The stage finetune: network and head on labelled rows, the best weights by dev.",
)
STAGE_FLOWS = {"general": pretrain, "domain": adapt, "task": adapt, "finetune": finetune}
