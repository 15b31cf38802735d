"""Labels that lie (S13–S17): named with split and id before anything is trained."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.desk import Desk, lines, on_dataset, rows
from tests.flows.own_project import CANARY, row

TRAIN = rows()
TEST = rows(60, 300)
GOOD = lines(TRAIN)
COLUMNS = {"text": "text", "label": "label"}


@pytest.fixture(scope="module", autouse=True)
def labelled(desk: Desk) -> Iterator[None]:
    """The good rows, trained on once, and found as they were when all faults have been met."""
    desk.holds(desk.on_rows(GOOD), 0)
    yield
    desk.put_right(lambda: desk.on_rows(GOOD))


def test_none_na_and_null_are_labels_like_any_other(desk: Desk):
    """S13: as text, never as a missing value."""
    text = "text,label\n" + "".join(
        f"relation number {n} is absent,None\nrelation number {n} holds,NA\n"
        f"relation number {n} unclear,null\n"
        for n in range(100)
    )
    other = "text,label\nanother relation altogether,NaN\n"
    answer = desk.on_rows(text.encode(), other.encode(), "csv", fields=COLUMNS)
    desk.holds(answer, 3, r"label `NaN`, split test.*Labels of train: `NA`, `None`, `null`\.")
    answer = desk.on_rows(text.encode(), text.encode(), "csv", fields=COLUMNS)
    desk.holds(
        answer, 3,
        r"no training row is left of 300: 300 × its text is in test too \(first at "
        r"data/train\.csv:2\)",
    )  # fmt: skip


def test_a_label_that_only_test_rows_have_is_named_by_id(desk: Desk):
    """S14."""
    strange = [{**one, "label": "neutral"} if one["id"] == "r304" else one for one in TEST]
    desk.holds(
        desk.on_rows(GOOD, lines(strange)), 3,
        "label `neutral`, split test, id r304", "Labels of train: `kitchen`, `weather`",
        "Correct the label",
    )  # fmt: skip


def test_no_dev_rows_to_keep_the_best_weights_by_are_told_before_any_work(desk: Desk):
    """An empty file; drawn from the training rows they are there."""
    desk.data("dev.jsonl").write_bytes(b"")
    files = {split: f"data/{split}.jsonl" for split in ("train", "dev", "test")}
    selected = on_dataset(select={"metric": "accuracy"})
    answer = desk.on_rows(GOOD, recipe=selected, files=files)
    desk.holds(answer, 3, "dev rows, which stage finetune chooses by", "its files for dev give")
    desk.holds(desk.on_rows(GOOD, recipe=selected), 0)
    desk.holds(desk.on_rows(GOOD, files=files), 0, "no dev rows, on which a stage could be scored")


def test_a_renamed_label_reaches_the_model_that_is_served(desk: Desk):
    """Rows are stored by numbers of labels; the names of these numbers decide as much."""
    good = desk.on_rows(GOOD)
    assert good.json["stages"][-1]["status"] == "reused"
    train, test = (
        lines({**one, "label": one["label"].replace("kitchen", "galley")} for one in some)
        for some in (TRAIN, TEST)
    )
    served = on_dataset() | {"promote": {"model": "renamed", "require": {}}}
    answer = desk.on_rows(train, test, recipe=served)
    desk.holds(answer, 0)
    before, after = good.json["stages"][-1], answer.json["stages"][-1]
    assert after["status"] == "trained"
    assert after["key"] != before["key"]
    config = json.loads((desk.newest("stage finetune") / "config.json").read_text("utf-8"))
    assert config["label_names"] == ["galley", "weather"]
    assert json.loads((desk.newest("package") / "labels.json").read_text("utf-8")) == [
        "galley",
        "weather",
    ]


def test_the_same_text_with_two_labels_is_listed_by_id_and_counted(desk: Desk):
    """S15."""
    text = f"exactly this {CANARY} was long"
    twice = [{"id": f"x-{label}", "text": text, "label": label} for label in ("kitchen", "weather")]
    answer = desk.on_rows(lines(TRAIN + twice))
    desk.holds(answer, 0)
    promise = desk.promise(answer, "contradictions_none", "contract rows")
    assert (promise["status"], promise["failed_count"]) == ("failed", 2)
    assert promise["failed_ids"] == ["x-kitchen", "x-weather"]
    report = desk.entry(answer, "contract rows") / "report.md"
    assert "x-kitchen, x-weather" in report.read_text("utf-8")
    card = newest_page(desk.home, "on-trial-stage-finetune")
    head, _, values = [line for line in card.splitlines() if line.startswith("|")][:3]
    assert dict(zip(cells(head), cells(values), strict=True))["contradictory rows"] == "2"


def newest_page(home: Path, key: str) -> str:
    """What Prefect shows under a key."""
    (database,) = (home / "prefect").glob("*.db")
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        (page,) = connection.execute(
            "select data from artifact where key = ? order by created desc limit 1", (key,)
        ).fetchone()
    return json.loads(page)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_labels_that_differ_by_case_blank_or_width_are_shown_together(desk: Desk):
    """S16."""
    more = [
        {**row(seed), "id": f"{number}-{seed}", "label": label}
        for number, label in enumerate(("kitchen ", "Kitchen", "ｋｉｔｃｈｅｎ"))
        for seed in range(1000 + 3 * number, 1003 + 3 * number)
    ]
    desk.holds(
        desk.on_rows(lines(TRAIN + more)), 3,
        "5 labels, of which some differ only in case, spaces or width",
        "`kitchen` .90 rows. ~ `Kitchen` .3 rows. ~ `kitchen␠` .3 rows. ~ `ｋｉｔｃｈｅｎ` .3 rows",
    )  # fmt: skip


def test_labels_of_several_types_are_counted_and_never_cast(desk: Desk):
    """S17."""
    mixed = [{**one, "label": [1, "1", 1.0, 0][n % 4]} for n, one in enumerate(TRAIN)]
    desk.holds(
        desk.on_rows(lines(mixed)), 3,
        r"labels of one type, got 3: float \(30 rows, first at data/train\.jsonl:3\), "
        r"integer \(60 rows, first at data/train\.jsonl:1\), text \(90 rows",
    )  # fmt: skip


def test_training_rows_that_are_test_rows_too_are_refused_where_the_recipe_says_so(desk: Desk):
    again = lines([*TEST, *({**one, "id": f"again-{one['id']}"} for one in TRAIN[:6])])
    answer = desk.on_rows(GOOD, again, recipe=on_dataset(overlap="refuse"))
    desk.holds(
        answer, 3, "source rows: 6 training rows have a text of dev or test: r0 = test again-r0"
    )
