"""Names of flow runs: what they do and of which recipe, ``adapt-domain-quickstart``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath


def of_recipe(verb: str) -> Callable[[], str]:
    """A name made of the verb, the stage where there is one, and the recipe without its folder."""

    def name() -> str:
        from prefect.runtime import flow_run

        parameters = flow_run.parameters
        recipe = PurePath(str(parameters["recipe"])).stem
        return "-".join(dict.fromkeys(filter(None, (verb, parameters.get("stage"), recipe))))

    return name
