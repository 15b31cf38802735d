"""What a user meets in the first hour: each mistake is named, with its place and what to do.

All commands run in one process with one home; what is wrong with a recipe is said before any work,
what is wrong with data when it is read. No message, log, page or database holds a user's text: the
canary stands in every document and row.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pytest

from tests.flows.own_project import CANARY, Project, document, recipe, row, stages
from tests.flows.person import Answer, Listener, Person

NEXT_WORD = """
NEEDS = ("causal",)
PROVIDES = ("token_logits",)
CHOOSES = 1
PREPARES = False


class NextWord:
    \"\"\"An objective that no bidirectional network can have.\"\"\"
"""


@dataclass
class Desk:
    """A project, a home, and the process that answers."""

    project: Project
    person: Person
    listener: Listener

    def runs(self, *, text: str | None = None, name: str = "wrong", **changes: Any) -> Answer:
        """Run a recipe, written from values or as it stands."""
        path = self.project.recipe(recipe(name, **changes))
        if text is not None:
            path.write_text(text, encoding="utf-8")
        return self.listener.types("run", str(path), "--json")

    def runs_on(self, name: str, files: str, content: bytes | None, **source: Any) -> Answer:
        """Run one stage on a corpus of one file."""
        if content is not None:
            (self.project.folder / "data" / files).write_bytes(content)
        fields = {"fields": {"text": "text"}} if "jsonl" in files else {}
        self.project.source(name, files=[f"data/{files}"], **{**fields, **source})
        return self.runs(name=f"on-{name}", **only_general(corpora={name: 1.0}))


def only_general(**changes: Any) -> dict[str, Any]:
    """A recipe's keys for one stage only."""
    return {
        "stages": [{**stages()[0], **changes}],
        "evaluate": None,
        "promote": None,
        "tokenizer": {"vocabulary_size": 400},
    }


@pytest.fixture(scope="module")
def desk(person: Callable[..., Person], project: Project) -> Iterator[Desk]:
    (project.folder / "objectives").mkdir()
    (project.folder / "objectives" / "next_word.py").write_text(NEXT_WORD)
    user = person(project.folder)
    listener = Listener(user)
    yield Desk(project, user, listener)
    listener.close()


def refused(answer: Answer, code: int, *patterns: str) -> None:
    """It ended with a code and a message that says all of it, and with nothing else."""
    assert answer.code == code, answer.told()
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert "internal error" not in answer.err
    assert CANARY not in answer.err.casefold()
    for pattern in patterns:
        assert re.search(pattern, answer.err), f"no {pattern!r} in\n{answer.told()}"


def changed(stage: str, **settings: Any) -> dict[str, Any]:
    return {"stages": stages(**{stage: settings})}


# Recipes: exit 2, before any work


