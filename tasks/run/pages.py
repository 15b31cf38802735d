"""What people look at on Prefect's pages: cards, tables and diagrams, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.utilities.annotations import quote

from fourstage.errors import GateRefused
from models.evaluation.baseline import CHEAP, MAJORITY
from tasks.comparison.comparison_report import markdown
from tasks.orchestration.naming import card_key
from tasks.orchestration.run_log import log
from tasks.registry.decision import decision_of, refusal_of, standing
from tasks.registry.gate import Check, Gate, baseline_ahead
from tasks.registry.lineage import trace
from tasks.registry.promote_model import Promotion
from tasks.reports.cards import (
    OUTCOMES,
    brackets,
    contract_card,
    gate_report,
    left_out,
    lineage_diagram,
    markdown_table,
    stage_card,
    stage_table,
)
from tasks.reports.narration import outcome
from tasks.reports.plots import data_address
from tasks.run.record_stage import record_stage
from tasks.run.summary import stage_rows, summarise
from tasks.run.work import Work
from tasks.steps.durable import results_of, store
from tasks.store.ancestry import BrokenLineage
from tasks.tracking.connection import Tracking

LONGEST = 190_000  # characters of an artifact: its text lies in Prefect's database


def show_contracts(work: Work) -> dict[str, str]:
    """Every contract's verdict on one page, the broken ones in full.

    Returns:
        The verdicts.
    """
    contracts = [(n, a) for n, a in work.made.items() if a.kind == "contract"]
    rows = [
        (
            name.removeprefix("contract "),
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
    _post_for(work, "contracts", "\n\n".join(parts), about)
    return {name: artifact.facts["verdict"] for name, artifact in contracts}


def show_stage(work: Work, stage: str) -> None:
    """Record a stage in MLflow and post its card."""
    artifact = work.made[f"stage {stage}"]
    measured = work.made[f"measurement {stage}"]
    published = record_stage(quote(work), stage, wait_for=results_of(artifact, measured))
    links = {
        "MLflow run": work.tracking.run_page(published.run_id),
        "MLflow model": work.tracking.model_page(published.model_id),
    }
    card = stage_card(
        artifact,
        work.status[f"stage {stage}"] == "reused",
        links,
        _losses_before(work, stage),
        measured.facts["heldout_loss"],
        _labelled_counts(work, stage),
    )
    _post_for(work, f"stage-{stage}", card, f"Stage {stage}: what it cost and what it bought")


def _losses_before(work: Work, stage: str) -> dict[str, float]:
    """Held-out losses after the stage before; none before the first of a network."""
    stages = work.plan.recipe.stages
    place = [one.name for one in stages].index(stage)
    goes_on = place and not stages[place].starts_network
    measured = work.made.get(f"measurement {stages[place - 1].name}") if goes_on else None
    return dict(measured.facts["heldout_loss"]) if measured else {}


def _labelled_counts(work: Work, stage: str) -> dict[str, Any] | None:
    """What became of the rows of a stage's dataset."""
    (dataset,) = (one.dataset for one in work.plan.recipe.stages if one.name == stage)
    made = work.made.get(f"dataset {dataset}")  # not there where an older stage is taken as it is
    return made.facts["counts"] if made else None


def show_evaluation(work: Work) -> None:
    """The model's scores beside its cheap rivals'."""
    facts = work.made["evaluation"].facts
    rows = [
        (name, *(f"{facts[who][name]:.4f}" for who in ("metrics", "baseline", "majority")))
        for name in facts["metrics"]
    ]
    head = ("metric", "this model", CHEAP, MAJORITY)
    # Among rows of one label only the share of hits says something.
    slices = [
        (
            name,
            *(
                "–" if name.startswith("label/") and metric != "accuracy" else f"{value:.4f}"
                for metric, value in scores.items()
            ),
        )
        for name, scores in facts["slices"].items()
    ]
    parts = [
        f"## {facts['rows']:,} {facts['split']} rows",
        markdown_table(head, rows),
        f"On the {facts['rows_clean']:,} rows whose text is in no training row: "
        + ", ".join(f"{name} {value:.4f}" for name, value in facts["metrics_clean"].items()),
    ]
    if said := left_out(facts):
        parts.append(f"{said}.")
    if ahead := baseline_ahead(facts["metrics"], facts["baseline"], facts["split"]):
        parts.insert(1, f"**{ahead}.**")
    if slices:
        parts.append(markdown_table(("slice", *facts["metrics"]), slices))
    _post_for(work, "evaluation", "\n\n".join(parts), f"Scores on the {facts['split']} rows")


