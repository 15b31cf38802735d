"""Summary of a run, as plain JSON and on its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fourstage.languages import main_language
from fourstage.recipe.schema import STAGE_KINDS
from models.catalogue import literals, provided
from tasks.orchestration.posting import post
from tasks.orchestration.run_log import log
from tasks.registry.gate import Check, Gate
from tasks.registry.gate_report import OUTCOMES, gate_report
from tasks.registry.pages import show_lineage
from tasks.reports.asking import typed
from tasks.reports.learned import (
    adds_nothing,
    beyond_pretraining,
    little_learned,
    tells_nothing_apart,
)
from tasks.reports.narration import outcome
from tasks.reports.stage_table import brackets, stage_rows, stage_table
from tasks.run.recipe_run import RecipeRun
from tasks.steps.heldout_losses import unigram_losses
from tasks.store.ancestry import made_as
from tasks.store.step_names import as_texts, dataset_step, measurement_step, stage_step

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage
    from tasks.store.artifacts import Artifact

CHARACTERS = {"zh", "ja"}  # languages whose characters are tokens


def summarise(run: RecipeRun) -> dict[str, Any]:
    """The run's results: stages in order, metrics, gate, model."""
    recipe = run.plan.recipe
    done = {stage.name: (stage, made, measured) for stage, made, measured in run.stages}
    stages = [_stage(run, *facts) for facts in done.values()]
    for kind in STAGE_KINDS:
        if kind in recipe.skipped:
            at = sum(STAGE_KINDS.index(stage["kind"]) < STAGE_KINDS.index(kind) for stage in stages)
            stages.insert(at, {"stage": kind, "kind": kind, "status": "skipped"})
    _add_gains(stages, {stage.name for stage in recipe.stages if stage.starts_network})
    evaluation = run.made.get("evaluation")
    facts: Mapping[str, Any] = evaluation.facts if evaluation else {}
    scores = (
        "split",
        "rows",
        "metrics",
        "metrics_clean",
        "rows_clean",
        "baseline",
        "majority",
        "answers",
        "labels_left_out",
    )
    return {
        "recipe": recipe.name,
        "stages": stages,
        **({name: facts[name] for name in scores} if facts else {"metrics": {}}),
        "seeing_baseline": facts.get("seeing_baseline", {}),
        "slices": facts.get("slices", {}),
        "forgetting": facts.get("forgetting", {}),
        "latency_ms": evaluation.notes["latency_ms"] if evaluation else {},
        "probes": run.facts_of("probe"),
        "few_shot": run.facts_of("few_shot"),
        "prototypes": run.facts_of("prototypes"),
        "links": run.facts_of("links"),
        "word_relations": run.facts_of("word_relations"),
        "word_in_context": run.facts_of("word_in_context"),
        "word_map": dict(run.made["word_map"].facts) if "word_map" in run.made else {},
        "polysemy": dict(run.made["polysemy"].facts["words"]) if "polysemy" in run.made else {},
        "attention": dict(run.made["attention"].facts) if "attention" in run.made else {},
        "contracts": {
            name: artifact.facts["verdict"]
            for name, artifact in run.made.items()
            if artifact.kind == "contract"
        },
        "search": run.told.get("search"),
        "gate": run.told.get("gate"),
        "model": run.told.get("model"),
        "example": _example(run),
        "notes": run.told.get("lost", [])
        + _unseen(run)
        + ([] if run.plan.smoke else _little(run, stages, facts)),
        "lifecycle_run": run.lifecycle_run,
    }


def _example(run: RecipeRun) -> str | None:
    """A row for ``fourstage predict`` to ask the model with."""
    if (package := run.plan.steps.get("package")) is None or "evaluation" not in run.made:
        return None
    return typed(run.made["evaluation"].facts["answers"], package.settings)


def show_summary(run: RecipeRun) -> dict[str, Any]:
    """Post the final stage table and repeat the subflows' cards on the lifecycle's page.

    Returns:
        The summary as plain JSON.
    """
    summary = summarise(run)
    metric = run.plan.recipe.metrics[0] if run.plan.recipe.metrics else ""
    rows = stage_rows(summary)
    parts = ["## What each stage bought", stage_table(rows, metric), brackets(rows, metric)]
    parts += [f"> {note}" for note in summary["notes"]]
    recipe = run.plan.recipe.name
    post(recipe, "stages", "\n\n".join(parts), "What each stage bought")
    for card, (page, about) in run.pages.items():
        post(recipe, card, page, about)
    if summary["gate"] and summary["model"]:
        decision, model = summary["gate"], summary["model"]
        checks = tuple(Check(**check) for check in decision["checks"])
        warnings = tuple(decision["warnings"])
        champion = decision["champion_version"]
        gate = Gate(model["name"], model["version"], champion, checks, warnings)
        word = OUTCOMES[decision["decision"]]
        post(gate.name, "gate", gate_report(gate, word, decision["reason"]), "The gate's decision")
        show_lineage(run.tracking, model["name"], model["version"])
    log(outcome(summary))
    return summary


