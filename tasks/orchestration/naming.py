"""Names of flow runs and cards in Prefect, and MLflow tags that link to flow runs."""

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
    """Flow run names such as ``adapt-domain-quickstart-2026-11-23-0330``, in UTC.

    Args:
        verb: First word of the name.
        parameters: Flow parameters whose values follow; of a file, its name; of a list, the first.
    """

    def name() -> str:
        from prefect.runtime import flow_run

        given = [flow_run.parameters.get(parameter) for parameter in parameters]
        words = [called(str(g[0] if isinstance(g, list) else g)) for g in given if g]
        due = flow_run.scheduled_start_time.strftime("%Y-%m-%d-%H%M")
        return "-".join((*dict.fromkeys((verb, *words)), due))

    return name


def called(given: str) -> str:
    """Name of a recipe or model, given by name or file; after a dot it may go on."""
    return PurePath(given).name.removesuffix(".yaml")


def card_key(about: str, card: str) -> str:
    """Key of a card, such as ``quickstart-stage-domain``. Prefect keeps the history of a key.

    Args:
        about: Name of the recipe or model.
        card: Name of the card.
    """
    return f"{_plain(about)}-{_plain(card)}"


def _plain(name: str) -> str:
    """A name reduced to lowercase letters, digits and dashes, as keys require.

    If that changes the name, a short digest is appended to keep different names apart.
    """
    left = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return left if left == name else f"{left}-{digest(name)[:6]}".lstrip("-")


def flow_tags() -> dict[str, str]:
    """Tags that link an MLflow run to its Prefect flow run."""
    from prefect.runtime import flow_run

    tags = {}
    if flow_run.id:
        tags[FLOW_RUN] = str(flow_run.id)
    if flow_run.ui_url and not os.environ.get(EMBEDDED):  # an embedded server ends with the run
        # Prefect's property still has the address of the UI before version 3.8.
        tags[FLOW_PAGE] = str(flow_run.ui_url).replace("/flow-runs/flow-run/", "/v2/runs/flow-run/")
    return tags
