"""A recipe in a comparison, and its artifacts at a seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.planning.layout import Plan
from tasks.store.artifacts import Artifact
from tasks.store.step_names import measurement_step, stage_step, subject_of, vectors_step

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage


@dataclass(frozen=True)
class Entry:
    """A recipe in a comparison.

    Attributes:
        name: The recipe's own name; unique in the comparison.
        recipe: Name or path, as given.
        overrides: ``a.b=c`` settings, including those that equalise its budgets.
        smoke: Whether it is run at size tiny on embedded data.
        seeds: Seeds to run it at.
        seeds_from: Name of the first stage that differs between seeds.
        together: Number of seeds that share the stages before it.
        search: Table of the recipe's search, if it has one; `overrides` hold what it chose.
        accepted: Stages of it that are reused although the code that made them has changed.
    """

    name: str
    recipe: str
    overrides: tuple[str, ...]
    smoke: bool
    seeds: tuple[int, ...]
    seeds_from: str
    together: int
    search: Mapping[str, Any] | None = None
    accepted: tuple[str, ...] = ()


_SCORES = ("probe", "evaluation", "prototypes", "word_in_context", "measurement")


def scored_steps(plan: Plan) -> list[str]:
    """The steps whose results a comparison reads: not the dev scores after the labels."""
    finetune = plan.recipe.finetune
    unread = measurement_step(finetune.name) if finetune else None
    return [step.name for step in plan.of_kind(*_SCORES) if step.name != unread]


@dataclass(frozen=True)
class SeedRun:
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
        """Scores of the fine-tuned model; empty without one."""
        evaluation = self.made.get("evaluation")
        return evaluation.facts if evaluation else {}

    @property
    def probes(self) -> dict[str, Artifact]:
        """Probe of the pre-trained network on each dataset, by dataset."""
        steps = [step.name for step in self.plan.of_kind("probe")]
        return {subject_of(name): self.made[name] for name in steps}

    @property
    def last_guess(self) -> tuple[str, dict[str, float]]:
        """The last pre-training stage with the measured objective, and its loss by corpus.

        After a stage with another objective (replaced tokens), the head for the measured one no
        longer fits the network. Empty if there is no such stage.
        """
        guessed = [
            (stage.name, dict(self.made[measurement_step(stage.name)].facts["heldout_loss"]))
            for stage in self.plan.recipe.last_network
            if stage.kind != "finetune"
            and (self.plan.recipe.measured_by in stage.objectives or stage.init)
        ]
        return guessed[-1] if guessed else ("", {})

    def spent(self, what: str, stages: Iterable[ResolvedStage] | None = None) -> float:
        """Sum of ``steps``, ``tokens`` or ``seconds`` over stages.

        Args:
            what: One of the three.
            stages: The stages; default: all of the recipe, including teachers.
        """
        counted = list(self.plan.recipe.stages if stages is None else stages)
        made = (self.made[stage_step(stage.name)] for stage in counted)
        if what == "seconds":
            return sum(stage.notes[what] for stage in made) + self._seconds_of_vectors(counted)
        return sum(stage.facts[what] for stage in made)

    def seconds_of_updates(self, stages: Iterable[ResolvedStage]) -> float:
        """Time of the stages' updates, without compiling them, and of their word vectors."""
        counted = list(stages)
        made = (self.made[stage_step(stage.name)] for stage in counted)
        return sum(map(_seconds_of_updates, made)) + self._seconds_of_vectors(counted)

    def _seconds_of_vectors(self, stages: Iterable[ResolvedStage]) -> float:
        """Time of learning the word vectors that tables of these stages start from."""
        names = [vectors_step(stage.name) for stage in stages]
        return sum(self.made[name].notes["seconds"] for name in names if name in self.made)


def pretraining_stages(recipe: ResolvedRecipe) -> list[ResolvedStage]:
    """The trained stages of the last network before finetune."""
    return [s for s in recipe.last_network if s.kind != "finetune" and s.init is None]


def _seconds_of_updates(stage: Artifact) -> float:
    speed = stage.notes["tokens_per_second"]  # 0 after a single update, which compiled
    return stage.facts["tokens"] / speed if speed else stage.notes["seconds"]
