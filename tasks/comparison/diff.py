"""Differences between two versions, runs or recipes: settings, data, code, scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError
from tasks.planning.plan import plan_recipe
from tasks.registry.lineage import kept_ancestry, trace
from tasks.registry.versions import EVALUATION_TAG, registered_names
from tasks.store.ancestry import Ancestry, BrokenLineage, gather, join
from tasks.store.artifacts import Store
from tasks.store.model_facts import facts_of
from tasks.store.provenance import git_state
from tasks.store.registry_memory import Version
from tasks.store.steps import BEFORE_LABELS, Bound, Change, changes, finished
from tasks.tracking.connection import Tracking, answered
from tasks.tracking.run_metrics import figures
from tasks.tracking.stage_models import stages_of
from tasks.tracking.tags import KIND

SECTIONS = ("settings", "data", "code", "scores")
TEXTS = ("corpus", "dataset")
OWN = (
    "stage ",
    "tokenizer",
    "evaluation",
    "probe ",
    "few_shot ",
    "prototypes ",
    "links ",
    "word_relations ",
    "word_in_context ",
    "polysemy",
    "word_map",
    "attention",
)  # steps with settings of the recipe
DECIDING = (
    "contract",
    "tokenizer",
    "tokens",
    "rows",
    "wide",
    "vectors",
    "stage",
    "evaluation",
    "attention",
    *BEFORE_LABELS,
)
COUNTS = ("read", "kept", "quarantined", "removed")
VERSION = re.compile(r"models:/.+|[^/@]+@[^/@]+|[^/@]+/[1-9]\d*")
RUN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Side:
    """One side of a diff.

    Attributes:
        name: Display name.
        settings: Settings by step.
        data: Snapshot, source settings and counts of each text.
        code: Commit, code digest by step, package versions.
        scores: Measured scores by metric.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Diff:
    """Differences between two sides.

    Attributes:
        before: The first side.
        after: The second side.
    """

    before: Side
    after: Side

    def section(self, name: str) -> list[Change]:
        """The changes of one of `SECTIONS`."""
        found = changes(getattr(self.before, name), getattr(self.after, name))
        return [change for change in found if _tells(name, change)]

    def unknown(self, name: str) -> list[str]:
        """Names of the sides without data in a section, which can't be compared then."""
        return [side.name for side in (self.before, self.after) if not getattr(side, name)]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON for ``diff --json``."""
        return {
            "from": self.before.name,
            "to": self.after.name,
            **{
                name: [{"at": c.at, "from": c.before, "to": c.after} for c in self.section(name)]
                for name in SECTIONS
            },
            "not_known": {name: self.unknown(name) for name in SECTIONS if self.unknown(name)},
        }


def diff(tracking: Tracking, store: Store, before: str, after: str) -> Diff:
    """Compare two versions, runs or recipes.

    Args:
        tracking: The MLflow connection.
        store: The store.
        before: ``NAME/2``, ``NAME@champion``, the id of a run, or a recipe.
        after: The same.

    Raises:
        RecipeError: There is no such version, run or recipe.
    """
    return Diff(*(_side(tracking, store, word) for word in (before, after)))


def _tells(section: str, change: Change) -> bool:
    """Whether a change is not implied by another one."""
    if None not in (change.before, change.after):
        return True
    nested = isinstance(change.before, Mapping) or isinstance(change.after, Mapping)
    match section:
        case "settings":  # a missing text implies its missing tokens and contracts
            return not nested or change.at.startswith(OWN)
        case "data":  # counts are known only after preparation
            return nested
        case "code":  # missing steps are reported under settings
            return False
    return True


def text(found: Diff) -> str:
    """The diff as text, one line per change."""
    lines = [f"{found.before.name} → {found.after.name}"]
    for name in SECTIONS:
        if unknown := found.unknown(name):
            lines.append(f"{name}: not known of {' and '.join(dict.fromkeys(unknown))}")
        elif section := found.section(name):
            lines += [name, *(f"  {_line(found, change)}" for change in section)]
        else:
            lines.append(f"{name}: the same")
    return "\n".join(lines)


def _line(found: Diff, change: Change) -> str:
    before, after = change.before, change.after
    if isinstance(before, Mapping) or isinstance(after, Mapping):
        return f"{change.at}: only in {(found.after if before is None else found.before).name}"
    if change.at in found.before.scores and change.at in found.after.scores:
        return f"{change.at}: {before:.4g} → {after:.4g} ({after - before:+.4g})"
    return str(change)


def _side(tracking: Tracking, store: Store, word: str) -> Side:
    if VERSION.fullmatch(word) and not Path(word).exists():
        way = trace(tracking, word, store.root, every_file=False)
        name = f"{way.version.name} version {way.version.number}"
        manifests = {hop.manifest.key: hop.manifest for hop in way.hops}
        whole = Ancestry(way.version.key, manifests)
        return _of_ancestry(name, _as_evaluated_last(store, way.version, whole))
    if RUN.fullmatch(word):
        return _of_run(tracking, word)
    return _of_recipe(tracking, store, word)


def _as_evaluated_last(store: Store, version: Version, whole: Ancestry) -> Ancestry:
    """A version's ancestry with its last evaluation: what was registered may be evaluated anew.

    Without an evaluation, if the store lacks the last one.
    """
    key = version.tags.get(EVALUATION_TAG)
    if key is None or key in whole.manifests:
        return whole
    kept = {k: m for k, m in whole.manifests.items() if m.kind not in ("evaluation", "measurement")}
    try:
        last = gather(store.root, {"kind": "evaluation", "key": key})
    except BrokenLineage:
        return Ancestry(whole.root, kept)
    return join(Ancestry(whole.root, kept), last)


@answered
def _of_run(tracking: Tracking, run_id: str) -> Side:
    from mlflow.exceptions import MlflowException

    try:
        run = tracking.client.get_run(run_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        raise RecipeError(
            f"{run_id}: MLflow at {tracking.address} has no such run; its page shows a run's id."
        ) from error
    stages = stages_of(run.data.tags)
    models = [stage.model_id for stage in stages.values()]
    models += [m for m in [run.data.tags.get("fourstage.model_id")] if m]
    if not models:
        kind = run.data.tags.get(KIND, "not of Fourstage")
        raise RecipeError(
            f"{run_id}: expected the run of a lifecycle or of a stage that was finished, got one"
            f" of kind {kind!r} without a stage."
        )
    # The last stage has the most ancestors.
    whole = max((kept_ancestry(tracking, m) for m in models), key=lambda a: len(a.manifests))
    side = _of_ancestry(f"run {run.info.run_name}", whole)
    return Side(side.name, side.settings, side.data, side.code, run.data.metrics)


def _of_ancestry(name: str, whole: Ancestry) -> Side:
    facts = facts_of(whole)
    scores = {each.name: float(each.value) for each in figures(facts)} if facts else {}
    made = [(m.name, m.preimage, m.facts) for m in whole.manifests.values()]
    return _of_steps(name, made, whole.artifact.notes.get("git", {}), scores)


def _of_recipe(tracking: Tracking, store: Store, word: str) -> Side:
    """A recipe as it would run now, with the scores of its last run if nothing has changed."""
    try:
        plan = plan_recipe(word)
    except UnknownNameError as error:
        if word in registered_names(tracking):
            raise RecipeError(
                f"{word} is a registered model: name one of its versions, {word}@champion or"
                f" {word}/1."
            ) from error
        raise
    there = finished(plan.steps.values(), store)
    made = [
        (name, Bound(step, {}).preimage, there[name].facts if name in there else {})
        for name, step in plan.steps.items()
    ]
    scores: Mapping[str, float] = {}
    if "evaluation" in there:
        scores = _of_ancestry("", gather(store.root, there["evaluation"])).scores
    return _of_steps(f"recipe {plan.recipe.name}", made, git_state(), scores)


def _of_steps(
    name: str,
    made: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]],
    git: Mapping[str, Any],
    scores: Mapping[str, float],
) -> Side:
    """Build a side from the name, preimage and facts of its steps."""
    settings: dict[str, Any] = {}
    data: dict[str, Any] = {}
    code: dict[str, Any] = {"commit": git.get("commit"), "edited": git.get("dirty")}
    for step, preimage, facts in made:
        plain = json.loads(json.dumps(preimage["settings"]))
        if preimage["kind"] in TEXTS:
            counts = facts.get("counts", {})
            known = {count: counts[count] for count in COUNTS if count in counts}
            data[step] = {**plain, **known}
        elif preimage["kind"] in DECIDING:
            settings[step] = plain
        code[step] = preimage["code"]
        code |= preimage["versions"]
    return Side(name, settings, data, code, scores)
