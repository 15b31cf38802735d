"""The lifecycle: data → tokenizer → general → domain → task → finetune → evaluate → promote."""

from __future__ import annotations

from typing import Any

from prefect import Flow, flow
from prefect.client.schemas.objects import State

from flows.evaluate import evaluate
from flows.prepare import prepare
from flows.promote import promote
from flows.stages import STAGE_FLOWS
from tasks.orchestration.failures import ended, says_what_next
from tasks.orchestration.handing import Handed, handed
from tasks.orchestration.naming import named
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.registry.fresh_process import get_ready
from tasks.run.recipe_run import open_run
from tasks.run.refresh import go_on_with_new_text, keep_what_stays
from tasks.run.registration import register_model
from tasks.run.summary import show_summary
from tasks.store.history import remember
from tasks.store.step_names import stage_step
from tasks.store.steps import BEFORE_LABELS


@flow(name="lifecycle", flow_run_name=named("lifecycle", "recipe"))
@says_what_next("run")
def lifecycle(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    new_data: bool = False,
    accept_code_change: list[str] | None = None,
    plan: Handed[Plan] = None,
) -> dict | State[dict]:
    """Run a recipe through its stages, register the model, and promote it if it is better.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        new_data: Whether to continue from the last run, by each stage's refresh policy.
        accept_code_change: Stages to reuse although the code that made them has changed since.
        plan: Plan of the same recipe, if the caller has made one.

    Returns:
        The run's summary; a refused promotion is a Completed state named ``Refused``, one that
        needs approval ``AwaitingApproval``.
    """
    with open_run(plan or plan_recipe(recipe, overrides or (), smoke)) as run:
        given = {"recipe": recipe, "overrides": overrides, "smoke": smoke, "run": handed(run)}
        run.accept_code_change(accept_code_change or [])
        if new_data:
            keep_what_stays(run)
        before = prepare(**given)
        for stage in run.plan.recipe.stages:
            if new_data:
                go_on_with_new_text(run, stage)
            train = STAGE_FLOWS[stage.kind]
            before = _after(before, train, **given, stage=stage.name)
        finetuned = run.plan.recipe.finetune
        if finetuned and run.plan.recipe.model:
            if run.status[stage_step(finetuned.name)] == "made":
                get_ready()
        if run.plan.of_kind("evaluation", *BEFORE_LABELS):
            before = _after(before, evaluate, **given)
        if run.plan.recipe.model is not None:
            version = register_model(handed(run), wait_for=[before])
            decision = _after(version, promote, version.name, version.number)
            assert isinstance(decision, dict)
            run.told |= {"gate": decision, "model": decision.pop("model")}
        summary = show_summary(run)
        remember(run.plan.recipe.name, run.made)
    return ended({**(summary["gate"] or {}), "model": summary["model"]}, summary)


def _after(before: Any, flow: Flow[..., Any], *given: Any, **more: Any) -> Any:
    """Call a flow that depends on an earlier result; Prefect's page shows the dependency."""
    return flow(*given, **more, wait_for=[before])
