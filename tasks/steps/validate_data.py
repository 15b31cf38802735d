"""Check documents, rows or tokens against their contract before a stage may read them."""

from __future__ import annotations

import json
from pathlib import Path

from fourstage.digests import write_atomically
from fourstage.errors import ContractViolation
from tasks.steps.durable import durable
from tasks.store.artifacts import Findings, Input
from tasks.store.kept import QUARANTINED
from tasks.store.steps import Bound


@durable()
def validate_data(step: Bound, folder: Path) -> Findings:
    """Check a profile against its suite and write the report, whatever the verdict.

    A red verdict is recorded, not raised, so that the report stays readable after the run has
    stopped. `raise_if_broken` stops the flow.
    """
    import pandas

    from corpora.answer_counts import answer_table
    from corpora.picture_counts import picture_table
    from data_contracts.check import check
    from data_contracts.report import to_html, to_markdown

    data = step.inputs["data"]
    profile = pandas.read_parquet(data.path("profile.parquet"))
    suite = step.step.given["suite"]
    counts = data.facts.get("counts") or {}
    reference = step.step.given.get("reference")
    report = check(
        profile,
        suite,
        subject=step.step.settings["subject"],
        parameters=_parameters(step),
        unread=_unread(data),
        removed=counts.get("removed"),
        answers=answer_table(counts),
        mended=counts.get("mended"),
        pictures=picture_table(counts),
        reference=reference.kept() if reference else None,
    )
    assert report.num_read == counts.get("read", report.rows), (report.num_read, counts)
    (folder / "report.json").write_text(json.dumps(report.to_json(), indent=1), encoding="utf-8")
    (folder / "report.md").write_text(to_markdown(report), encoding="utf-8")
    (folder / "report.html").write_text(to_html(report), encoding="utf-8")
    write_atomically(
        folder / QUARANTINED,
        json.dumps({row: list(reasons) for row, reasons in sorted(report.quarantined.items())}),
        mode=0o600,
    )
    return Findings(
        {
            "verdict": report.verdict,
            "reason": report.reason,
            "rows": report.rows,
            "read": report.num_read,
            "kept": report.num_kept,
            "quarantined": report.num_quarantined_rows,
            "removed": report.num_removed,
        }
    )


def _unread(data: Input) -> dict[str, str]:
    """Reason for each unreadable record, by location; empty for tokens."""
    if "rejected.jsonl" not in data.outputs:
        return {}
    with open(data.path("rejected.jsonl"), encoding="utf-8") as stream:
        records = list(map(json.loads, stream))
    unread: dict[str, str] = {}
    for record in records:
        if record["severity"] == "quarantined":
            place, times = record["location"], 1
            while place in unread:  # two members of an archive may share a name
                times += 1
                place = f"{record['location']}~{times}"
            unread[place] = record["reason"]
    return unread


def _parameters(step: Bound) -> dict:
    """Parameters of the suite: the label set, and the recipe's rule on overlap.

    Raises:
        ContractViolation: The head needs classes, but the answers are not labels.
    """
    data, settings = step.inputs["data"], step.step.settings
    if data.kind != "dataset":
        return {}
    kind = data.facts["answers"]
    if kind == "label":
        return {"labels": data.facts["labels"], **settings["parameters"]}
    if settings["classes"]:
        raise ContractViolation(
            f"{settings['subject']}: expected one label per row, got answers of the kind {kind!r}, "
            "which this head or a probe can't learn; choose a source with `answers: label`."
        )
    # In the profile the kind takes the place of a label, should a suite of the user's read it.
    return {"labels": [kind], "labels_at_least": 1, **settings["parameters"]}
