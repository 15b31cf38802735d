"""Predicts the test rows once, stores the predictions, and packages the model."""

from __future__ import annotations

from prefect import flow

from flows.search import search
from tasks.orchestration.failures import says_what_next
from tasks.orchestration.handing import Handed, handed
from tasks.orchestration.naming import named
from tasks.run.pages import (
    show_attention,
    show_evaluation,
    show_few_shot,
    show_links,
    show_polysemy,
    show_probes,
    show_prototypes,
    show_word_in_context,
    show_word_map,
    show_word_relations,
)
from tasks.run.recipe_run import RecipeRun, join_or_open

# What is asked of a network, before the labels but for attention: kind of step, and its page.
PAGES = {
    "probe": show_probes,
    "few_shot": show_few_shot,
    "prototypes": show_prototypes,
    "links": show_links,
    "word_relations": show_word_relations,
    "word_in_context": show_word_in_context,
    "polysemy": show_polysemy,
    "word_map": show_word_map,
    "attention": show_attention,
}


@flow(name="evaluate", flow_run_name=named("evaluate", "recipe"))
@says_what_next("run")
def evaluate(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    run: Handed[RecipeRun] = None,
) -> dict:
    """Score the fine-tuned model next to the cheap baseline, by slice.

    A recipe with `promote` has its model packed, and the package's latency and size are measured.

    If the recipe has probes, the network before fine-tuning is scored on them, too, as it is on
    rows that it answers from examples in its prompt, on classes of which it
    has seen a few rows, on triples whose ends it ranks, and on words
    by their vectors; and what its tokens attend to is drawn.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        run: The lifecycle's run; without it, the flow opens its own.

    Returns:
        The metrics on the test rows.
    """
    with join_or_open(run, recipe, overrides, smoke) as run:
        if run.plan.recipe.search:
            search(recipe, overrides, smoke, handed(run))
        for kind, show in PAGES.items():
            if run.make_all(kind):
                show(run)
        if not run.make_all("package", "evaluation"):
            return {}
        show_evaluation(run)
        return dict(run.made["evaluation"].facts["metrics"])
