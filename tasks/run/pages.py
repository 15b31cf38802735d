"""Cards and tables for Prefect's pages, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fourstage.terminal import say
from models.evaluation.rivals import SEES, names
from tasks.registry.gate import baseline_ahead
from tasks.reports.attention_plot import attention_card
from tasks.reports.cards import contract_card, left_out
from tasks.reports.few_shot_table import few_shot_card
from tasks.reports.links import LINK_SCORES, link_cells
from tasks.reports.polysemy import senses_card
from tasks.reports.prototypes import PROTOTYPES_HEAD, prototypes_cells
from tasks.reports.search_table import found, search_card
from tasks.reports.tables import markdown_table, number
from tasks.reports.word_in_context import contexts_card
from tasks.reports.word_map import map_card
from tasks.reports.word_relations import relations_line
from tasks.run.recipe_run import RecipeRun, as_yaml
from tasks.store.step_names import subject_of
from tasks.tracking.trial_runs import log_search


def show_contracts(run: RecipeRun) -> dict[str, str]:
    """Post every contract's verdict on one page, with a card for each that is not green.

    Returns:
        The verdict of each contract, by step name.
    """
    contracts = [(n, a) for n, a in run.made.items() if a.kind == "contract"]
    rows = [
        (
            subject_of(name),
            artifact.facts["verdict"],
            *(f"{artifact.facts[name]:,}" for name in ("read", "kept", "quarantined", "removed")),
            artifact.facts["reason"],
        )
        for name, artifact in contracts
    ]
    head = ("data", "verdict", "read", "kept", "quarantined", "removed", "why")
    parts = ["## Contracts", markdown_table(head, rows)]
    parts += [contract_card(a) for _, a in contracts if a.facts["verdict"] != "green"]
    about = "What the data promise, and whether they keep it"
    run.post("contracts", "\n\n".join(parts), about)
    return {name: artifact.facts["verdict"] for name, artifact in contracts}


def show_search(run: RecipeRun, table: Mapping[str, Any]) -> None:
    """Post what a search tried, and log it to the lifecycle's run in MLflow."""
    run.told["search"] = dict(table)
    run.post("search", search_card(table), "Settings tried, and the one that goes on")
    log_search(run.tracking, run.lifecycle_run, table, as_yaml(run.plan))
    say(f"search: {found(table)}")


def show_evaluation(run: RecipeRun) -> None:
    """Post the model's scores beside those of its baselines."""
    facts = run.made["evaluation"].facts
    cheap, majority = names(facts["answers"])
    beside = {"baseline": cheap, "seeing_baseline": SEES, "majority": majority}
    beside = {told: called for told, called in beside.items() if facts.get(told)}
    rows = [
        (name, *(number(facts[who].get(name), 4) for who in ("metrics", *beside)))
        for name in facts["metrics"]
    ]
    head = ("metric", "this model", *beside.values())
    # Among rows of a single label, only accuracy is meaningful.
    slices = [
        (
            name,
            *(
                "–"
                if name.startswith("label/") and metric != "accuracy"
                else number(scores.get(metric), 4)
                for metric in facts["metrics"]
            ),
        )
        for name, scores in facts["slices"].items()
    ]
    parts = [
        f"## {facts['rows']:,} {facts['split']} rows",
        markdown_table(head, rows),
        f"On the {facts['rows_clean']:,} rows whose text is in no training row: "
        + ", ".join(f"{name} {value:.4f}" for name, value in facts["metrics_clean"].items())
        if facts["rows_clean"]
        else "The text of each row is in a training row, too.",
    ]
    if said := left_out(facts):
        parts.append(f"{said}.")
    if ahead := baseline_ahead(facts["metrics"], facts["baseline"], facts["split"], cheap):
        parts.insert(1, f"**{ahead}.**")
    if slices:
        parts.append(markdown_table(("slice", *facts["metrics"]), slices))
    run.post("evaluation", "\n\n".join(parts), f"Scores on the {facts['split']} rows")


