"""A recipe being run: its steps, what is made of them so far, and where the story is told.

A flow says which steps it is about, in order; `Work` makes them, and whatever they need that the store
lacks. A flow called by another shares the other's work, so sources are snapshotted once a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from prefect import Task

from fourstage.errors import ContractViolation
from tasks.artifacts import Artifact
from tasks.durable import perform, store
from tasks.evaluate_model import evaluate_model, measure_stage
from tasks.package_model import package_model
from tasks.plan import Plan, plan_recipe
from tasks.prepare_corpus import prepare_corpus, prepare_dataset
from tasks.steps import Bound, Step, bind
from tasks.tokenize_corpus import tokenize_corpus, tokenize_dataset
from tasks.train_stage import train_stage
from tasks.train_tokenizer import train_tokenizer
from tasks.validate_data import validate_data

TASKS: dict[str, Task] = {
    "corpus": prepare_corpus,
    "dataset": prepare_dataset,
    "contract": validate_data,
    "tokenizer": train_tokenizer,
    "tokens": tokenize_corpus,
    "rows": tokenize_dataset,
    "stage": train_stage,
    "measurement": measure_stage,
    "evaluation": evaluate_model,
    "package": package_model,
}


@dataclass
class Work:
    """The state of one run of a recipe.

    Attributes:
        plan: The recipe and its steps.
        tracking_run: The lifecycle's MLflow run, None until it is started.
        made: Finished artifacts by step name.
        status: ``made`` or ``reused`` by step name.
    """

    plan: Plan
    tracking_run: str | None = None
    made: dict[str, Artifact] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)

    def make(self, name: str) -> Artifact:
        """Make a step, or find it made; what it needs comes first.

        Raises:
            ContractViolation: If the step is a contract that the data broke.
        """
        bound = self._bound(name)
        extra = {"tracking_run": self.tracking_run} if bound.step.kind == "stage" else {}
        artifact, self.status[name] = perform(TASKS[bound.step.kind], bound, **extra)
        self.made[name] = artifact
        if bound.step.kind == "contract":
            raise_if_broken(artifact)
        return artifact

    def make_all(self, kinds: Sequence[str]) -> list[Artifact]:
        """Every step of the given kinds, in the recipe's order."""
        return [self.make(step.name) for step in self.plan.steps.values() if step.kind in kinds]

    def _bound(self, name: str) -> Bound:
        step: Step = self.plan.steps[name]
        for needed in step.inputs.values():
            if needed not in self.made:
                self._need(needed)
        bound = bind(step, self.made)
        assert isinstance(bound, Bound)
        return bound

    def _need(self, name: str) -> None:
        """Take a finished input from the store without a task run, or make it."""
        bound = self._bound(name)
        found = store().find(bound.step.kind, bound.key)
        if isinstance(found, Artifact):
            self.made[name] = found
            self.status.setdefault(name, "reused")
            if bound.step.kind == "contract":
                raise_if_broken(found)
        else:
            self.make(name)


_open: dict[tuple[Any, ...], Work] = {}


@contextmanager
def work_on(recipe: str, overrides: Sequence[str] = (), smoke: bool = False) -> Iterator[Work]:
    """The work of a recipe: that of the flow that called this one, or a new one."""
    name = (recipe, tuple(overrides), smoke)
    if name in _open:
        yield _open[name]
        return
    work = Work(plan_recipe(recipe, overrides, smoke))
    _open[name] = work
    try:
        yield work
    finally:
        del _open[name]


def raise_if_broken(contract: Artifact) -> None:
    """Stop on a contract whose verdict is red.

    Raises:
        ContractViolation: With the reason and the place of the report.
    """
    if contract.details["verdict"] == "red":
        raise ContractViolation(
            f"{contract.name}: {contract.details['reason']} Report: {contract.path('report.html')}"
        )
