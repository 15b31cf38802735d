"""Restores the previous champion."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State

from tasks.orchestration.failures import ended, says_what_next
from tasks.orchestration.naming import named
from tasks.registry.pages import show_rollback
from tasks.registry.promotion import roll_back
from tasks.tracking.connection import connect


@flow(name="rollback", flow_run_name=named("rollback", "model"))
@says_what_next("rollback")
def rollback(model: str) -> dict | State[dict]:
    """Make the previous champion the champion again; ``Refused`` if there is none.

    Args:
        model: Name of the registered model.

    Returns:
        What was done, and the aliases as they are now.
    """
    tracking = connect()
    return ended(show_rollback(tracking, model, roll_back(tracking, model)))
