"""A lock on a model's aliases across all machines that share a Prefect server.

The home's own lock covers one machine. If a Prefect server is configured, its concurrency limit
``promote-<model>`` is held too. An embedded server covers only one machine, so it is not used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from fourstage.errors import EnvironmentFault
from fourstage.settings import EMBEDDED

LEASE_SECONDS = 60  # renewed while held; the lease of a dead holder expires after this time
WAIT_SECONDS = 900  # longer than several smoke tests


@contextmanager
def turn(model: str) -> Iterator[None]:
    """Hold the concurrency limit of a model, which is created if missing.

    Raises:
        EnvironmentFault: Another process holds it for a quarter of an hour.
    """
    if not os.environ.get("PREFECT_API_URL") or os.environ.get(EMBEDDED):
        yield
        return
    from prefect.concurrency.sync import concurrency

    limit = f"promote-{model}"
    _make(limit)
    held = concurrency(
        limit, timeout_seconds=WAIT_SECONDS, lease_duration=LEASE_SECONDS, strict=True
    )
    with ExitStack() as stack:
        try:
            stack.enter_context(held)
        except TimeoutError as error:
            raise EnvironmentFault(
                f"{model}: Prefect's limit {limit} has been held for {WAIT_SECONDS // 60} minutes."
                " If no promotion is running, the server lost a lease in a restart: `prefect gcl"
                f" update {limit} --active-slots 0` frees it; then run the same command again."
            ) from error
        yield


def _make(limit: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
    from prefect.exceptions import ObjectAlreadyExists

    with get_client(sync_client=True) as client, suppress(ObjectAlreadyExists):
        client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=limit, limit=1))
