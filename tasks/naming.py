"""Flow runs by name: ``adapt-domain-quickstart``; and how MLflow's runs lead to them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePath

from fourstage.settings import EMBEDDED
from tasks.orphans import FLOW_RUN

FLOW_PAGE = "prefect.flow_run_url"


def of_recipe(verb: str) -> Callable[[], str]:
    """A name made of the verb, the stage where there is one, and the recipe without its folder."""

    def name() -> str:
        from prefect.runtime import flow_run

        parameters = flow_run.parameters
        recipe = PurePath(str(parameters["recipe"])).stem
        return "-".join(dict.fromkeys(filter(None, (verb, parameters.get("stage"), recipe))))

    return name


def flow_tags() -> dict[str, str]:
    """Tags that lead from an MLflow run to the Prefect run it belongs to."""
    from prefect.runtime import flow_run

    tags = {}
    if flow_run.id:
        tags[FLOW_RUN] = str(flow_run.id)
    if flow_run.ui_url and not os.environ.get(EMBEDDED):  # that one is gone after the run
        tags[FLOW_PAGE] = str(flow_run.ui_url)
    return tags
