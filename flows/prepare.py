"""Data → contracts → tokenizer → tokens: everything a stage reads."""

from __future__ import annotations

from prefect import flow

from tasks.orchestration.failures import says_what_next
from tasks.orchestration.handing import Handed
from tasks.orchestration.naming import named
from tasks.run.announcements import announce_amber
from tasks.run.pages import show_contracts
from tasks.run.recipe_run import RecipeRun, join_or_open


@flow(name="prepare", flow_run_name=named("prepare", "recipe"))
@says_what_next("run")
def prepare(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    run: Handed[RecipeRun] = None,
) -> dict:
    """Read, clean and deduplicate the recipe's text, check it against its contracts, tokenise it.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        run: The lifecycle's run; without it, the flow opens its own.

    Returns:
        The verdict of each contract.
    """
    with join_or_open(run, recipe, overrides, smoke) as run:
        run.make_all("dataset", "corpus", "contract", "tokenizer", "tokens", "rows")
        announce_amber(run)
        return show_contracts(run)