def test_mistakes_in_a_recipe_are_told_before_any_work(desk: Desk):
    place = r"recipes/wrong\.yaml"
    refused(
        desk.runs(**changed("general", budgt={"steps": 5})),
        2,
        place + r".*stages\[0\].*'budgt'.*did you mean 'budget'\?",
    )
    refused(
        desk.runs(**changed("domain", budget={"steps": "many"})),
        2,
        place + r": stages\[1\]\.budget\.steps: expected a whole number",
        "got the text 'many'",
    )
    refused(
        desk.runs(**changed("general", optimizer={"adamw": {"peak_learning_rate": "1e-4"}})),
        2,
        place + r": stages\[0\]\.optimizer\.adamw\.peak_learning_rate",
        r"1e-4.*1\.0e-4",
    )
    refused(
        desk.runs(**changed("general", objectives={"masked_ml": {}})),
        2,
        place + r": stages\[0\]\.objectives: 'masked_ml'.*did you mean 'masked_lm'\?",
    )
    refused(
        desk.runs(**changed("general", objectives={"next_word": {}})),
        2,
        place + r".*next_word.*causal.*bert",
    )
    refused(
        desk.runs(**changed("general", corpora={"note": 1.0})),
        2,
        place + r": stages\[0\]\.corpora: 'note'.*did you mean 'notes'\?",
    )
    refused(
        desk.runs(**changed("general", sequence_length=1024)),
        2,
        place + r": stages\[0\].*1,?024.*512",
    )
    refused(desk.runs(family="brt"), 2, place + r": family: 'brt'.*did you mean 'bert'\?")
    refused(desk.runs(seed=True), 2, place + r": seed: expected a whole number")
    refused(desk.runs(text=""), 2, place)
    refused(desk.runs(text="name: a\nname: b\n"), 2, place, "name", "line 2|twice")
    refused(desk.runs(text="name: [a\n"), 2, place, "line")
    refused(desk.runs(text="- a\n- b\n"), 2, place, "expected a mapping")
    (desk.project.folder / "recipes" / "binary.yaml").write_bytes(b"\x89PNG\r\n\x1a\n\0\xff\xfe")
    refused(desk.listener.types("run", "recipes/binary.yaml"), 2, r"recipes/binary\.yaml")
    refused(desk.listener.types("run", "recipes"), 2, "recipes: expected a recipe file, got a fold")
    refused(desk.listener.types("run", "smal"), 2, "'smal'.*did you mean 'small'\\?")
    refused(
        desk.listener.types("run", "small", "--set", "stages.genral.seed=1"), 2, "genral", "general"
    )
    refused(desk.listener.types("rum", "small"), 2, "did you mean 'run'\\?")
    refused(desk.listener.types("run", "small", "--jsn"), 2, "did you mean '--json'\\?")
    assert not (desk.person.home / "store").exists()
    assert not (desk.person.home / "mlflow.db").exists()


# Files: exit 3, or quarantine by the contract, naming file and line


