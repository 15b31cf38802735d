"""The lifecycle: data → tokenizer → general → domain → task → finetune → evaluate → promote."""

from __future__ import annotations

from typing import Any

from prefect import Flow, flow
from prefect.client.schemas.objects import State
from prefect.utilities.annotations import quote

from flows.adapt import adapt
from flows.evaluate import evaluate
from flows.finetune import finetune
from flows.prepare import prepare
from flows.pretrain import pretrain
from flows.promote import promote
from tasks.orchestration.failures import ended, says_what_next
from tasks.orchestration.naming import named
from tasks.registry.fresh_process import get_ready
from tasks.run.recipe_run import work_on
from tasks.run.refresh import go_on_with_new_text, keep_what_stays
from tasks.run.registration import register_model
from tasks.run.summary import show_summary
from tasks.store.history import remember

STAGE_FLOWS = {"general": pretrain, "domain": adapt, "task": adapt, "finetune": finetune}


@flow(name="lifecycle", flow_run_name=named("lifecycle", "recipe"))
@says_what_next("run")
def lifecycle(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    new_data: bool = False,
    accept_code_change: list[str] | None = None,
) -> dict | State[dict]:
    """Run a recipe through its stages, register the model, and promote it if it is better.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        new_data: Whether to continue from the last run, by each stage's refresh policy.
        accept_code_change: Stages to reuse although the code that made them has changed since.

    Returns:
        The run's summary; a refused promotion is a Completed state named ``Refused``, one that
        needs approval ``AwaitingApproval``.
    """
    overrides = overrides or []
    with work_on(recipe, overrides, smoke) as work:
        work.accept_code_change(accept_code_change or [])
        if new_data:
            keep_what_stays(work)
        before = prepare(recipe, overrides, smoke)
        for stage in work.plan.recipe.stages:
            if new_data:
                go_on_with_new_text(work, stage)
            train = STAGE_FLOWS[stage.kind]
            before = _after(before, train, recipe, overrides, smoke, stage.name)
        finetuned = work.plan.recipe.finetune
        if finetuned and work.plan.recipe.model:
            if work.status[f"stage {finetuned.name}"] == "made":
                get_ready()
        if work.plan.of_kind("evaluation", "probe"):
            before = _after(before, evaluate, recipe, overrides, smoke)
        if work.plan.recipe.model is not None:
            version = register_model(quote(work), wait_for=[before])
            decision = _after(version, promote, version.name, version.number)
            assert isinstance(decision, dict)
            work.told = {"gate": decision, "model": decision.pop("model")}
        summary = show_summary(work)
        remember(work.plan.recipe.name, work.made)
    return ended({**(summary["gate"] or {}), "model": summary["model"]}, summary)


def _after(before: Any, flow: Flow[..., Any], *given: Any) -> Any:
    """Call a flow that depends on another one's result; Prefect's page draws an arrow."""
    return flow(*given, wait_for=[before])
