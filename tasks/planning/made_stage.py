"""A stage that a recipe's run has made, with its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.errors import EnvironmentFault, UnknownNameError
from tasks.store.step_names import stage_step

if TYPE_CHECKING:
    from models.protocols import Tokenizer
    from tasks.planning.layout import Plan


def made_stage(plan: Plan, stage_name: str, verb: str) -> tuple[Path, Tokenizer]:
    """Folder and tokenizer of a stage in the store.

    Args:
        plan: The recipe's plan.
        stage_name: Name of the stage.
        verb: Who asks, for messages.

    Raises:
        UnknownNameError: The recipe has no such stage.
        EnvironmentFault: The stage is not trained yet.
    """
    from fourstage.settings import home
    from tasks.steps.tokens import load_tokenizer
    from tasks.store.artifacts import Store
    from tasks.store.steps import finished

    stages = {stage.name for stage in plan.recipe.stages}
    if stage_name not in stages:
        raise UnknownNameError(verb, stage_name, f"a stage of {plan.recipe.name}", stages)
    made = finished(plan.steps.values(), Store(home()))
    name = stage_step(stage_name)
    if name not in made:
        raise EnvironmentFault(
            f"{verb}: {name} not made yet; `fourstage run` with the same recipe and options"
            " makes it"
        )
    return made[name].folder, load_tokenizer(made[plan.steps[name].inputs["tokenizer"]])
