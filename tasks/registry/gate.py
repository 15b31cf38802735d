"""The gate: decides whether a version may become the champion, with a reason for every check.

The decision is a pure function.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fourstage.errors import RecipeError, UnknownNameError
from models.evaluation import rivals
from models.metrics import (
    LOWER_IS_BETTER,
    OF_LIKELIHOOD,
    PERPLEXITY,
    PERPLEXITY_A_WORD,
    is_better,
)

if TYPE_CHECKING:
    from models.evaluation.bootstrap import Comparison

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 17
BASELINE = "cheap_baseline"
ABOVE, NOT_BELOW_BASELINE = "above", "not_below"  # of the cheap baseline
NOT_BELOW, NOT_ABOVE = "not_below_champion_by", "not_above_champion_by"


@dataclass(frozen=True)
class Predictions:
    """A model's predictions on the gate's rows, in order, without texts.

    Attributes:
        ids: Id of each row.
        labels: Correct answer for each row.
        predicted: The model's answer for each row.
        texts: Number of each row's text, shared by rows of the same text; empty if all differ.
        kind: Kind of answer; a file in ``models/answers``.
        digests: Digest of what each row asks; empty for evidence from before they were kept.
    """

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    predicted: tuple[str, ...]
    texts: tuple[int, ...] = ()
    kind: str = "label"
    digests: tuple[str, ...] = ()

    def same_rows(self, other: Predictions) -> bool:
        """Whether both cover the same rows, which a paired comparison requires.

        Ids do not suffice: those of rows without ids are lines of a file, whose text may change.
        """
        known = self.digests and other.digests
        same = not known or self.digests == other.digests
        return same and self.ids == other.ids and self.labels == other.labels


@dataclass(frozen=True)
class Evidence:
    """Evidence about one version.

    Attributes:
        version: Its number in the registry.
        metrics: Metrics on the gate's rows.
        predictions: Predictions on the gate's rows.
        baseline: The cheap baseline's metrics on the same rows.
        baseline_predicted: The cheap baseline's labels for these rows; empty if not stored.
        slices: Metrics by slice.
        forgetting: Rise of held-out loss by corpus since the stage that learned it.
        latency_ms: ``p50`` and ``p95`` of one prediction.
        size_mb: Size of the packaged model.
        split: Split of the gate's rows: ``dev`` or ``test``.
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

    @property
    def rival(self) -> str:
        """What the cheap baseline is called."""
        return rivals.names_of([self.predictions.kind] if self.predictions else [])[0]


