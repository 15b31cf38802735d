"""Names of flow runs: what they do, of what, and when they were due; how MLflow leads to them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePath

from fourstage.settings import EMBEDDED
from tasks.orphans import FLOW_RUN

FLOW_PAGE = "prefect.flow_run_url"


def named(verb: str, *parameters: str) -> Callable[[], str]:
    """A name such as ``adapt-domain-quickstart-2026-11-23-0330``, in UTC.

    Args:
        verb: What the flow does.
        parameters: Those of the flow that say what with; a recipe without its folder, of several
            the first.
    """

    def name() -> str:
        from prefect.runtime import flow_run

        given = [flow_run.parameters.get(parameter) for parameter in parameters]
        words = [PurePath(str(g[0] if isinstance(g, list) else g)).stem for g in given if g]
        due = flow_run.scheduled_start_time.strftime("%Y-%m-%d-%H%M")
        return "-".join((*dict.fromkeys((verb, *words)), due))

    return name


def flow_tags() -> dict[str, str]:
    """Tags that lead from an MLflow run to the Prefect run it belongs to."""
    from prefect.runtime import flow_run

    tags = {}
    if flow_run.id:
        tags[FLOW_RUN] = str(flow_run.id)
    if flow_run.ui_url and not os.environ.get(EMBEDDED):  # that one is gone after the run
        # Prefect's own property leads to the pages before those of its version 3.8.
        tags[FLOW_PAGE] = str(flow_run.ui_url).replace("/flow-runs/flow-run/", "/v2/runs/flow-run/")
    return tags
