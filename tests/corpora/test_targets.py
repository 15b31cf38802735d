"""Lengths, copies and scripts of the texts that a model learns to write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.targets import measure_targets
from data_contracts.check import check
from data_contracts.suite import load_suite
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import rows, write

TEXT = "Two dogs run over the green grass."


@pytest.mark.parametrize(
    ("targets", "text", "language", "measures"),
    [
        (["Zwei Hunde laufen."], TEXT, "de", (18, 3, 3 / 7, 0.0, 1.0)),
        ([TEXT.upper()], TEXT, "de", (34, 7, 1.0, 1.0, 1.0)),
        (["The green grass grows."], TEXT, "en", (22, 4, 4 / 7, 0.75, 1.0)),
        # The longest, the shortest, the most copied and the least in script may be several.
        (["dogs", "两条狗 in the grass"], TEXT, "en", (16, 1, 6 / 7, 1.0, 10 / 13)),
        (["@@ !"], TEXT, "de", (4, 0, 0.0, 0.0, 1.0)),
        (["股市上涨"], "今日股市上涨，AI公司领先。", "zh", (4, 4, 4 / 11, 1.0, 1.0)),
        (["GDP"], "今日股市上涨", "zh", (3, 1, 1 / 6, 0.0, 0.0)),
        (["a"], "…", "en", (1, 1, 1.0, 0.0, 1.0)),
    ],
)
def test_targets_are_measured_by_words(
    targets: list[str], text: str, language: str, measures: tuple[float, ...]
):
    assert tuple(measure_targets(targets, text, language).values()) == pytest.approx(measures)


def test_rows_that_break_the_contract_are_told_by_their_ids(tmp_path: Path, dataset: Prepare):
    import pandas

    records = rows(60)
    for number, record in enumerate(records):
        record["label"] = [f"zqx summary {number}", f"the other one, {number}"]
    records[1]["label"] = "…"
    records[2]["label"] = "zqx " * 2000
    records[3]["label"] = "一二三四五六"
    records[4]["label"] = records[4]["text"]
    records[5]["label"] = ["", " "]
    write(tmp_path / "rows.jsonl", records)
    prepared = dataset(tmp_path / "rows.jsonl", answers="text")
    assert prepared.counts.quarantined == {"an answer without text": 1}
    assert json.loads(prepared.table()[0]["label"])[0].startswith("zqx summary")
    report = check(
        pandas.DataFrame(prepared.profile()), load_suite("targets"), subject="mine", parameters={}
    )
    failed = {result.id for result in report.results if result.status == "failed"}
    assert failed == {"target_present", "target_length_fits", "target_script_right", "copies_none"}
    assert set(report.quarantined) == {records[n]["id"] for n in (1, 2, 3)}
    assert "zqx" not in repr(report)


def test_other_answers_have_no_such_columns(tmp_path: Path, dataset: Prepare):
    write(tmp_path / "rows.jsonl", rows(60))
    assert "copy_rate" not in dataset(tmp_path / "rows.jsonl").profile()[0]
