"""Names on Prefect's pages, of flow runs and of cards; how MLflow leads to a run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import PurePath

from fourstage.digests import digest
from fourstage.settings import EMBEDDED
from tasks.orchestration.processes import FLOW_RUN

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


def card_key(about: str, card: str) -> str:
    """Key of a card such as ``quickstart-stage-domain``, under which Prefect keeps its history.

    Args:
        about: Name of the recipe or model.
        card: What the card shows.
    """
    return f"{_plain(about)}-{_plain(card)}"


def _plain(name: str) -> str:
    """The name where a key may hold it, else what is left of it and a short digest.

    Keys are lowercase letters, digits and dashes; two names that lose the rest stay two.
    """
    left = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return left if left == name else f"{left}-{digest(name)[:6]}".lstrip("-")


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
