"""``report`` finds a contract by the name of its source or step or by its path, and prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_contracts.report import to_html, to_markdown
from data_contracts.verdict import Report
from fourstage.command import main
from tasks.store.artifacts import Artifact, Findings, Store


def _held(home: Path, name: str, verdict: str, number: int = 0) -> Artifact:
    """A contract in the store with a report of no promise."""
    report = Report(
        name, "corpus", "0" * 64, 0.02, 7, (), verdict=verdict, reason=f"It is {verdict}."
    )

    def work(folder: Path) -> Findings:
        (folder / "report.md").write_text(to_markdown(report), encoding="utf-8")
        (folder / "report.html").write_text(to_html(report), encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(report.to_json()), encoding="utf-8")
        counts = dict.fromkeys(("read", "kept", "quarantined", "removed"), 7)
        return Findings({"verdict": verdict, "reason": report.reason, **counts})

    return Store(home).make("contract", f"contract {name}", {"n": number, "of": name}, work)[0]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    return tmp_path


def test_a_report_is_found_by_source_by_step_and_by_path(home: Path, capsys):
    contract = _held(home, "notes", "amber")
    page = contract.folder / "report.html"
    for named in ("notes", "contract notes", str(page), str(contract.folder)):
        assert main(["report", named]) == 0
        assert capsys.readouterr().out.startswith("# ! AMBER: The contract is kept, with warnings")
    assert main(["report", "notes", "--html"]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert main(["report", "notes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "amber"


def test_the_contract_used_last_is_the_one_of_its_name(home: Path, capsys):
    older = _held(home, "notes", "red")
    _held(home, "notes", "green", number=1)
    assert main(["report", "notes"]) == 0
    assert "GREEN" in capsys.readouterr().out
    Store(home).mark_used(older)
    assert main(["report", "notes"]) == 0
    assert "RED" in capsys.readouterr().out


def test_without_a_name_every_verdict_is_listed(home: Path, capsys):
    assert main(["report"]) == 0
    assert "no contract has been checked yet" in capsys.readouterr().out
    _held(home, "notes", "amber")
    _held(home, "tokens notes", "green")
    assert main(["report"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["contract", "notes", "tokens notes"]


def test_a_wrong_name_is_told_the_nearest(home: Path, capsys):
    _held(home, "notes", "amber")
    assert main(["report", "nodes"]) == 2
    assert "did you mean 'notes'?" in capsys.readouterr().err.lower()
    assert main(["report", str(home)]) == 2  # a folder without a report