@dataclass(frozen=True)
class Check:
    """One check of the gate.

    Attributes:
        name: Name, such as ``micro_f1 at_least``.
        passed: Whether the requirement is met.
        expected: The requirement.
        observed: The observed value.
        says: An explanation, where the figures need one.
        figures: Observed numbers by name, such as ``micro_f1/difference``.
    """

    name: str
    passed: bool
    expected: str
    observed: str
    says: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Gate:
    """A gate decision and its reasons.

    Attributes:
        name: The registered model.
        version: The version under decision.
        champion_version: The champion it was compared with; None without one.
        checks: All checks.
        warnings: Notes that do not affect the decision.
        asks: Why approval is needed even if every check passed; empty if it is not.
    """

    name: str
    version: int
    champion_version: int | None
    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()
    asks: str = ""

    @property
    def decision(self) -> str:
        """``promote``, ``refuse``, or ``wait`` for approval."""
        if self.failed:
            return "refuse"
        return "wait" if self.asks else "promote"

    @property
    def failed(self) -> list[Check]:
        """The failed checks."""
        return [check for check in self.checks if not check.passed]

    @property
    def reason(self) -> str:
        """The reason of the decision, in one line."""
        if not self.failed:
            passed = f"all {len(self.checks)} checks passed"
            return f"{passed}, but {self.asks}" if self.asks else passed
        return "; ".join(
            f"{check.name}: expected {check.expected}, found {check.observed}"
            + (f" ({check.says})" if check.says else "")
            for check in self.failed
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for reports and ``run --json``."""
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
    forgetting_on: Sequence[str] = (),
    contracts: Mapping[str, str] | None = None,
    lineage_faults: Sequence[str] = (),
    overlap: tuple[str, int] | None = None,
    asks: str = "",
) -> Gate:
    """Check a version against a recipe's requirements.

    Args:
        name: The registered model.
        requirements: ``promote.require`` of the recipe.
        challenger: Evidence about the version.
        champion: Evidence about the champion; None if there is none or it can't be read.
        champion_version: The champion's number, if ``champion`` is None.
        champion_fault: Why the champion can't be read; empty if it can.
        forgetting_on: Corpora on which forgetting has to be measured.
        contracts: Verdict (``green``, ``amber``, ``red``) of each contract in the lineage.
        lineage_faults: Faults of its lineage.
        overlap: Policy, and number of evaluation rows that are also in the training text.
        asks: Why approval is needed; empty if it is not.

    Raises:
        RecipeError: A requirement or rule does not exist.
    """
    if champion is not None:
        champion_version = champion.version
        if champion.version == challenger.version:
            champion = None  # it would be compared with itself
    checks: list[Check] = []
    warnings: list[str] = []
    if ahead := baseline_ahead(
        challenger.metrics, challenger.baseline, challenger.split, challenger.rival
    ):
        warnings.append(ahead)
    for subject, rules in requirements.items():
        if subject == "slices":
            checks += _slices(rules, challenger)
        elif subject == "forgetting":
            checks += _forgetting(rules, challenger, forgetting_on)
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
        if rule == ABOVE and asked == BASELINE:
            yield _above_baseline(metric, challenger), []
        elif rule == NOT_BELOW_BASELINE and asked == BASELINE:
            yield _not_below_baseline(metric, challenger), []
        elif rule == (NOT_ABOVE if metric in LOWER_IS_BETTER else NOT_BELOW):
            yield _not_worse(metric, rule, asked, challenger, champion)
        else:
            known = "at_least, at_most, above, not_below, not_below_champion_by"
            raise _unknown(f"{metric}.{rule}", f"{known}, not_above_champion_by")


def baseline_ahead(
    metrics: Mapping[str, float], baseline: Mapping[str, float], split: str, called: str
) -> str:
    """Warning that the cheap baseline is better, with both figures; empty if it is not."""
    behind = [
        f"{name} {baseline[name]:.4f} against {value:.4f}"
        for name, value in metrics.items()
        if is_better(name, baseline.get(name, value), value)
    ]
    where = f" on the {split} rows" if split else ""
    return f"{called} is better than this model{where}: {', '.join(behind)}" if behind else ""


def _above_baseline(metric: str, challenger: Evidence) -> Check:
    """Check for a significant lead over the cheap baseline, by a paired bootstrap."""
    name = f"{metric} {ABOVE} {BASELINE}"
    floor = challenger.baseline.get(metric)
    expected = f"> {_figure(floor)}"
    ours, said = challenger.predictions, challenger.baseline_predicted
    if ours is None or len(said) != len(ours.ids):
        says = f"predictions of it and of {challenger.rival} on the gate's rows are needed"
        return Check(name, False, expected, "no stored predictions", says)
    found = _compare(metric, 0.0, {}, ours, replace(ours, predicted=said))
    observed = _sure(found, "above", found.low)
    says = (
        f"version {challenger.version} ({found.candidate:.4f}) against {challenger.rival}"
        f" ({found.reference:.4f}) on {_rows(found, challenger)}, which can tell a lead of about"
        f" {found.smallest_margin:.4f} from chance"
    )
    figures = {
        f"{metric}/above_baseline": found.difference,
        f"{metric}/above_baseline_lower_bound": found.low,
    }
    return Check(name, found.low > 0 and found.enough, expected, observed, says, figures)


def _sure(found: Comparison, side: str, end: float) -> str:
    if found.enough:
        return f"{found.difference:+.4f}, {found.confidence:.0%} sure {side} {end:+.4f}"
    return (
        f"{found.difference:+.4f}; {found.groups} texts are too few to be"
        f" {found.confidence:.0%} sure of any difference"
    )


def _not_below_baseline(metric: str, challenger: Evidence) -> Check:
    """Check that the cheap baseline's score is not the better one, without a test."""
    floor, value = challenger.baseline.get(metric), challenger.metrics.get(metric)
    fine = floor is not None and value is not None and value >= floor
    says = f"{challenger.rival} gets {_figure(floor)}"
    return Check(
        f"{metric} {NOT_BELOW_BASELINE} {BASELINE}",
        fine,
        f"≥ {_figure(floor)}",
        _figure(value),
        says,
    )


def _not_worse(
    metric: str,
    rule: str,
    asked: float | Mapping[str, Any],
    challenger: Evidence,
    champion: Evidence | None,
) -> tuple[Check, list[str]]:
    """Check non-inferiority to the champion, by a paired bootstrap on the same rows."""
    settings = dict(asked) if isinstance(asked, Mapping) else {"margin": asked}
    margin = float(settings["margin"])
    name = f"{metric} {rule}"
    expected = f"≤ champion + {margin:g}" if rule == NOT_ABOVE else f"≥ champion − {margin:g}"
    if champion is None:
        return Check(name, True, expected, "no other champion to compare with"), []
    ours, theirs = challenger.predictions, champion.predictions
    if ours is None or theirs is None:
        says = "predictions of both on the gate's rows are needed"
        return Check(name, False, expected, "no stored predictions", says), []
    if not ours.same_rows(theirs):
        says = f"version {champion.version} was evaluated on other rows; evaluate it on these"
        return Check(name, False, expected, "not the same rows", says), []
    if metric in OF_LIKELIHOOD and (fault := _unlike(metric, ours, theirs, champion.version)):
        return Check(name, False, expected, "not the same texts read", fault), []
    found = _compare(metric, margin, settings, ours, theirs)
    if math.isnan(found.difference):
        says = (
            f"both versions have to be evaluated on these rows with {metric} in evaluate.metrics; a"
            " packaged model that is asked again gives none. `fourstage promote NAME --version"
            f" {challenger.version} --force` goes on without"
        )
        return Check(name, False, expected, "not defined", says), []
    side, end = ("above", found.low) if rule == NOT_BELOW else ("below", found.high)
    observed = _sure(found, side, end)
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
        f"{metric}/{'lower' if rule == NOT_BELOW else 'upper'}_bound": end,
        f"{metric}/smallest_margin": found.smallest_margin,
    }
    return Check(name, found.non_inferior, expected, observed, says, figures), warnings


