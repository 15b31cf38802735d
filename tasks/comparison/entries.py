"""Who takes part in a comparison: recipes, their seeds, and budgets that make them equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.terminal import say
from tasks.planning.plan import Plan, plan_recipe
from tasks.registry.gate import BASELINE
from tasks.run.work import work_on
from tasks.steps.durable import store
from tasks.store.artifacts import Artifact
from tasks.store.steps import look_ahead

SCORES = ("probe", "evaluation")  # kinds of the steps that a comparison reads
TRIAL_STEPS = 20  # updates of each stage by which a recipe's speed is measured


@dataclass(frozen=True)
class Entry:
    """A recipe that takes part.

    Attributes:
        name: The recipe's own name; unique in the comparison.
        recipe: Name or path, as given.
        overrides: ``a.b=c`` settings, those that equalise its budgets among them.
        smoke: Whether it is run at size tiny on embedded data.
        seeds: It is run at each.
        seeds_from: Name of the first stage that differs between seeds.
        together: How many seeds share the stages before it.
    """

    name: str
    recipe: str
    overrides: tuple[str, ...]
    smoke: bool
    seeds: tuple[int, ...]
    seeds_from: str
    together: int


@dataclass(frozen=True)
class Run:
    """A recipe finished at one seed.

    Attributes:
        plan: Its steps.
        seed: The seed.
        made: Artifacts by step name.
    """

    plan: Plan
    seed: int
    made: Mapping[str, Artifact]

    @property
    def scores(self) -> Mapping[str, Any]:
        """Of the fine-tuned model; empty where there is none."""
        evaluation = self.made.get("evaluation")
        return evaluation.facts if evaluation else {}

    @property
    def probes(self) -> dict[str, Artifact]:
        """By dataset, what the pre-trained network knew of it."""
        steps = [step.name for step in self.plan.of_kind("probe")]
        return {name.removeprefix("probe "): self.made[name] for name in steps}

    @property
    def stages(self) -> list[tuple[Any, Artifact, Artifact]]:
        """Each stage of the last network with its artifact and its measurement."""
        return [
            (stage, self.made[f"stage {stage.name}"], self.made[f"measurement {stage.name}"])
            for stage in self.plan.recipe.last_network
        ]

    @property
    def last_guess(self) -> tuple[str, dict[str, float]]:
        """The last pre-training stage that learned what is measured and, by corpus, its loss.

        A stage that learns something else (replaced tokens) leaves a head behind that no longer
        fits the network. Empty where there is none.
        """
        guessed = [
            (stage.name, dict(found.facts["heldout_loss"]))
            for stage, _, found in self.stages
            if stage.kind != "finetune"
            and (self.plan.recipe.measured_by in stage.objectives or stage.init)
        ]
        return guessed[-1] if guessed else ("", {})

    def spent(self, what: str, stages: Iterable[Any] | None = None) -> float:
        """Sum of ``steps``, ``tokens`` or ``seconds`` over stages.

        Args:
            what: One of the three.
            stages: All of the recipe where None, the teachers' among them.
        """
        counted = self.plan.recipe.stages if stages is None else stages
        made = (self.made[f"stage {stage.name}"] for stage in counted)
        return sum((stage.notes if what == "seconds" else stage.facts)[what] for stage in made)


def pretraining_stages(recipe: Any) -> list[Any]:
    """The stages before the labels that trained the last network."""
    return [s for s in recipe.last_network if s.kind != "finetune" and s.init is None]


def entries_of(
    recipes: Sequence[str],
    overrides: Sequence[str] = (),
    smoke: bool = False,
    seeds: Sequence[int] | None = None,
) -> list[Entry]:
    """The recipes as entries, refused before any work where they can't be compared.

    Args:
        recipes: Names or paths.
        overrides: ``a.b=c`` settings laid over all of them.
        smoke: Whether to keep only their structure, at size tiny, on embedded data.
        seeds: In place of the recipes' own.

    Raises:
        RecipeError: If two have one name, one has no labelled stage, or they have different rows
            or probes.
    """
    entries: list[Entry] = []
    asked: dict[tuple[str, str], str] = {}
    probed: dict[tuple[tuple[str, str], ...], str] = {}
    for recipe in recipes:
        resolved = plan_recipe(recipe, overrides, smoke).recipe
        if resolved.finetune is None and not resolved.probes:
            raise RecipeError(
                f"{resolved.where}: compare needs a stage finetune in every recipe, or"
                " evaluate.probes: what is compared are predictions for labelled rows"
            )
        if resolved.name in [entry.name for entry in entries]:
            raise RecipeError(
                f"{resolved.where}: name: {resolved.name!r} is compared already; give each recipe"
                " its own name"
            )
        if resolved.pretrained is not None:
            probed.setdefault(tuple(sorted(resolved.probes.items())), resolved.name)
        labelled = resolved.finetune.dataset if resolved.finetune else "no dataset"
        asked.setdefault((labelled, resolved.evaluation_split), resolved.name)
        entries.append(
            Entry(
                resolved.name,
                recipe,
                tuple(overrides),
                smoke,
                tuple(seeds or resolved.seeds),
                resolved.seeds_from or resolved.stages[0].name,
                resolved.seeds_together or len(seeds or resolved.seeds),
            )
        )
    if len(asked) > 1:
        told = "; ".join(f"{who}: {split} rows of {name}" for (name, split), who in asked.items())
        raise RecipeError(f"compare: expected one dataset and split, got {told}")
    if len(probed) > 1:
        told = "; ".join(
            f"{who}: {', '.join(map(': '.join, probes)) or 'none'}"
            for probes, who in probed.items()
        )
        raise RecipeError(
            f"compare: expected the same evaluate.probes in all recipes, got {told}; --set"
            " 'evaluate.probes={DATASET: METRIC}' gives them to all"
        )
    return entries


def contrasts_of(
    entries: Sequence[Entry], declared: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """The contrasts that a comparison judges, (candidate, reference) by name.

    Each one more makes all the others harder to show: the verdicts are corrected for their number.

    Args:
        entries: The recipes in order.
        declared: ``CANDIDATE:REFERENCE`` each; every recipe against the first one and against the
            cheap baseline where None.

    Raises:
        UnknownNameError: If one names no recipe of the comparison.
        RecipeError: If one is no contrast of two.
    """
    names = [entry.name for entry in entries]
    if not declared:
        first, *others = names
        return [(name, first) for name in others] + [(name, BASELINE) for name in names]
    found = []
    for contrast in declared:
        candidate, colon, reference = contrast.partition(":")
        if not colon or candidate == reference:
            raise RecipeError(
                f"--contrast: expected CANDIDATE:REFERENCE, two of {', '.join([*names, BASELINE])};"
                f" got {contrast[:80]!r}"
            )
        for name in (candidate, reference):
            if name not in (*names, BASELINE):
                raise UnknownNameError(
                    "--contrast", name, "a recipe of this comparison", [*names, BASELINE]
                )
        found.append((candidate, reference))
    return list(dict.fromkeys(found))


def run_entry(entry: Entry, seed: int) -> Run:
    """Finish a recipe at a seed; one that is finished costs only look-ups."""
    found = _finished(entry, seed)
    if found is None:
        say(f"{entry.name} at seed {seed}")
        with work_on(entry.recipe, entry.overrides, entry.smoke, seed) as work:
            work.make_all(*SCORES)
        found = _finished(entry, seed)
    assert found is not None, "an evaluation that was just made"
    return found


def equal_budgets(entry: Entry, first: Run, equal: str | None) -> Entry:
    """The entry with pre-training that uses as much as the first recipe's did.

    Each stage keeps its share of the recipe's own budget. Budgets are counted in the tokens that
    are really read. For equal time a few updates of each stage measure the recipe's speed first.

    Args:
        entry: Any but the first.
        first: The first recipe, finished.
        equal: ``tokens``, ``time`` or None for budgets as written.
    """
    if equal is None or entry.smoke:
        return entry
    with work_on(entry.recipe, entry.overrides, entry.smoke, entry.seeds[0]) as work:
        stages = pretraining_stages(work.plan.recipe)
        made = {step.name: work.make(step.name) for step in work.plan.of_kind("tokens", "rows")}
    if not stages:
        return entry
    written = {stage.name: _tokens_as_written(stage, made) for stage in stages}
    before = pretraining_stages(first.plan.recipe)
    if equal == "tokens":
        left = first.spent("tokens", before)
        tokens = {name: left * amount / sum(written.values()) for name, amount in written.items()}
    else:
        speed = _speeds(entry, [stage.name for stage in stages])
        seconds = {name: amount / speed[name] for name, amount in written.items()}
        factor = first.spent("seconds", before) / sum(seconds.values())
        tokens = {name: amount * factor for name, amount in written.items()}
    scaled = tuple(
        f"stages.{name}.budget.tokens={max(1, round(amount))}" for name, amount in tokens.items()
    )
    return replace(entry, overrides=entry.overrides + scaled)


def check_equal(entries: Sequence[Entry], equal: str | None) -> None:
    """Refuse to equalise where the first recipe gives nothing to go by.

    Raises:
        RecipeError: If it has no pre-training.
    """
    if equal is None:
        return
    first = plan_recipe(entries[0].recipe, entries[0].overrides, entries[0].smoke).recipe
    if not pretraining_stages(first):
        raise RecipeError(
            f"{first.where}: --equal {equal} scales pre-training to that of the first recipe, and"
            " this one has none; name another recipe first"
        )


def _finished(entry: Entry, seed: int) -> Run | None:
    plan = plan_recipe(entry.recipe, entry.overrides, entry.smoke, seed)
    made = {
        prospect.step.name: prospect.found
        for prospect in look_ahead(list(plan.steps.values()), store())
        if isinstance(prospect.found, Artifact)
    }
    scores = [step.name for step in plan.of_kind(*SCORES)]
    return Run(plan, seed, made) if all(name in made for name in scores) else None


def _tokens_as_written(stage: Any, made: Mapping[str, Artifact]) -> float:
    """About what a stage's own budget reads; exact enough to share a total out."""
    amount = stage.budget.amount
    if stage.budget.unit == "tokens":
        return amount
    if stage.budget.unit == "steps":
        return amount * sum(p.share * p.batch_size * p.sequence_length for p in stage.phases)
    # A pass lasts until the corpus that takes longest has been read once.
    return amount * max(
        made[f"tokens {name}"].facts["tokens"]["train"] / share
        for name, share in stage.corpora.items()
    )


def _speeds(entry: Entry, stages: Sequence[str]) -> dict[str, float]:
    """Tokens a second of each pre-training stage, from a few updates that the store remembers."""
    short = tuple(f"stages.{name}.budget.steps={TRIAL_STEPS}" for name in stages)
    with work_on(entry.recipe, entry.overrides + short, entry.smoke, entry.seeds[0]) as work:
        made = {name: work.make(f"stage {name}") for name in stages}
    return {name: artifact.notes["tokens_per_second"] for name, artifact in made.items()}
