"""The page and the Markdown that people read."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from data_contracts.report import state, to_html, to_markdown
from data_contracts.verdict import Report, Result

NASTY = "<script>alert(1)</script>|`*\x1b[2J\u202e"


def result(id_: str, **changes) -> Result:
    values = {
        "says": f"{id_} holds.",
        "severity": "critical",
        "level": "row",
        "status": "passed",
        "expected": "n ≤ 5",
        "observed": "all 1,000 rows keep it",
        "remedy": f"Mend {id_}.",
    }
    return Result(id=id_, **(values | changes))


@pytest.fixture
def report() -> Report:
    failed = {"status": "failed", "observed": "3 of 1,000 rows (0.3 %) break it", "failed_count": 3}
    ids = ("a", "b", NASTY)
    return Report(
        subject="trial_reports",
        suite="corpus",
        suite_digest="0123456789abcdef" * 4,
        tolerance=0.001,
        rows=1000,
        results=(
            result("fine"),
            result("noted", severity="info", **failed),
            result("warned", severity="warning", **failed),
            result("aside", **failed, failed_ids=ids),
            result("unknown", status="not_evaluated", observed="the profile has no column 'n'"),
            result("table", level="table", **failed),
        ),
        quarantined={"a": ("aside",), "b": ("aside",), NASTY: ("aside",)},
        num_quarantined_rows=3,
        verdict="red",
        reason="3 of 1,000 rows (0.3 %) are quarantined where at most 0.1 % may be.",
        removed={"near duplicate": 40, "empty": 1},
        answers={"person": {"train": "1,660", "test": "429"}, NASTY: {"train": "7"}},
        mended={"answer moved": {"count": 12, "first_ids": ["q7", NASTY]}},
        pictures={"read": 5020, "with more regions than are kept": 3},
    )


@pytest.mark.parametrize("render", [to_html, to_markdown])
def test_answers_are_counted_by_split(report, render):
    text = render(report)
    section = text[text.index("Answers<" if render is to_html else "## Answers") :]
    words = ["Answers", "train", "test", "person", "1,660", "429", "Mended", "answer moved", "12"]
    words += ["q7", "10 more"]
    assert words_in_order(section, words)
    bare = render(replace(report, answers={}, mended={}, pictures={}))
    assert not {"Answers", "Mended", "Pictures"} & set(re.findall(r"\w+", bare))


def test_the_table_of_answers_has_a_row_a_line(report):
    lines = to_markdown(report).split("\n")
    start = lines.index("## Answers")
    assert lines[start + 2 : start + 5] == [
        "| | train | test |",
        "| --- | ---: | ---: |",
        "| person | 1,660 | 429 |",
    ]


def words_in_order(text: str, words: list[str]) -> bool:
    places = [text.index(word) for word in words]
    return places == sorted(places)


def test_each_result_has_one_word(report):
    assert [state(item) for item in report.results] == [
        "kept",
        "noted",
        "warning",
        "quarantined",
        "not evaluated",
        "broken",
    ]


@pytest.mark.parametrize("render", [to_html, to_markdown])
def test_it_says_everything_worst_first(report, render):
    text = render(report).replace("\N{NO-BREAK SPACE}", " ")
    for part in ("trial_reports", "corpus", "1,000", "997", "0.1 %", "0.3 %", "0123456789ab"):
        assert part in text
    assert report.reason in text
    body = text[text.index("Promises") :]
    assert words_in_order(
        body, [f"{name} holds" for name in ("table", "unknown", "aside", "warned", "noted", "fine")]
    )
    assert "Mend aside." in text
    assert "Mend fine." not in text


@pytest.mark.parametrize("render", [to_html, to_markdown])
def test_what_was_read_is_kept_or_quarantined_or_removed(report, render):
    assert report.num_read == report.num_kept + report.num_quarantined_rows + report.num_removed
    text = render(report)
    assert words_in_order(text, ["1,041", "997", "Promises", "Removed by rule", "near duplicate"])
    assert words_in_order(text[text.index("near duplicate") :], ["40", "empty", "1"])
    assert "Removed by rule" not in render(replace(report, removed={}))


@pytest.mark.parametrize("render", [to_html, to_markdown])
def test_the_same_report_is_the_same_text(report, render):
    assert render(report) == render(report)
    assert render(Report.from_json(report.to_json())) == render(report)


@pytest.mark.parametrize("render", [to_html, to_markdown])
def test_no_value_can_break_out(report, render):
    words = dict.fromkeys(("says", "remedy", "expected", "observed"), NASTY)
    nasty = result(NASTY, status="failed", **words)
    report = replace(
        report,
        subject=NASTY,
        suite=NASTY,
        reason=NASTY,
        results=(*report.results, nasty),
        quarantined=report.quarantined | {"c": (NASTY,)},
        removed={NASTY: 1},
    )
    text = render(report)
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script" in text


def test_markdown_cells_stay_cells(report):
    for line in to_markdown(report).splitlines():
        if line.startswith("| ✕ broken") or ("aside" in line and line.startswith("| ⊘")):
            assert len(re.findall(r"(?<!\\)\|", line)) == 7


def test_the_page_needs_nothing_else(report):
    page = to_html(report)
    assert not re.search(r"<script|<link|<img|<iframe|\burl\(|@import|https?://|\son\w+=", page)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


class Balance(HTMLParser):
    """Counts what is open, as browsers forgive and readers of the source do not."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed(report):
    parser = Balance()
    parser.feed(to_html(report))
    assert parser.open == []


def test_without_quarantine_there_is_no_such_section(report):
    calm = Report(
        subject="s",
        suite="corpus",
        suite_digest="0" * 64,
        tolerance=0.0,
        rows=0,
        results=(result("fine"),),
        verdict="green",
        reason="Every promise is kept.",
    )
    assert "<h2>Quarantine" not in to_html(calm)
    assert "## Quarantine" not in to_markdown(calm)
    assert "<h2>Quarantine" in to_html(report)
    assert "The contract is kept" in to_html(calm)


@pytest.mark.parametrize("render", [to_html, to_markdown])
def test_pictures_are_counted(report, render):
    text = render(report)
    section = text[text.index("Pictures<" if render is to_html else "## Pictures") :]
    assert words_in_order(section, ["read", "5,020", "with more regions than are kept", "3"])