def _stage(
    run: RecipeRun, stage: ResolvedStage, made: Artifact, measured: Artifact
) -> dict[str, Any]:
    facts, notes, losses = made.facts, made.notes, measured.facts["heldout_loss"]
    objective = run.plan.steps[measurement_step(stage.name)].settings["objective"]
    return {
        "stage": stage.name,
        "kind": stage.kind,
        "status": made_as(made) if run.status[stage_step(stage.name)] == "made" else "reused",
        "key": made.key,
        "weights_digest": facts["weights_digest"],
        "steps": facts["steps"],
        "tokens": facts["tokens"],
        "seconds": round(notes["seconds"], 3),
        "tokens_per_second": notes["tokens_per_second"],
        "passes": facts["passes"],
        **({"turns": facts["turns"]} if "turns" in facts else {}),
        "heldout_loss": losses,
        "heldout_error": measured.facts["heldout_error"],
        "heldout_loss_a_character": measured.facts["heldout_loss_a_character"],
        "heldout_loss_a_word": measured.facts["heldout_loss_a_word"],
        "unigram_loss": unigram_losses(as_texts(run.made), losses, objective, run.plan.folders),
        "task_metric": measured.facts.get("task_metric"),
    }


def _little(
    run: RecipeRun, stages: Sequence[Mapping[str, Any]], evaluation: Mapping[str, Any]
) -> list[str]:
    """Notes on stages of the last network that taught it little."""
    recipe, told = run.plan.recipe, {stage["stage"]: stage for stage in stages}
    trained = [s for s in recipe.last_network if s.name in told and s.init is None]
    guessed = [s for s in trained if s.kind != "finetune" and recipe.measured_by in s.objectives]
    pieces = recipe.tokenizer.vocabulary_size if recipe.start is None else None
    sources = [step.given["source"] for step in run.plan.of_kind("corpus", "dataset")]
    read = {main_language(source.language) for source in sources}
    if pieces and read & CHARACTERS:
        pieces //= 2  # up to half of them are single characters
    learned = little_learned([told[stage.name] for stage in guessed], guessed, pieces)
    learned += beyond_pretraining(recipe) + tells_nothing_apart(evaluation)
    finetune = recipe.finetune
    if finetune is None or literals("families", finetune.family, run.plan.folders).get("COUNTS"):
        return learned
    trained = run.made.get(stage_step(finetune.name))
    return learned + (adds_nothing(trained.notes["metrics"]) if trained else [])


def _unseen(run: RecipeRun) -> list[str]:
    """A note on rows whose pictures the network does not see."""
    finetune = run.plan.recipe.finetune
    if finetune is None or finetune.dataset is None:
        return []
    step = run.plan.steps[dataset_step(finetune.dataset)]
    if step.given["source"].pictures is None:
        return []
    if "regions" in provided(finetune.family, run.plan.folders):
        return []
    return [
        f"The rows of {finetune.dataset} have pictures, which {finetune.family} does not see: it"
        " has read their texts alone."
    ]


def _add_gains(stages: list[dict[str, Any]], anew: set[str]) -> None:
    """Add to each stage its change from the stage before: held-out losses and task metric.

    Before ``finetune``, the metric is that of a linear probe, so the change at ``finetune`` is the
    gain of training the whole network on the labels. The first stage of a network (one of `anew`)
    is compared with the unigram loss.
    """
    before: Mapping[str, float] | None = None
    for stage in stages:
        if stage["status"] == "skipped":
            continue
        if before is None or stage["stage"] in anew:
            before = {f"loss on {corpus}": x for corpus, x in stage["unigram_loss"].items()}
        now = {f"loss on {corpus}": loss for corpus, loss in stage["heldout_loss"].items()}
        if metric := stage["task_metric"]:
            now[metric["name"]] = metric["value"]
        stage["gained"] = {name: now[name] - before[name] for name in now if name in before}
        before = now
