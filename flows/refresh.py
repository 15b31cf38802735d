"""The lifecycle on new data, continuing from the last run by each stage's refresh policy."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.lifecycle import lifecycle
from tasks.orchestration.failures import says_what_next
from tasks.orchestration.naming import named


@flow(name="refresh", flow_run_name=named("refresh", "recipe"))
@says_what_next("refresh")
def refresh(recipe: str, overrides: list[str] | None = None) -> State:
    """Bring a recipe's model up to date with its sources.

    By default ``general`` is kept, ``domain`` continues from its last version on the new documents,
    and ``task`` and ``finetune`` are retrained if their data changed.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.

    Returns:
        The run's summary, as returned by the flow ``lifecycle``.
    """
    state = lifecycle(recipe, overrides, new_data=True, return_state=True)
    # If returned as it is, Prefect would summarise this state as "1/1 states failed".
    return Completed(name=state.name, message=state.message, data=state.result())
