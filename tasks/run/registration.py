"""Register a run's package as a model version, with its results, card and evidence."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.activity import activity
from tasks.orchestration.naming import flow_tags
from tasks.registry.evidence import evidence_of, keep_evidence
from tasks.registry.register_model import register
from tasks.registry.version_card import keep_card
from tasks.registry.versions import remember_versions
from tasks.run.recipe_run import RecipeRun
from tasks.store.ancestry import gather
from tasks.store.artifacts import Artifact, store
from tasks.store.registry_memory import Version
from tasks.store.step_names import dataset_step
from tasks.tracking.record_results import record_results


def _registering() -> str:
    from prefect.runtime import task_run

    return f"register-{task_run.parameters['run'].unquote().plan.recipe.model}"


@task(
    name="register_model",
    task_run_name=_registering,
    retries=2,
    retry_delay_seconds=5,
    cache_policy=NO_CACHE,
)
def register_model(run: RecipeRun) -> Version:
    """Register the package as the challenger. The same package always gives the same version."""
    recipe = run.plan.recipe
    finetune = recipe.finetune
    assert recipe.model is not None
    assert finetune is not None
    assert finetune.dataset is not None
    evaluation = run.made["evaluation"]
    evaluated = gather(store().root, evaluation)
    with activity(f"{recipe.model}: registering the model"):
        version = register(
            run.tracking,
            gather(store().root, run.made["package"]),
            name=recipe.model,
            run_id=run.lifecycle_run,
            evaluation=evaluated,
            smoke=run.plan.smoke,
            tags=flow_tags(),
        )
        facts = record_results(run.tracking, run.lifecycle_run, recipe, run.made, version.model_id)
        run.recorded = True
        assert facts is not None, "what was evaluated was measured"
        keep_card(run.tracking, version, facts, evaluation)
    contracts = {
        name: artifact.facts["verdict"]
        for name, artifact in run.made.items()
        if artifact.kind == "contract"
    }
    dataset = run.made[dataset_step(finetune.dataset)]
    rules = {
        "require": {name: dict(rule) for name, rule in recipe.require.items()},
        "overlap": [finetune.overlap, _overlapping(dataset)],
        "forgetting_on": list(recipe.forgetting_on),
        "contracts": contracts,
        "dataset": dataset.reference,
        "split": evaluation.facts["gate"]["split"],
        "approve": recipe.approve,
    }
    evidence = evidence_of(evaluation, dataset, version.number)
    keep_evidence(run.tracking, version, evidence, rules, evaluated, run.lifecycle_run)
    remember_versions(run.tracking, version.name)
    return version


def _overlapping(dataset: Artifact) -> int:
    """Number of evaluation rows whose text is in a kept training row."""
    import pandas

    profile = pandas.read_parquet(dataset.path("profile.parquet"), columns=["duplicate_of_train"])
    return len(profile["duplicate_of_train"].dropna())
