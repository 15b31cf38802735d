"""State of a run of a recipe: its plan, its artifacts so far, its MLflow run.

A flow names the steps to make, in order. `RecipeRun` makes them, and any inputs that the store
lacks. The lifecycle flow opens one and passes it to its subflows, so that sources are snapshotted
once and all stages share one parent run in MLflow.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prefect import Task

from data_contracts.verdict import Report, raise_if_red
from fourstage.activity import activity
from fourstage.errors import (
    ContractViolation,
    EnvironmentFault,
    Interrupted,
    RecipeError,
    UnknownNameError,
)
from fourstage.space import taken
from fourstage.terminal import say
from tasks.orchestration.naming import flow_tags
from tasks.orchestration.orphans import end_embedded_servers
from tasks.orchestration.posting import post
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.reports.narration import doing, tell_step
from tasks.run.contract_trend import record_contract
from tasks.steps.ask_in_context import ask_in_context
from tasks.steps.compare_contexts import compare_contexts
from tasks.steps.compare_prototypes import compare_prototypes
from tasks.steps.durable import perform
from tasks.steps.evaluate_model import evaluate_model
from tasks.steps.fit_baseline import fit_baseline
from tasks.steps.learn_vectors import learn_vectors
from tasks.steps.learn_wide import learn_wide
from tasks.steps.map_attention import map_attention
from tasks.steps.map_words import map_words
from tasks.steps.measure_stage import measure_stage
from tasks.steps.package_model import package_model
from tasks.steps.prepare_corpus import prepare_corpus, prepare_dataset
from tasks.steps.probe_network import probe_network
from tasks.steps.rank_links import rank_links
from tasks.steps.relate_words import relate_words
from tasks.steps.same_weights import chooses_threshold
from tasks.steps.tell_senses import tell_senses
from tasks.steps.tokenize_corpus import tokenize_corpus, tokenize_dataset
from tasks.steps.train_stage import train_stage
from tasks.steps.train_tokenizer import train_tokenizer
from tasks.steps.validate_data import validate_data
from tasks.store.artifacts import Artifact, store
from tasks.store.step_names import measurement_step, stage_step, subject_of
from tasks.store.steps import Bound, Step, bind, made_by_other_code
from tasks.tracking.connection import Tracking, connect
from tasks.tracking.orphans import close_orphans
from tasks.tracking.record_results import record_results
from tasks.tracking.runs import experiment_of, finish_run, set_tags, start_lifecycle

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage

TASKS: Mapping[str, Task] = {
    "corpus": prepare_corpus,
    "dataset": prepare_dataset,
    "contract": validate_data,
    "baseline": fit_baseline,
    "tokenizer": train_tokenizer,
    "tokens": tokenize_corpus,
    "rows": tokenize_dataset,
    "wide": learn_wide,
    "vectors": learn_vectors,
    "stage": train_stage,
    "measurement": measure_stage,
    "evaluation": evaluate_model,
    "probe": probe_network,
    "few_shot": ask_in_context,
    "prototypes": compare_prototypes,
    "links": rank_links,
    "word_relations": relate_words,
    "word_in_context": compare_contexts,
    "polysemy": tell_senses,
    "word_map": map_words,
    "attention": map_attention,
    "package": package_model,
}


@dataclass
class RecipeRun:
    """The state of one run of a recipe.

    Attributes:
        plan: The recipe and its steps.
        tracking: The MLflow server or database.
        lifecycle_run: Id of the lifecycle run in MLflow, parent of all stage runs.
        end: ``time.monotonic()`` at which no stage may train any more, in place of the recipe's
            limit of minutes; None for that limit.
        started: ``time.monotonic()`` at the start, for the recipe's limit of minutes.
        made: Finished artifacts by step name.
        status: ``made`` or ``reused`` by step name.
        told: Results of the flows for the summary: search, gate, model, and what a refresh lost.
        last: Artifacts of the recipe's last finished run, if this run refreshes it.
        pages: Markdown and description of each card posted so far; all are repeated on the
            lifecycle's page.
        accepted: Stages that are reused although their code has changed.
        taken: Bytes of the entries that this run made.
        recorded: Whether the results are in MLflow.
    """

    plan: Plan
    tracking: Tracking
    lifecycle_run: str
    end: float | None = None
    started: float = field(default_factory=time.monotonic)
    made: dict[str, Artifact] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Artifact] = field(default_factory=dict)
    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()
    taken: int = 0
    recorded: bool = False

    def make(self, name: str) -> Artifact:
        """Make a step or reuse it, after its inputs.

        Raises:
            ContractViolation: The step is a contract and its verdict is red, or a dataset without
                the rows that a stage is selected by.
        """
        if name in self.made:
            return self.made[name]
        bound = self.bound(name)
        extra: dict[str, Any] = {}
        if bound.step.kind in ("wide", "vectors"):
            self._raise_if_over(name, bound)
        if bound.step.kind == "vectors":
            extra = {"seconds_left": self.seconds_left}
        if bound.step.kind == "stage":
            if subject_of(name) in self.accepted and self._accept(name, bound):
                return self.made[name]
            extra = {
                "lifecycle_run": self.lifecycle_run,
                "seconds_left": self.seconds_left,
                "bytes_left": self.bytes_left,
            }
        began = time.monotonic()
        with activity(doing(bound.step)):
            artifact, self.status[name] = perform(TASKS[bound.step.kind], bound, **extra)
        self.made[name] = artifact
        tell_step(artifact, self.status[name], time.monotonic() - began)
        if bound.step.kind == "contract":
            record_contract(self.tracking, self.lifecycle_run, artifact, self.status[name])
            raise_if_broken(artifact)
        if bound.step.kind == "dataset":
            raise_if_not_measurable(self.plan, subject_of(name), artifact)
        if self.status[name] == "made":
            self._count(name, artifact)
        return artifact

    def _raise_if_over(self, name: str, bound: Bound) -> None:
        """Raise if no stage may train any more, so that what only a stage reads would be in vain.

        Raises:
            Interrupted: The minutes are over, and the step is not finished.
        """
        left = self.seconds_left
        if (
            left is None
            or left > 0
            or isinstance(store().find(bound.step.kind, bound.key), Artifact)
        ):
            return
        raise Interrupted(
            f"{name}: stopped by the deadline before it began; finished steps are kept, run the"
            " same command to go on"
        )

    def accept_code_change(self, stages: Sequence[str]) -> None:
        """Allow these stages to be reused although their code has changed.

        Raises:
            UnknownNameError: The recipe has no such stage.
        """
        there = [stage.name for stage in self.plan.recipe.stages]
        for name in stages:
            if name not in there:
                raise UnknownNameError("--accept-code-change", name, "a stage of it", there)
        self.accepted = frozenset(stages)

    def _accept(self, name: str, bound: Bound) -> bool:
        """Pin a stage made by other code, and record this in MLflow."""
        if isinstance(store().find("stage", bound.key), Artifact):
            return False  # made by the current code
        older = made_by_other_code(bound, store())
        if older is None:
            say(f"{name}: no finished stage differs only in its code; it is trained again")
            return False
        self.pin(name, older)
        set_tags(
            self.tracking,
            self.lifecycle_run,
            {f"fourstage.accepted_code_change.{name}": f"{older.key} for {bound.key}"},
        )
        tell_step(older, "accepted", 0.0)
        return True

    def make_all(self, *kinds: str) -> list[Artifact]:
        """Make every step of the given kinds, in the recipe's order."""
        return [self.make(step.name) for step in self.plan.of_kind(*kinds)]

    def pin(self, name: str, artifact: Artifact) -> None:
        """Use an artifact for a step, regardless of the step's key."""
        self.made[name] = artifact
        self.status[name] = "reused"

    @property
    def seconds_left(self) -> float | None:
        """Seconds left until `end` or of the recipe's ``limits.minutes``; None without either."""
        minutes = self.plan.recipe.limits.get("minutes")
        if self.end is not None:
            return self.end - time.monotonic()
        return None if minutes is None else self.started + 60 * minutes - time.monotonic()

    @property
    def bytes_left(self) -> float | None:
        """Bytes left of the recipe's ``limits.disk_gb``; None without a limit."""
        gigabytes = self.plan.recipe.limits.get("disk_gb")
        return None if gigabytes is None else 1e9 * gigabytes - self.taken

    def _count(self, name: str, artifact: Artifact) -> None:
        """Add an artifact to the disk use of this run.

        Raises:
            EnvironmentFault: The disk use exceeds the recipe's limit.
        """
        self.taken += taken(artifact.folder)
        left = self.bytes_left
        if left is not None and left < 0:
            raise EnvironmentFault(
                f"{name}: stopped by limits.disk_gb: the artifacts of this run take"
                f" {self.taken / 1e6:.1f} MB, {(self.taken + left) / 1e6:.1f} MB are allowed."
                " Finished steps are kept; raise the limit if it is too small for the remaining"
                " steps, then run the same command again."
            )

    def facts_of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Facts of each artifact of a kind that was made so far, by its subject."""
        return {
            subject_of(name): dict(artifact.facts)
            for name, artifact in self.made.items()
            if artifact.kind == kind
        }

    def post(self, card: str, page: str, about: str) -> None:
        """Post a card on this flow's page in Prefect, and at the end on the lifecycle's page."""
        self.pages[card] = (page, about)
        post(self.plan.recipe.name, card, page, about)

    @cached_property
    def stages(self) -> list[tuple[ResolvedStage, Artifact, Artifact]]:
        """Each finished stage with its artifact and its measurement."""
        return [
            (stage, self.made[stage_step(stage.name)], self.made[measurement_step(stage.name)])
            for stage in self.plan.recipe.stages
            if measurement_step(stage.name) in self.made
        ]

    def bound(self, name: str) -> Bound:
        """A step with its inputs, which are made if the store lacks them."""
        step = self._step(name)
        for needed in step.inputs.values():
            if needed not in self.made:
                self._need(needed)
        bound = bind(step, self.made)
        assert isinstance(bound, Bound)
        return bound

    def _step(self, name: str) -> Step:
        if name not in self.plan.steps:
            there = ", ".join(stage.name for stage in self.plan.recipe.stages)
            raise RecipeError(f"{self.plan.recipe.where} has no {name}. Its stages: {there}.")
        return self.plan.steps[name]

    def _need(self, name: str) -> None:
        """Reuse a finished input from the store, without a task run, or make it."""
        bound = self.bound(name)
        found = store().find(bound.step.kind, bound.key)
        if isinstance(found, Artifact):
            store().mark_used(found)
            self.made[name] = found
            self.status.setdefault(name, "reused")
            if bound.step.kind == "contract":
                raise_if_broken(found)
        else:
            self.make(name)


@contextmanager
def open_run(plan: Plan, end: float | None = None) -> Iterator[RecipeRun]:
    """Open a new run of a recipe, with a lifecycle run in MLflow that is closed at the end.

    Args:
        plan: The recipe and its steps.
        end: ``time.monotonic()`` at which no stage may train any more, in place of the recipe's
            limit of minutes; None for that limit.

    Raises:
        EnvironmentFault: MLflow does not answer.
    """
    with activity("opening MLflow"):
        end_embedded_servers()
        tracking = connect()
        close_orphans(tracking)
        lifecycle_run = start_lifecycle(
            tracking,
            plan.recipe.name,
            experiment=experiment_of(plan.recipe),
            resolved=as_yaml(plan),
            tags=flow_tags(),
        )
    run = RecipeRun(plan, tracking, lifecycle_run, end)
    status = "FAILED"
    try:
        yield run
        if not run.recorded:
            record_results(tracking, lifecycle_run, plan.recipe, run.made)
        status = "FINISHED"
    except Exception:
        raise
    except BaseException:
        status = "KILLED"
        raise
    finally:
        finish_run(tracking, lifecycle_run, status)


@contextmanager
def join_or_open(
    run: RecipeRun | None, recipe: str, overrides: Sequence[str] | None, smoke: bool
) -> Iterator[RecipeRun]:
    """The run passed by the calling flow; a new one if the flow was started on its own.

    Args:
        run: The run passed to the flow, if any.
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.

    Raises:
        RecipeError: The recipe is invalid; raised before any work.
        ContractViolation: A source's files can't be found.
        EnvironmentFault: MLflow does not answer.
    """
    if run is not None:
        yield run
        return
    with open_run(plan_recipe(recipe, overrides or (), smoke)) as opened:
        yield opened


def raise_if_broken(contract: Artifact) -> None:
    """Raise if a contract's verdict is red.

    Raises:
        ContractViolation: The verdict is red. The message names the failed expectations, what was
            observed, and the report.
    """
    if contract.facts["verdict"] == "red":
        report = json.loads(contract.path("report.json").read_text(encoding="utf-8"))
        raise_if_red(Report.from_json(report), where=str(contract.path("report.html")))


def raise_if_not_measurable(plan: Plan, name: str, dataset: Artifact) -> None:
    """Raise if a dataset lacks rows that a stage chooses by, or on which something is measured.

    Raises:
        ContractViolation: Their split has no rows, or a prompt shows more examples than there are
            training rows. Known before anything is trained.
    """
    splits = dataset.facts["counts"]["splits"]
    search = plan.recipe.search
    folds = search is not None and search.folds is not None
    for stage in plan.recipe.stages:
        if stage.dataset != name:
            continue
        by = {"select": stage.select, "stop": stage.stop}
        by = {key: setting for key, setting in by.items() if setting}
        remedies = [f"remove {' and '.join(by)} from the stage"] if by else []
        asked = {(stage.select or {}).get("split", "dev")} if by else set[str]()
        if chooses_threshold(stage, plan.folders):
            asked.add("dev")
            remedies.append("give the threshold as a number")
        gone = sorted(split for split in asked if not splits.get(split))
        if gone and not folds:
            raise _without_rows(dataset, name, gone[0], f"stage {stage.name} chooses by", remedies)
        split = plan.recipe.evaluation_split
        if stage.kind == "finetune" and not splits.get(split):
            raise _without_rows(dataset, name, split, "the model is evaluated on", [])
    _raise_if_not_askable(plan.recipe, name, dataset)


def _raise_if_not_askable(recipe: ResolvedRecipe, name: str, dataset: Artifact) -> None:
    """Raise if what is asked of the pre-trained network, where there is one, lacks rows."""
    if recipe.pretrained is None:
        return
    splits, split = dataset.facts["counts"]["splits"], recipe.evaluation_split
    asked = ("probes", "few_shot", "prototypes", "links", "word_in_context")
    for key in (key for key in asked if name in getattr(recipe, key)):
        if not splits.get(split):
            raise _without_rows(dataset, name, split, f"evaluate.{key} asks", [])
    examples = max(recipe.few_shot.get(name, {}).get("shots", [0]))
    if examples > (rows := splits.get("train", 0)):
        raise ContractViolation(
            f"dataset {name}: expected {examples:,} training rows or more, which"
            f" evaluate.few_shot.{name} shows in a prompt, got {rows:,}; lower its shots"
        )


def _without_rows(
    dataset: Artifact, name: str, split: str, what_for: str, remedies: list[str]
) -> ContractViolation:
    counts = dataset.facts["counts"]
    there = ", ".join(f"{rows:,} {kind}" for kind, rows in counts["splits"].items() if rows)
    why = (
        "they are drawn from the training rows, where rows of one text, document or title stay"
        " together, and all may be together here"
        if split in counts.get("carved_from_train", ())
        else f"its files for {split} give none"
    )
    remedies = [f"Name files with {split} rows in the source's files", " and ".join(remedies)]
    return ContractViolation(
        f"dataset {name}: expected {split} rows, which {what_for}, got none ({there}): {why}."
        f" {', or '.join(filter(None, remedies))}."
    )


def as_yaml(plan: Plan) -> str:
    """The resolved recipe as a file."""
    import yaml

    from fourstage.recipe.resolved import as_recipe

    return yaml.safe_dump(as_recipe(plan.recipe), sort_keys=False, allow_unicode=True)
