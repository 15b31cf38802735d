"""The gate: may this version become the champion? A pure decision with a reason for every check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fourstage.errors import RecipeError, UnknownNameError
from models.evaluation.baseline import CHEAP

if TYPE_CHECKING:
    from models.evaluation.bootstrap import Comparison

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 17
BASELINE = "cheap_baseline"


@dataclass(frozen=True)
class Predictions:
    """What a model said of the gate's rows, in the rows' order; no text.

    Attributes:
        ids: Id of each row.
        labels: What is right for each row.
        predicted: What the model answered.
        texts: A number that rows of one text share; empty where each has its own.
        kind: Of answer; a file in ``models/answers``.
    """

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    predicted: tuple[str, ...]
    texts: tuple[int, ...] = ()
    kind: str = "label"

    def same_rows(self, other: Predictions) -> bool:
        """Whether both answer the same questions, so that they can be compared in pairs."""
        return self.ids == other.ids and self.labels == other.labels


@dataclass(frozen=True)
class Evidence:
    """What is known of one version.

    Attributes:
        version: Its number in the registry.
        metrics: Metrics on the gate's rows.
        predictions: Its answers on them.
        baseline: The cheap baseline's metrics on the same rows.
        baseline_predicted: The label it gave each of them; empty where that was not kept.
        slices: Metrics by slice.
        forgetting: Rise of held-out loss by corpus since the stage that learned it.
        latency_ms: ``p50`` and ``p95`` of one prediction.
        size_mb: Size of the packaged model.
        split: Of the gate's rows: ``dev`` or ``test``.
    """

    version: int
    metrics: Mapping[str, float]
    predictions: Predictions | None = None
    baseline: Mapping[str, float] = field(default_factory=dict)
    baseline_predicted: tuple[str, ...] = ()
    slices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    forgetting: Mapping[str, float] = field(default_factory=dict)
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    size_mb: float | None = None
    split: str = ""


@dataclass(frozen=True)
class Check:
    """One thing the gate looked at.

    Attributes:
        name: What, such as ``micro_f1 at_least``.
        passed: Whether it is as required.
        expected: What was required.
        observed: What was found.
        says: Why, in a sentence, where the figures don't say it.
        figures: What was found, as numbers by name: ``micro_f1/difference``.
    """

    name: str
    passed: bool
    expected: str
    observed: str
    says: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Gate:
    """A decision and its reasons.

    Attributes:
        name: The registered model.
        version: The version it is about.
        champion_version: The champion it was compared with, None where there was none.
        checks: Everything it looked at.
        warnings: What a reader should know although it decides nothing.
        asks: Why somebody has to agree even where every check passed; empty where nobody has to.
    """

    name: str
    version: int
    champion_version: int | None
    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()
    asks: str = ""

    @property
    def decision(self) -> str:
        """``promote``, ``refuse``, or ``wait`` for somebody who approves."""
        if self.failed:
            return "refuse"
        return "wait" if self.asks else "promote"

    @property
    def failed(self) -> list[Check]:
        """Why it refuses."""
        return [check for check in self.checks if not check.passed]

    @property
    def reason(self) -> str:
        """The decision's reason in a line."""
        if not self.failed:
            passed = f"all {len(self.checks)} checks passed"
            return f"{passed}, but {self.asks}" if self.asks else passed
        return "; ".join(
            f"{check.name}: expected {check.expected}, found {check.observed}"
            + (f" ({check.says})" if check.says else "")
            for check in self.failed
        )

    def to_json(self) -> dict[str, Any]:
        """As reports and ``run --json`` hold it."""
        return {
            "model": self.name,
            "version": self.version,
            "champion_version": self.champion_version,
            "decision": self.decision,
            "reason": self.reason,
            "checks": [dict(check.__dict__) for check in self.checks],
            "warnings": list(self.warnings),
            "asks": self.asks,
        }


