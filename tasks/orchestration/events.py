"""What Prefect's server is told beyond the states of runs, so that an automation can pass it on.

An event holds names, numbers and, by the run it belongs to, links; never text of the data.
"""

from __future__ import annotations

import os

from fourstage.settings import EMBEDDED


def announce(event: str, kind: str, name: str, **payload: str | int | float | None) -> None:
    """Send an event; where the server is the run's own there is nobody to hear it.

    Args:
        event: Such as ``fourstage.drift``.
        kind: What it is about: ``model``, ``contract``, ``source``.
        name: That one's name.
        **payload: Names and numbers.
    """
    from prefect.events import emit_event

    if os.environ.get(EMBEDDED):
        return
    resource = {"prefect.resource.id": f"fourstage.{kind}.{name}", "prefect.resource.name": name}
    emit_event(event, resource, payload=payload)