def lines(records: Iterator[dict[str, str]]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def good(count: int = 60) -> list[bytes]:
    return lines(map(document, range(5000, 5000 + count))).splitlines(keepends=True)


def test_files_that_cannot_be_read_name_themselves(desk: Desk):
    whole = b"".join(good())
    refused(desk.runs_on("absent", "absent.jsonl", None), 3, r"absent.*data/absent\.jsonl")
    refused(desk.runs_on("empty", "empty.jsonl", b""), 3, r"empty\.jsonl|source empty")
    refused(
        desk.runs_on("binary", "binary.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200)),
        3,
        r"data/binary\.txt.*expected text",
    )
    refused(
        desk.runs_on("torn", "torn.jsonl.gz", gzip.compress(whole)[:-40]),
        3,
        r"data/torn\.jsonl\.gz.*(truncated|ends in the middle)",
    )
    latin = "\n".join(f"Größe {n} {CANARY} über alle Maßen schön" for n in range(90))
    refused(
        desk.runs_on("latin", "latin.txt", latin.encode("latin-1"), document="line"),
        3,
        r"latin\.txt",
        "encoding",
    )
    refused(
        desk.runs_on("fieldless", "fieldless.jsonl", whole, fields={"text": "body"}),
        3,
        r"fieldless\.jsonl",
        "body",
    )


def test_malformed_lines_are_quarantined_until_they_are_too_many(desk: Desk):
    def torn(every: int, count: int) -> bytes:
        records = good(count)
        for number in range(4, count, every):
            records[number] = records[number][: len(records[number]) // 2] + b"\n"
        return b"".join(records)

    many = desk.runs_on("many", "many.jsonl", torn(5, 100))
    refused(many, 3, "many", "20 of 100 rows", r"not JSON: data/many\.jsonl:5,", r"report\.html")
    # One in 100 is set aside; the run then stops at a batch that is larger than all there is.
    few = desk.runs_on("few", "few.jsonl", torn(1000, 100))
    changes = only_general(corpora={"few": 1.0}, batch_size=4096)
    big = desk.runs(name="big-batch", **changes)
    refused(big, 3, r"few: \d+ documents or rows give \d+ examples", "4,?096", "batch_size")
    assert few.code == 0, few.told()
    (rejected,) = [
        path
        for path in (desk.person.home / "store" / "corpus").glob("*/rejected.jsonl")
        if "few.jsonl:5" in path.read_text("utf-8")
    ]
    assert rejected.stat().st_mode & 0o777 == 0o600
    assert CANARY not in rejected.read_text("utf-8").casefold()
    assert "1 " in few.err.split("corpus few")[1].splitlines()[0]  # said in the run's own story


def finetune_only(dataset: str, **settings: Any) -> dict[str, Any]:
    four = stages()
    return {
        "stages": [four[0], {**four[3], "dataset": dataset, **settings}],
        "evaluate": {"metrics": ["accuracy"]},
        "promote": None,
    }


def test_rows_that_break_their_contract_are_named_by_id(desk: Desk):
    train = [row(n) for n in range(120)]
    strange = [row(n) | {"label": "garden"} for n in range(300, 304)]
    desk.project.dataset("unseen", train=train, test=chain(map(row, range(304, 340)), strange))
    answer = desk.runs(name="on-unseen", **finetune_only("unseen"))
    refused(
        answer, 3, "source unseen: 4 rows", "`garden`, split test, id r300", "Correct the label"
    )

    again = [row(n) | {"id": f"again{n}"} for n in range(6)]
    desk.project.dataset("overlapping", train=train, test=[*map(row, range(400, 430)), *again])
    answer = desk.runs(name="on-overlapping", **finetune_only("overlapping", overlap="refuse"))
    refused(answer, 3, "overlapping", r"\b6\b", "overlap", "again0")


def test_prefects_page_says_the_cause_the_exit_code_and_the_next_command(desk: Desk):
    refused(desk.runs_on("lost", "lost.jsonl", None), 3, "lost")
    slow = only_general(budget={"steps": 50_000})
    refused(desk.runs(name="too-slow", **slow, limits={"minutes": 0.02}), 1, "the deadline")
    desk.listener.asks(refresh="nowhere.yaml")
    with sqlite3.connect(desk.person.home / "prefect" / "prefect.db") as database:
        rows = database.execute(
            "select run.name, state.message from flow_run run"
            " join flow_run_state state on run.state_id = state.id where state.type = 'FAILED'"
        )
        told = dict(rows.fetchall())
    again = re.escape(shlex.quote(str(desk.project.folder / "recipes" / "on-lost.yaml")))
    assert re.search(
        rf"(?s)^source lost: .*data/lost\.jsonl.*\nExit code 3\. Next: .*`fourstage run {again}`",
        told["lifecycle-on-lost"],
    )
    for name in ("lifecycle-too-slow", "pretrain-general-too-slow"):
        assert re.search(
            r"(?s)^general: stopped by the deadline at step \d+ of 50,000.*"
            r"\nExit code 1\. Next: `fourstage run .*too-slow\.yaml'?` goes on from the checkpoint",
            told[name],
        )
    assert re.search(
        r"(?s)^recipe: 'nowhere\.yaml' is not .*"
        r"\nExit code 2\. Next: .*`prefect deployment run refresh/refresh -p recipe=nowhere\.yaml`",
        told["refresh-nowhere"],
    )


def test_no_text_of_the_user_is_in_any_log_page_or_database(desk: Desk):
    """The last one: it looks at what all the others left behind."""
    home = desk.person.home
    texts = ("documents.arrow", "rows.arrow", "vocab")
    looked_at = 0
    for path in home.rglob("*"):
        if not path.is_file() or path.name.startswith(texts):
            continue
        looked_at += 1
        assert CANARY.encode() not in path.read_bytes().lower(), path.relative_to(home)
    assert looked_at > 20
    assert any(path.suffix == ".db" for path in (home / "prefect").iterdir())
    assert list((home / "logs").iterdir())