def show_probes(work: Work) -> None:
    """What the pre-trained network knows of each dataset, beside the cheap rivals."""
    probes = {s.name: work.made[s.name].facts for s in work.plan.of_kind("probe")}
    rows = [
        (
            name.removeprefix("probe "),
            f"{facts['rows']:,} {facts['split']}",
            metric,
            *(f"{facts[who][metric]:.4f}" for who in ("metrics", "baseline", "majority")),
        )
        for name, facts in probes.items()
        for metric in facts["metrics"]
    ]
    head = ("dataset", "rows", "metric", "linear probe", CHEAP, MAJORITY)
    about = "What the network knows after pre-training"
    _post_for(work, "probes", f"## {about}\n\n{markdown_table(head, rows)}", about)


def show_gate(tracking: Tracking, gate: Gate, outcome: Promotion | GateRefused) -> dict[str, Any]:
    """Post the gate's report; the decision as plain JSON."""
    decision = decision_of(tracking, gate, outcome)
    forced = isinstance(outcome, Promotion) and outcome.forced
    word = "forced" if forced else OUTCOMES[decision["decision"]]
    _post(gate.name, "gate", gate_report(gate, word, decision["reason"]), "The gate's decision")
    return decision


def show_no_challenger(tracking: Tracking, model: str, refusal: GateRefused) -> dict[str, Any]:
    """Post that there is nothing to promote; the decision as plain JSON."""
    _post(model, "gate", f"## Nothing to promote\n\n{refusal}", "The gate's decision")
    return refusal_of(tracking, model, refusal)


def show_rollback(
    tracking: Tracking, model: str, outcome: Promotion | GateRefused
) -> dict[str, Any]:
    """Post what a rollback did."""
    if isinstance(outcome, GateRefused):
        _post(model, "rollback", f"## Not rolled back\n\n{outcome}", "Rollback")
        return refusal_of(tracking, model, outcome)
    number = outcome.champion.number
    said = f"version {number} is the champion of {model} again, in place of {outcome.replaced}"
    _post(model, "rollback", f"## Rolled back\n\n{said}", "Rollback")
    return {"decision": "rollback", "reason": said, **standing(tracking, model, number)}


def show_lineage(tracking: Tracking, model: str, number: int) -> None:
    """Post where a version comes from, or what of that is not known, with a link to its page."""
    title, address = f"Where {model} version {number} comes from", f"models:/{model}/{number}"
    try:
        page = lineage_diagram(trace(tracking, address, store().root, every_file=False))
    except BrokenLineage as fault:  # the gate has decided with it; a page changes no decision
        page = f"### {title}\n\n{fault}"
    _post(model, "lineage", page, title)
    page = tracking.page(f"models/{model}/versions/{number}")
    if page:
        key = card_key(model, "model-version")
        create_link_artifact(page, f"{model} version {number}", key=key)


def show_comparison(table: Mapping[str, Any], picture: bytes) -> None:
    """Post who is better than whom."""
    recipes = "-".join(recipe["name"] for recipe in table["recipes"])
    _post(recipes, "comparison", markdown(table, data_address(picture)), "Recipes over seeds")


def show_summary(work: Work) -> dict[str, Any]:
    """Post the closing table and, on the lifecycle's own page, what its parts posted on theirs.

    Returns:
        The whole run as plain JSON.
    """
    summary = summarise(work)
    metric = work.plan.recipe.metrics[0] if work.plan.recipe.metrics else ""
    rows = stage_rows(summary)
    parts = ["## What each stage bought", stage_table(rows, metric), brackets(rows, metric)]
    parts += [f"> {note}" for note in summary["notes"]]
    recipe = work.plan.recipe.name
    _post(recipe, "stages", "\n\n".join(parts), "What each stage bought")
    for card, (page, about) in work.pages.items():
        _post(recipe, card, page, about)
    if summary["gate"] and summary["model"]:
        decision, model = summary["gate"], summary["model"]
        checks = tuple(Check(**check) for check in decision["checks"])
        warnings = tuple(decision["warnings"])
        champion = decision["champion_version"]
        gate = Gate(model["name"], model["version"], champion, checks, warnings)
        word = OUTCOMES[decision["decision"]]
        _post(gate.name, "gate", gate_report(gate, word, decision["reason"]), "The gate's decision")
        show_lineage(work.tracking, model["name"], model["version"])
    log(outcome(summary))
    return summary


def _post_for(work: Work, card: str, page: str, about: str) -> None:
    work.pages[card] = (page, about)
    _post(work.plan.recipe.name, card, page, about)


def _post(of: str, card: str, markdown: str, description: str) -> None:
    """Post a card of a recipe or model."""
    if len(markdown) > LONGEST:
        # A picture is one long line; without it the text fits.
        markdown = "\n".join(line for line in markdown.split("\n") if len(line) < 20_000)
    key = card_key(of, card)
    create_markdown_artifact(markdown[:LONGEST], key=key, description=description)