def decide(
    name: str,
    requirements: Mapping[str, Mapping[str, Any]],
    challenger: Evidence,
    champion: Evidence | None = None,
    *,
    champion_version: int | None = None,
    champion_fault: str = "",
    contracts: Mapping[str, str] | None = None,
    lineage_faults: Sequence[str] = (),
    overlap: tuple[str, int] | None = None,
    asks: str = "",
) -> Gate:
    """Hold a version against a recipe's requirements.

    Args:
        name: The registered model.
        requirements: ``promote.require`` of the recipe.
        challenger: What is known of the version.
        champion: What is known of the champion, None where there is none or it can't be read.
        champion_version: Its number, where ``champion`` does not tell it.
        champion_fault: Why the champion can't be read, if it can't.
        contracts: Verdict (``green``, ``amber``, ``red``) of each contract on the version's way.
        lineage_faults: What its lineage lacks.
        overlap: Policy and number of evaluation rows that stand in the training text.
        asks: Why somebody has to approve, if somebody has to.

    Raises:
        RecipeError: For a requirement or rule that does not exist.
    """
    if champion is not None:
        champion_version = champion.version
        if champion.version == challenger.version:
            champion = None  # it would be compared with itself
    checks: list[Check] = []
    warnings: list[str] = []
    if ahead := baseline_ahead(challenger.metrics, challenger.baseline, challenger.split):
        warnings.append(ahead)
    for subject, rules in requirements.items():
        if subject == "slices":
            checks += _slices(rules, challenger)
        elif subject == "forgetting":
            checks += _bounds(subject, rules, max(challenger.forgetting.values(), default=None))
        elif subject == "latency_ms":
            checks += _latency(rules, challenger)
        elif subject == "size_mb":
            checks += _bounds(subject, rules, challenger.size_mb)
        else:
            for check, warning in _metric(subject, rules, challenger, champion):
                checks.append(check)
                warnings += warning
    if champion_fault:
        says = f"`fourstage promote {name} --version {challenger.version} --force` goes on without"
        checks.append(Check("champion readable", False, "readable", champion_fault, says))
    broken = sorted(n for n, verdict in (contracts or {}).items() if verdict == "red")
    kept = f"{len(contracts or {}) - len(broken)} of {len(contracts or {})} kept"
    checks.append(Check("contracts", not broken, "none broken", kept, ", ".join(broken)))
    complete = "complete" if not lineage_faults else f"{len(lineage_faults)} faults"
    first = lineage_faults[0] if lineage_faults else ""
    checks.append(Check("lineage", not lineage_faults, "complete", complete, first))
    if overlap:
        policy, count = overlap
        fine = count == 0 or policy == "report"
        checks.append(Check("overlap", fine, f"none, or policy report ({policy})", f"{count} rows"))
        if count and fine:
            warnings.append(f"{count} evaluation rows stand in the training text (policy {policy})")
    if champion_version == challenger.version:
        asks = ""  # it is the champion already
    return Gate(name, challenger.version, champion_version, tuple(checks), tuple(warnings), asks)


def _metric(
    metric: str, rules: Mapping[str, Any], challenger: Evidence, champion: Evidence | None
) -> Iterator[tuple[Check, list[str]]]:
    value = challenger.metrics.get(metric)
    bounds = {rule: bound for rule, bound in rules.items() if rule in ("at_least", "at_most")}
    for check in _bounds(metric, bounds, value):
        yield check, []
    for rule, asked in rules.items():
        if rule in bounds:
            continue
        if rule == "above" and asked == BASELINE:
            yield _above_baseline(metric, challenger), []
        elif rule == "not_below_champion_by":
            yield _not_below(metric, asked, challenger, champion)
        else:
            raise _unknown(f"{metric}.{rule}", "at_least, at_most, above, not_below_champion_by")


def baseline_ahead(metrics: Mapping[str, float], baseline: Mapping[str, float], split: str) -> str:
    """That a cheap model does better, with both figures; empty where it does not."""
    behind = [
        f"{name} {baseline[name]:.4f} against {value:.4f}"
        for name, value in metrics.items()
        if baseline.get(name, value) > value
    ]
    where = f" on the {split} rows" if split else ""
    return f"{CHEAP} is better than this model{where}: {', '.join(behind)}" if behind else ""


def _above_baseline(metric: str, challenger: Evidence) -> Check:
    """Whether chance alone would hardly put it so far ahead, by a paired bootstrap."""
    name = f"{metric} above {BASELINE}"
    floor = challenger.baseline.get(metric)
    expected = f"> {_figure(floor)}"
    ours, said = challenger.predictions, challenger.baseline_predicted
    if ours is None or len(said) != len(ours.ids):
        says = f"predictions of it and of {CHEAP} on the gate's rows are needed"
        return Check(name, False, expected, "no stored predictions", says)
    found = _compare(metric, 0.0, {}, ours, replace(ours, predicted=said))
    observed = f"{found.difference:+.4f}, {found.confidence:.0%} sure above {found.low:+.4f}"
    says = (
        f"version {challenger.version} ({found.candidate:.4f}) against {CHEAP}"
        f" ({found.reference:.4f}) on {_rows(found, challenger)}, which can tell a lead of about"
        f" {found.smallest_margin:.4f} from chance"
    )
    figures = {
        f"{metric}/above_baseline": found.difference,
        f"{metric}/above_baseline_lower_bound": found.low,
    }
    return Check(name, found.low > 0, expected, observed, says, figures)


