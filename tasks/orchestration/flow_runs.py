"""All flow runs that a filter chooses: Prefect's server gives them in pages, 200 at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.sorting import FlowRunSort


def chosen_flow_runs(
    client: SyncPrefectClient, chosen: FlowRunFilter, sort: FlowRunSort | None = None
) -> list[FlowRun]:
    """The flow runs, from as many pages as the server makes of them.

    Args:
        client: A client of the server.
        chosen: Which ones.
        sort: Their order; by default the server's.
    """
    found: list[FlowRun] = []
    while page := client.read_flow_runs(flow_run_filter=chosen, sort=sort, offset=len(found)):
        found += page
    return found