def show_probes(run: RecipeRun) -> None:
    """Post the pre-trained network's probe scores on each dataset beside the baselines."""
    rows = [
        (
            dataset,
            f"{facts['rows']:,} {facts['split']}",
            metric,
            *(f"{facts[who][metric]:.4f}" for who in ("metrics", "baseline", "majority")),
        )
        for dataset, facts in run.facts_of("probe").items()
        for metric in facts["metrics"]
    ]
    head = ("dataset", "rows", "metric", "linear probe", *names("label"))
    _post(run, "probes", "What the network knows after pre-training", markdown_table(head, rows))


def show_few_shot(run: RecipeRun) -> None:
    """Post the scores of the pre-trained network's answers from its prompt."""
    cards = [few_shot_card(*asked) for asked in run.facts_of("few_shot").items()]
    _post(run, "few-shot", "What the network answers from examples in its prompt", *cards)


def show_prototypes(run: RecipeRun) -> None:
    """Post how well the pre-trained network tells classes from a few rows of each."""
    rows = [
        (dataset, f"{facts['rows']:,} {facts['split']}", *cells)
        for dataset, facts in run.facts_of("prototypes").items()
        for cells in prototypes_cells(facts)
    ]
    table = markdown_table(PROTOTYPES_HEAD, rows)
    _post(run, "prototypes", "Classes told by a few rows of each", table)


def show_links(run: RecipeRun) -> None:
    """Post the ranks that the pre-trained network gives to heads and tails."""
    rows = [
        (
            dataset,
            f"{facts['rows']:,} {facts['split']}",
            f"{facts['entities']:,}",
            f"{facts['unknown']:,}",
            *link_cells(facts),
        )
        for dataset, facts in run.facts_of("links").items()
    ]
    head = ("dataset", "triples", "entities", "of unknown names", *LINK_SCORES)
    about = "The places of heads and tails among all entities"
    _post(run, "links", about, markdown_table(head, rows))


def show_word_relations(run: RecipeRun) -> None:
    """Post how the pre-trained network's word vectors do on similarities and analogies."""
    found = run.facts_of("word_relations")
    rows = [(source, relations_line(facts)) for source, facts in found.items()]
    sections = [
        (source, section, f"{score:.4f}")
        for source, facts in found.items()
        for section, score in facts["sections"].items()
    ]
    tables = [markdown_table(("source", "score"), rows)]
    if sections:
        tables.append(markdown_table(("source", "analogies", "answered right"), sections))
    _post(run, "word-relations", "Similarities and analogies of words", *tables)


def show_word_in_context(run: RecipeRun) -> None:
    """Post how well each layer's vectors say whether a word means the same in two sentences."""
    cards = [contexts_card(*asked) for asked in run.facts_of("word_in_context").items()]
    about = "Whether a word means the same in two sentences, by its vectors"
    _post(run, "word-in-context", about, *cards)


def show_polysemy(run: RecipeRun) -> None:
    """Post how far the layers of the pre-trained network tell the senses of words apart."""
    cards = [senses_card(*word) for word in run.made["polysemy"].facts["words"].items()]
    _post(run, "polysemy", "Words in several senses, by their vectors", *cards)


def show_word_map(run: RecipeRun) -> None:
    """Post chosen words in the plane, and their neighbours."""
    about = "Words in the plane, by the vectors of the pre-trained network"
    _post(run, "word-map", about, map_card(run.made["word_map"].facts))


def show_attention(run: RecipeRun) -> None:
    """Post what tokens of texts attend to in a stage's network."""
    about = f"What tokens attend to after stage {run.plan.recipe.attention['stage']}"
    _post(run, "attention", about, attention_card(run.made["attention"]))


def _post(run: RecipeRun, card: str, about: str, *parts: str) -> None:
    """Post a page with a title that says what it is about."""
    run.post(card, "\n\n".join([f"## {about}", *parts]), about)