def _not_below(
    metric: str, asked: Any, challenger: Evidence, champion: Evidence | None
) -> tuple[Check, list[str]]:
    """Paired-bootstrap non-inferiority on the same rows."""
    settings = dict(asked) if isinstance(asked, Mapping) else {"margin": asked}
    margin = float(settings["margin"])
    name = f"{metric} not_below_champion_by"
    expected = f"≥ champion − {margin:g}"
    if champion is None:
        return Check(name, True, expected, "no other champion to compare with"), []
    ours, theirs = challenger.predictions, champion.predictions
    if ours is None or theirs is None:
        says = "predictions of both on the gate's rows are needed"
        return Check(name, False, expected, "no stored predictions", says), []
    if not ours.same_rows(theirs):
        says = f"version {champion.version} was evaluated on other rows; evaluate it on these"
        return Check(name, False, expected, "not the same rows", says), []
    found = _compare(metric, margin, settings, ours, theirs)
    observed = f"{found.difference:+.4f}, {found.confidence:.0%} sure above {found.low:+.4f}"
    says = (
        f"version {challenger.version} ({found.candidate:.4f}) against {champion.version}"
        f" ({found.reference:.4f}) on {_rows(found, challenger)}, which can decide margins from"
        f" {found.smallest_margin:.4f} up"
    )
    warnings = []
    if not found.decidable:
        warnings.append(
            f"{metric}: the margin asked for, {margin:g}, is smaller than the smallest these"
            f" {found.rows} rows can decide, {found.smallest_margin:.4f}; even an equal model may"
            " be refused. Ask for a wider margin or give more gate rows."
        )
    figures = {
        f"{metric}/difference": found.difference,
        f"{metric}/lower_bound": found.low,
        f"{metric}/smallest_margin": found.smallest_margin,
    }
    return Check(name, found.non_inferior, expected, observed, says, figures), warnings


def _rows(found: Comparison, evidence: Evidence) -> str:
    """How many rows decided, which, and of how many texts where several have one."""
    assert evidence.predictions is not None
    texts = len(set(evidence.predictions.texts)) or found.rows
    of = f" of {texts:,} texts" if texts < found.rows else ""
    return " ".join(filter(None, (f"{found.rows:,}", evidence.split, "rows"))) + of


def _compare(
    metric: str,
    margin: float,
    settings: Mapping[str, Any],
    ours: Predictions,
    theirs: Predictions,
) -> Comparison:
    import numpy as np

    from models.catalogue import find
    from models.evaluation.bootstrap import compare

    answers = find("answers", ours.kind)()
    if metric not in answers.metrics:
        raise UnknownNameError(
            "promote.require",
            metric,
            f"a metric of {ours.kind} answers",
            answers.metrics,
        )
    return compare(
        answers,
        ours.labels,
        ours.predicted,
        theirs.predicted,
        metric=metric,
        margin=margin,
        confidence=float(settings.get("confidence", CONFIDENCE)),
        groups=np.array(ours.texts) if ours.texts else None,
        resamples=int(settings.get("resamples", RESAMPLES)),
        seed=int(settings.get("seed", SEED)),
    )


def _slices(rules: Mapping[str, Mapping[str, Any]], challenger: Evidence) -> Iterator[Check]:
    """Floors a slice must reach: ``{slice: {metric: {at_least: 0.5}}}``."""
    for slice_name, metrics in rules.items():
        found = [name for name in challenger.slices if name.split("/")[0] == slice_name]
        for name in [slice_name] if slice_name in challenger.slices else found or [slice_name]:
            for metric, bounds in metrics.items():
                value = challenger.slices.get(name, {}).get(metric)
                yield from _bounds(f"slice {name}: {metric}", bounds, value)


def _latency(rules: Mapping[str, Any], challenger: Evidence) -> Iterator[Check]:
    for rule, bound in rules.items():
        percentile, _, kind = rule.partition("_")
        if percentile not in ("p50", "p95") or kind != "at_most":
            raise _unknown(f"latency_ms.{rule}", "p50_at_most, p95_at_most")
        value = challenger.latency_ms.get(percentile)
        yield from _bounds(f"latency_ms {percentile}", {"at_most": bound}, value)


def _bounds(name: str, rules: Mapping[str, Any], value: float | None) -> Iterator[Check]:
    for rule, bound in rules.items():
        if rule == "at_least":
            fine = value is not None and value >= bound
            yield Check(f"{name} {rule}", fine, f"≥ {bound:g}", _figure(value))
        elif rule == "at_most":
            fine = value is not None and value <= bound
            yield Check(f"{name} {rule}", fine, f"≤ {bound:g}", _figure(value))
        else:
            raise _unknown(f"{name}.{rule}", "at_least, at_most")


def _figure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4g}"


def _unknown(place: str, known: str) -> RecipeError:
    return RecipeError(f"promote.require.{place} is not a rule. Known: {known}.")
