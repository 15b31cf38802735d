"""Parameters of a run in MLflow: the few settings that runs are compared by, flat.

The full recipe is the run's ``recipe.yaml``. All settings of a stage are on the stage's own run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasks.tracking.connection import Tracking, answered
from tasks.tracking.runs import PARAM_BATCH, PARAM_LENGTH, metric_name

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage


def parameters(recipe: ResolvedRecipe) -> dict[str, str]:
    """Name and value of each parameter of a resolved recipe."""
    last = recipe.stages[-1]
    tokenizer = recipe.tokenizer
    found = {
        "recipe": recipe.name,
        "family": last.family,
        "size": recipe.size or _size(last.network),
        "tokenizer": f"{tokenizer.scheme} {tokenizer.vocabulary_size}",
        "lowercase": tokenizer.lowercase,
        "seed": last.seed,
        "stages": ", ".join(stage.name for stage in recipe.stages),
    }
    if recipe.finetune is not None:
        found |= {"dataset": recipe.finetune.dataset, "split": recipe.evaluation_split}
    for stage in recipe.stages:
        found |= {f"{stage.name}.{name}": value for name, value in _of_stage(stage).items()}
    return {name: str(value)[:PARAM_LENGTH] for name, value in found.items()}


@answered
def log_parameters(
    tracking: Tracking, run_id: str, found: Mapping[str, str], model_id: str | None = None
) -> None:
    """Log the parameters that a run and a logged model lack; existing ones can't change."""
    from mlflow.entities import Param

    client = tracking.client
    there = client.get_run(run_id).data.params
    fresh = [Param(metric_name(n), v) for n, v in found.items() if metric_name(n) not in there]
    for start in range(0, len(fresh), PARAM_BATCH):
        client.log_batch(run_id, params=fresh[start : start + PARAM_BATCH])
    if model_id:
        there = client.get_logged_model(model_id).params
        if lacking := {name: value for name, value in found.items() if name not in there}:
            client.log_model_params(model_id, lacking)


def _of_stage(stage: ResolvedStage) -> dict[str, Any]:
    if stage.init is not None:
        return {"init": stage.init}
    found = {
        "objective": _objective(stage),
        "budget": f"{stage.budget.amount:.12g} {stage.budget.unit}",
        "batch_size": stage.batch_size,
        "sequence_length": stage.sequence_length,
    }
    if (rate := stage.optimizer.settings.get("peak_learning_rate")) is not None:
        found["learning_rate"] = rate
    if stage.reinitialise:
        found["reinitialise"] = stage.reinitialise
    if stage.freeze:
        found["freeze"] = ", ".join(stage.freeze)
    if stage.gradual_unfreezing:
        ((unit, amount),) = stage.gradual_unfreezing.items()
        found["gradual_unfreezing"] = f"{amount:g} {unit}"
    for key in ("lora", "feature_based", "r_drop", "fgm", "average"):
        settings = getattr(stage, key) or {}
        found |= {f"{key}.{name}": value for name, value in settings.items()}
    for name, settings in stage.remedies.items():
        found |= {f"{name}.{key}": value for key, value in settings.items()}
    if stage.mixture:
        found |= {f"mixture.{name}": value for name, value in stage.mixture.items()}
        found["mixture.beside"] = ", ".join(stage.mixture["beside"])
    return found


def _objective(stage: ResolvedStage) -> str:
    """What a stage learns: ``masked_lm, next_sentence``, ``some_head + 0.5 masked_lm``."""
    if stage.head is None:
        return ", ".join(stage.objectives)
    beside = [f"{stage.weights[name]:g} {name}" for name in stage.objectives]
    return " + ".join([stage.head, *beside])


def _size(network: Mapping[str, Any]) -> str:
    """Description of a network without a named size, by its layers and width."""
    layers, width = network.get("num_layers"), network.get("hidden_dim")
    return f"{layers} layers of {width}" if layers and width else str(dict(network))