def _unlike(metric: str, ours: Predictions, theirs: Predictions, version: int) -> str:
    """Why perplexities of two versions can't be compared; empty if they can."""
    from models.answers.text import read_of

    both = [[read_of(answer, metric) for answer in each.predicted] for each in (ours, theirs)]
    if any(None in each for each in both) or both[0] == both[1]:
        return ""
    if metric == PERPLEXITY:
        return (
            f"version {version} has read other tokens; require {PERPLEXITY_A_WORD}, or where words"
            " have no blanks a metric of texts such as chrf"
        )
    return f"version {version} has read targets cut otherwise; fine-tune with its target_length"


def _rows(found: Comparison, evidence: Evidence) -> str:
    """Number and split of the compared rows, and of their texts if rows share texts."""
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
    """Check bounds on slices: ``{slice: {metric: {at_least: 0.5}}}``."""
    for slice_name, metrics in rules.items():
        found = [name for name in challenger.slices if name.split("/")[0] == slice_name]
        for name in [slice_name] if slice_name in challenger.slices else found or [slice_name]:
            for metric, bounds in metrics.items():
                value = challenger.slices.get(name, {}).get(metric)
                yield from _bounds(f"slice {name}: {metric}", bounds, value)


def _forgetting(
    rules: Mapping[str, Any], challenger: Evidence, corpora: Sequence[str]
) -> Iterator[Check]:
    """Check bounds on the largest rise, and that it was measured on each corpus."""
    found = challenger.forgetting
    yield from _bounds("forgetting", rules, max(found.values(), default=None))
    for corpus in corpora:
        if found and corpus not in found:
            yield from _bounds(f"forgetting on {corpus}", rules, None)


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
