"""The outcome of a check: a result for each promise, the quarantined rows, and a verdict.

- green: every promise that stops the run or warns is kept; rows may be quarantined, within the
  tolerance.
- amber: a warning is broken. The data may be used; someone should look at them.
- red: too many rows are quarantined, a critical promise about the table is broken, or a promise
  could not be evaluated (a column is missing, for example), so that nothing is known.

It contains only ids, counts, numbers and labels, never text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fourstage.errors import ContractViolation, listed

Status = Literal["passed", "failed", "not_evaluated", "no_reference"]
Verdict = Literal["green", "amber", "red"]

NUM_SHOWN_IDS = 20
JOINED = " + "  # between the names of suites that are one contract
NO_ROW_LEFT = "there is no row to look at"
NO_REFERENCE = "no reference yet: no run of this source has finished before"
_NUM_SHOWN_RESULTS = 8


@dataclass(frozen=True)
class Result:
    """The result of one promise.

    Args:
        id: The expectation's id.
        says: The promise in one sentence.
        severity: `critical`, `warning` or `info`.
        level: `row` or `table`.
        status: `passed`, `failed`, `not_evaluated` if the result is unknown, or `no_reference` if
            there is nothing to compare with yet, which breaks nothing.
        expected: The promise as a phrase with its numbers.
        observed: The observation, or why there is none.
        failed_count: Number of rows that break it; 0 for promises that no single row can break.
        failed_ids: Ids of the first of them, at most `NUM_SHOWN_IDS`.
        remedy: What to do if it is broken.
        value: The result as one number: the share of rows that break it, or the observed value.
        drift: Whether it compares with an earlier run.
    """

    id: str
    says: str
    severity: str
    level: str
    status: Status
    expected: str
    observed: str
    failed_count: int = 0
    failed_ids: tuple[str, ...] = ()
    remedy: str = ""
    value: float | None = None
    drift: bool = False


@dataclass(frozen=True)
class Report:
    """The outcome of checking one profile against one suite.

    Args:
        subject: What was checked: the name of a source, with its stage if that matters.
        suite: The suite's name.
        suite_digest: SHA-256 of its promises.
        tolerance: Share of rows that may be quarantined, 0-1.
        rows: Number of rows checked: those of the profile, and records that could not be read.
        results: One per promise, in the order of the suite.
        quarantined: Location → reason of unreadable records; then row id → ids of the critical
            row promises that the row breaks, in the order of the profile.
        num_quarantined_rows: Number of quarantined rows.
        verdict: See the module.
        reason: The verdict in one sentence.
        removed: Reason → number of records that a rule removed before the check: duplicates,
            evaluation texts… No promise is about them.
        answers: What is counted of the answers (a label, the mean…) → split → the number, written
            out.
        mended: What was corrected in answers → in how many rows (`count`), and the ids of the first
            (`first_ids`).
        pictures: What is counted of the pictures that rows name → how many.
    """

    subject: str
    suite: str
    suite_digest: str
    tolerance: float
    rows: int
    results: tuple[Result, ...]
    quarantined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    num_quarantined_rows: int = 0
    verdict: Verdict = "green"
    reason: str = ""
    removed: Mapping[str, int] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mended: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pictures: Mapping[str, int] = field(default_factory=dict)

    @property
    def num_removed(self) -> int:
        """Records that rules removed."""
        return sum(self.removed.values())

    @property
    def num_kept(self) -> int:
        """Rows that a stage may read: neither quarantined nor removed."""
        return self.rows - self.num_quarantined_rows

    @property
    def num_read(self) -> int:
        """Records of the source: kept, quarantined and removed."""
        return self.rows + self.num_removed

    @property
    def broken(self) -> tuple[Result, ...]:
        """The results that make the report red, including those that exceed the tolerance."""
        stopping = tuple(
            result
            for result in self.results
            if result.status == "not_evaluated"
            or (
                result.status == "failed"
                and result.severity == "critical"
                and (result.level == "table" or self.beyond_tolerance)
            )
        )
        if self.verdict != "red":
            return ()
        return tuple(sorted(stopping, key=lambda result: result.status))  # failed first

    @property
    def beyond_tolerance(self) -> bool:
        """Whether more rows are quarantined than the suite tolerates."""
        return _is_beyond(self.num_quarantined_rows, self.rows, self.tolerance)

    @property
    def quarantine_reasons(self) -> dict[str, int]:
        """Expectation id → rows it quarantines, most first; a row may count under several."""
        counts = Counter(reason for reasons in self.quarantined.values() for reason in reasons)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def to_json(self) -> dict[str, Any]:
        """The whole report as deterministic plain JSON."""
        plain = asdict(self)
        plain["results"] = [
            {**result, "failed_ids": list(result["failed_ids"])} for result in plain["results"]
        ]
        plain["quarantined"] = {row_id: list(ids) for row_id, ids in self.quarantined.items()}
        return plain

    @classmethod
    def from_json(cls, raw: Any) -> Report:
        """The report written by `to_json`.

        Raises:
            ContractViolation: `raw` is not a report.
        """
        try:
            plain = dict(raw)
            results = tuple(
                Result(**{**item, "failed_ids": tuple(item["failed_ids"])})
                for item in plain.pop("results")
            )
            quarantined = {key: tuple(ids) for key, ids in plain.pop("quarantined").items()}
            return cls(**plain, results=results, quarantined=quarantined)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractViolation(
                "contract report: expected the JSON of a report of this version, got something "
                f"else ({type(error).__name__}); run the check again."
            ) from error


def judge(
    results: tuple[Result, ...], *, rows: int, num_quarantined_rows: int, tolerance: float
) -> tuple[Verdict, str]:
    """The verdict on a set of results, and the sentence that explains it."""
    unknown = [result for result in results if result.status == "not_evaluated"]
    failed = [result for result in results if result.status == "failed"]
    tables = [
        result for result in failed if result.severity == "critical" and result.level == "table"
    ]
    warnings = [result for result in failed if result.severity == "warning"]
    share = f"{num_quarantined_rows:,} of {rows:,} rows ({percent(num_quarantined_rows, rows)})"
    tolerated = f"{tolerance * 100:g} %"
    reasons = []
    if _is_beyond(num_quarantined_rows, rows, tolerance):
        reasons.append(f"{share} are quarantined where at most {tolerated} may be")
    if tables:
        reasons.append(f"broken for the table as a whole: {_names(tables)}")
    without_rows = [result for result in unknown if result.observed == NO_ROW_LEFT]
    unknown = [result for result in unknown if result.observed != NO_ROW_LEFT]
    if unknown:
        reasons.append(f"could not be evaluated: {_names(unknown)}")
    if without_rows:
        reasons.append(f"no row is left to check {len(without_rows)} further promises on")
    if reasons:
        return "red", _sentence("; ".join(reasons))
    aside = f"; {share} quarantined, up to {tolerated} may be" if num_quarantined_rows else ""
    if waiting := sum(result.status == "no_reference" for result in results):
        aside += f"; {waiting} {'waits' if waiting == 1 else 'wait'} for a reference"
    if warnings:
        return "amber", _sentence(f"usable, with warnings: {_names(warnings)}{aside}")
    return "green", _sentence(f"every promise is kept{aside}")


def _is_beyond(num_quarantined: int, rows: int, tolerance: float) -> bool:
    # Divided, because 0.29 * 100 is less than 29 for a computer, but 29 / 100 is 0.29.
    return rows > 0 and num_quarantined / rows > tolerance


def raise_if_red(report: Report, where: str = "") -> None:
    """Raise an error if the contract is broken.

    Args:
        report: The outcome of the check.
        where: Path or address of the whole report; empty if it is not stored.

    Raises:
        ContractViolation: The verdict is red; the message holds every broken promise with what was
            expected, what was observed, how many rows and which, and what to do.
    """
    if report.verdict != "red":
        return
    lines = [f"{report.subject}: the contract {report.suite!r} is broken. {report.reason}"]
    promises = {result.id for result in report.results}
    for reason, count in report.quarantine_reasons.items():
        if reason not in promises and report.beyond_tolerance:
            places = [place for place, why in report.quarantined.items() if reason in why]
            lines.append(f"  {reason}: {ids_text(places[:NUM_SHOWN_IDS], count, shown=5)}")
    # If all rows are in quarantine, only the cause matters, not the promises left without rows.
    broken = [result for result in report.broken if result.observed != NO_ROW_LEFT]
    for result in broken[:_NUM_SHOWN_RESULTS]:
        state = "could not be evaluated" if result.status == "not_evaluated" else "broken"
        lines.append(f"  {result.id} ({result.severity}, {state}): {result.says}")
        lines.append(f"    expected: {result.expected}")
        lines.append(f"    observed: {result.observed}")
        if result.failed_count:
            lines.append(f"    rows: {ids_text(result.failed_ids, result.failed_count, shown=5)}")
        if result.status == "not_evaluated":
            lines.append("    do: give the source the contract that fits it ('contract: NAME').")
        elif result.remedy:
            lines.append(f"    do: {result.remedy}")
    if len(broken) > _NUM_SHOWN_RESULTS:
        lines.append(f"  … and {len(broken) - _NUM_SHOWN_RESULTS} more in the report")
    if where:
        lines.append(f"  The whole report: {where}")
    files = " or ".join(f"suites/{name}.json" for name in report.suite.split(JOINED))
    lines.append(
        f"  Mend the data, or change the promise in a {files} of your project folder, and run the "
        "same command again."
    )
    raise ContractViolation("\n".join(lines))


def ids_text(ids: Sequence[str], count: int, shown: int = NUM_SHOWN_IDS) -> str:
    """The first ids and the number of further ones, escaped for terminals and pages."""
    first = [printable(row_id) for row_id in ids[:shown]]
    more = count - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more > 0 else "")


def printable(text: str, longest: int = 80) -> str:
    """User-supplied text on one line, with control and direction characters escaped."""
    clean = "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}"
        for character in text[: longest + 1]
    )
    return clean if len(text) <= longest else clean[:longest] + "…"


def percent(part: int, whole: int) -> str:
    """A share for people: never 0 % of something, never 100 % if anything is left."""
    if whole == 0 or part == 0:
        return "0 %"
    share = 100 * part / whole
    if part == whole or 0.01 <= share <= 99.99:
        return f"{float(f'{share:.3g}') if share < 99 else round(share, 2):g} %"
    return "< 0.01 %" if share < 0.01 else "> 99.99 %"


def percent_text(share: float) -> str:
    """A share in per cent, with three significant digits."""
    return f"{100 * share:.3g} %"


def _names(results: list[Result]) -> str:
    return listed([result.id for result in results], 5)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
