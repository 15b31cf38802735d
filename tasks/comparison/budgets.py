"""Run the recipes of a comparison at their seeds, with equalised budgets and searched settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fourstage.recipe.search import overrides_of
from fourstage.terminal import say
from tasks.comparison.participants import Entry, SeedRun, pretraining_stages, scored_steps
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.run.pages import show_search
from tasks.run.recipe_run import open_run
from tasks.run.trials import choose
from tasks.store.artifacts import Artifact, store
from tasks.store.step_names import as_texts, stage_step, tokens_step
from tasks.store.steps import finished

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage

TRIAL_STEPS = 50  # updates of each stage to measure its speed and the tokens of an update


def run_entry(entry: Entry, seed: int) -> SeedRun:
    """Run a recipe at a seed, or reuse its finished artifacts."""
    plan = plan_recipe(entry.recipe, entry.overrides, entry.smoke, seed)
    found = _finished(plan, seed)
    if found is None:
        say(f"{entry.name} at seed {seed}")
        with open_run(plan) as run:
            run.accept_code_change(entry.accepted)
            for name in scored_steps(plan):
                run.make(name)
        found = SeedRun(plan, seed, run.made)
    return found


def searched(entry: Entry) -> Entry:
    """Give an entry the settings that its search chooses, at the pre-training of its first seed.

    So every recipe is compared at its best, and no test row has chosen anything.
    """
    plan = plan_recipe(entry.recipe, entry.overrides, entry.smoke, entry.seeds[0])
    if plan.recipe.search is None or plan.recipe.finetune is None:
        return entry
    say(f"{entry.name}: search")
    with open_run(plan) as run:
        run.accept_code_change(entry.accepted)
        table = choose(run, entry.recipe, entry.overrides, entry.smoke, entry.seeds[0])
        show_search(run, table)
    chosen = table["points"][table["chosen"]]["settings"]
    more = overrides_of(chosen, plan.recipe.finetune.name)
    return replace(entry, overrides=entry.overrides + more, search=table)


def equal_budgets(entry: Entry, first: SeedRun, equal: str | None) -> Entry:
    """Scale an entry's pre-training budgets to the cost of the first recipe's pre-training.

    Each stage keeps its share of the recipe's total budget. Budgets are counted in tokens actually
    read. For equal time, some updates of each stage measure the recipe's speed first; the time to
    compile counts for none. They also count the tokens of an update where a budget is in updates.

    Args:
        entry: Any entry but the first.
        first: The first recipe, finished.
        equal: ``tokens``, ``time`` or None for budgets as written.
    """
    if equal is None or entry.smoke:
        return entry
    plan = plan_recipe(entry.recipe, entry.overrides, entry.smoke, entry.seeds[0])
    stages = pretraining_stages(plan.recipe)
    if not stages:
        return entry
    time = equal == "time"
    with open_run(plan) as run:
        made = {step.name: run.make(step.name) for step in plan.of_kind("tokens", "rows")}
        vectors = [run.make(step.name) for step in plan.of_kind("vectors")] if time else []
    counted = time or any(stage.budget.unit == "steps" for stage in stages)
    tried = _tried(entry, [stage.name for stage in stages]) if counted else {}
    written = {stage.name: _tokens_as_written(stage, made, tried) for stage in stages}
    before = pretraining_stages(first.plan.recipe)
    if not time:
        left = first.spent("tokens", before)
        tokens = {name: left * amount / sum(written.values()) for name, amount in written.items()}
    else:
        seconds = {
            name: amount / tried[name].notes["tokens_per_second"]
            for name, amount in written.items()
        }
        left = first.seconds_of_updates(before) - sum(each.notes["seconds"] for each in vectors)
        factor = max(0.0, left) / sum(seconds.values())
        tokens = {name: amount * factor for name, amount in written.items()}
    scaled = tuple(
        scaled_budget(stage, tokens[stage.name], written[stage.name]) for stage in stages
    )
    return replace(entry, overrides=entry.overrides + scaled)


def scaled_budget(stage: ResolvedStage, tokens: float, written: float) -> str:
    """The setting with which a stage reads `tokens` instead of those `written` in its budget.

    A budget in updates stays one: its phases share updates, not tokens.
    """
    place = f"stages.{stage.name}.budget"
    if stage.budget.unit == "steps":
        return f"{place}.steps={max(1, round(stage.budget.amount * tokens / written))}"
    return f"{place}.tokens={max(1, round(tokens))}"


def _finished(plan: Plan, seed: int) -> SeedRun | None:
    made = finished(plan.steps.values(), store())
    return SeedRun(plan, seed, made) if made.keys() >= {*scored_steps(plan)} else None


def _tokens_as_written(
    stage: ResolvedStage, made: Mapping[str, Artifact], tried: Mapping[str, Artifact]
) -> float:
    """Estimated tokens of a stage's own budget, exact enough to divide a total."""
    amount = stage.budget.amount
    if stage.budget.unit == "tokens":
        return amount
    if stage.budget.unit == "steps":
        facts = tried[stage.name].facts
        return amount * facts["tokens"] / facts["steps"]
    # An epoch ends when the slowest corpus has been read once.
    return amount * max(
        as_texts(made)[tokens_step(name)].facts["tokens"]["train"] / share
        for name, share in stage.corpora.items()
    )


def _tried(entry: Entry, stages: Sequence[str]) -> dict[str, Artifact]:
    """Each pre-training stage after a few updates, which stay in the store."""
    short = tuple(f"stages.{name}.budget.steps={TRIAL_STEPS}" for name in stages)
    plan = plan_recipe(entry.recipe, entry.overrides + short, entry.smoke, entry.seeds[0])
    with open_run(plan) as run:
        return {name: run.make(stage_step(name)) for name in stages}
