"""Prefect events, which automations can react to.

An event contains names and numbers, and links through its run; never text of the data.
"""

from __future__ import annotations

import os

from fourstage.settings import EMBEDDED


def announce(event: str, kind: str, name: str, **payload: str | int | float | None) -> None:
    """Emit an event, unless the server is embedded in the run and has no automations.

    Args:
        event: Name of the event, such as ``fourstage.drift``.
        kind: Kind of its resource: ``model``, ``contract`` or ``source``.
        name: Name of its resource.
        **payload: Names and numbers.
    """
    from prefect.events import emit_event

    if os.environ.get(EMBEDDED):
        return
    resource = {"prefect.resource.id": f"fourstage.{kind}.{name}", "prefect.resource.name": name}
    emit_event(event, resource, payload=payload)
