"""A choice as one types it: killed, gone on with, judged once, and its recipe run again.

And one of files of one's own, in the minutes that were given.
"""

from __future__ import annotations

import csv
import json
import signal
import time
from pathlib import Path

import pytest

from tasks.store.artifacts import Store
from tasks.store.step_names import LABELLED
from tests.flows.own_project import CANARY, document, row
from tests.flows.person import Person, end_all

RECIPE = """
name: mine
family: bert
size: {num_layers: 1, hidden_dim: 32, num_heads: 2, intermediate_dim: 64}
tokenizer: {vocabulary_size: 500, learn_from: [smoke_general]}
seed: 2
stages:
  - {stage: general, corpora: {smoke_general: 1.0}, objectives: {masked_lm: {}},
     sequence_length: 32, batch_size: 8, budget: {steps: 4}}
  - {stage: finetune, dataset: smoke_labels, head: {sequence_classification: {}}, batch_size: 8,
     sequence_length: 32, budget: {epochs: 4},
     optimizer: {adamw: {peak_learning_rate: 3.0e-3}}}
evaluate: {metrics: [accuracy]}
promote: {model: mine}
"""
ASKED = (
    *("choose", "mine.yaml", "--minutes", "4", "--json"),
    *("--without", "counting", "--without", "wide-labels-only"),
    *("--without", "wide", "--without", "fasttext", "--without", "larger"),
    *("--candidate", "still:stages.general="),
    *("--candidate", "still:stages.finetune.optimizer.adamw.peak_learning_rate=1.0e-9"),
    # How long it takes is not known before its corpus is read, so it is begun, and stopped.
    *("--candidate", "late:stages.general.corpora={smoke_domain: 1.0}"),
    *("--candidate", "late:stages.general.budget={epochs: 5000}"),
)


@pytest.mark.slow
def test_the_better_candidate_is_chosen_and_a_killed_choice_goes_on(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(RECIPE)
    person = Person(tmp_path / "home", tmp_path)
    try:
        began = time.monotonic()
        process = person.start(*ASKED)
        deadline = time.monotonic() + 300
        while not list(person.home.glob("choices/*/state.json")) or not any(
            json.loads(path.read_text())["rounds"]
            and json.loads(path.read_text())["rounds"][0]["tried"]
            for path in person.home.glob("choices/*/state.json")
        ):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed_after = time.monotonic() - began
        (state,) = person.home.glob("choices/*/state.json")
        before = json.loads(state.read_text())["rounds"][0]

        answer = person.types(*ASKED)
        assert answer.code in (0, 4), answer.told()
        after = json.loads(state.read_text())["rounds"][0]
        assert before["factors"] == after["factors"]
        assert before["tried"].items() <= after["tried"].items(), (
            "what was tried is not tried again"
        )
        choice = answer.json["choice"]
        # A rate of 1e-9 learns nothing. The minutes may be enough for pre-training or not.
        ranked = [each["name"] for each in choice["candidates"]]
        assert ranked.index("labels-only") < ranked.index("still")
        assert choice["chosen"] == ranked[0]
        assert {*ranked, *choice["left_out"]} == {"as-written", "labels-only", "still", "late"}
        assert "late" in choice["left_out"]
        assert killed_after + answer.seconds < 4 * 60 + 15
        # Every second of both attempts is charged, but for the killed step's and those at the end.
        charged = sum(choice["spent"].values())
        assert answer.seconds - 5 < charged < killed_after + answer.seconds
        # The recipe asks nothing beside the cheap baseline, so the choice does.
        (check,) = [c for c in answer.json["summary"]["gate"]["checks"] if "baseline" in c["name"]]
        assert check["name"] == "accuracy not_below cheap_baseline"
        assert answer.code == (0 if check["passed"] else 4)
        store = Store(person.home)
        assert len(list(store.entries("evaluation"))) == sum(
            len(recipe["seeds"]) for recipe in answer.json["comparison"]["recipes"]
        )
        stages = {entry.key for entry in store.entries("stage")}

        (page,) = person.home.glob("choices/*/page.md")
        assert page.read_text().startswith(f"# {ranked[0]}: ")
        (chosen,) = person.home.glob("choices/*/chosen.yaml")
        (tmp_path / "nightly.yaml").write_text(chosen.read_text())
        again = person.types("run", "nightly.yaml", "--json")
        assert again.code in (0, 4), again.told()
        assert {entry.key for entry in Store(person.home).entries("stage")} == stages
    finally:
        end_all(person.home)


@pytest.mark.slow
def test_few_dev_rows_choose_together_with_train_rows_by_cross_validation(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(RECIPE)
    asked = ("choose", "mine.yaml", "--minutes", "4", "--json", "--set", "stages.general=")
    for name in ("counting", "fasttext", "larger", "wide"):
        asked += ("--without", name)
    asked += ("--candidate", "still:stages.finetune.optimizer.adamw.peak_learning_rate=1.0e-9")
    person = Person(tmp_path / "home", tmp_path)
    try:
        answer = person.types(*asked)
        assert answer.code in (0, 4), answer.told()
        choice = answer.json["choice"]
        folds = choice["folds"]
        assert folds >= 2
        assert f"accuracy {choice['candidates'][0]['rounds'][-1]['mean']:.4f}" in answer.err
        assert f"on dev rows and {folds} folds of train rows" in answer.err
        store = Store(person.home)
        (state,) = person.home.glob("choices/*/state.json")
        told = json.loads(state.read_text())
        scores = [s for of in told["rounds"][-1]["tried"].values() for s in of["scores"]]
        parts = {e.digest for e in store.entries("rows") if "fold" in e.preimage["settings"]}
        assert len(parts) == folds
        of_dev, of_parts = [], []
        for each in store.entries("measurement"):
            asked_rows = each.preimage["inputs"][LABELLED]
            found = of_parts if asked_rows in parts else of_dev
            found.append(each.facts["task_metric"]["value"])
        assert len(of_dev) == len(scores)
        assert len(of_parts) == folds * len(scores)
        dev, train = told["rows"]["dev"], told["rows"]["train"]
        expected = (dev * sum(of_dev) + train / folds * sum(of_parts)) / (dev + train)
        assert sum(scores) == pytest.approx(expected)
        stages = {each.key for each in store.entries("stage")}
        assert len(stages) == len(of_dev) + len(of_parts)
        again = person.types(*asked)
        assert again.json["choice"]["candidates"] == choice["candidates"]
        assert {each.key for each in Store(person.home).entries("stage")} == stages
    finally:
        end_all(person.home)


@pytest.mark.slow
def test_a_choice_of_ones_own_files_keeps_to_its_minutes_and_says_so(tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["id", "text", "label"])
        table.writeheader()
        table.writerows(row(number) for number in range(200))
    texts = "\n".join(document(number)["text"] for number in range(300))
    (tmp_path / "texts.txt").write_text(texts + "\n", encoding="utf-8")
    person = Person(tmp_path / "home", tmp_path)
    try:
        answer = person.types(
            *("choose", "--rows", "rows.csv", "--corpus", "texts.txt", "--minutes", "3", "--json"),
            *("--without", "fasttext"),  # which has all rows right as soon
        )
        assert answer.code in (0, 4), answer.told()
        choice, gate = answer.json["choice"], answer.json["summary"]["gate"]
        assert answer.seconds < 3 * 60 + 15, answer.told()  # what the process takes to end
        assert sum(choice["spent"].values()) <= answer.seconds
        # A word tells the label, so counting has all rows right, at the lowest cost; and is served.
        assert choice["chosen"] == "counting", answer.told()
        assert gate["decision"] == "promote"
        (page,) = person.home.glob("choices/*/page.md")
        said = page.read_text(encoding="utf-8")
        assert said.startswith("# counting: ")
        assert "promoted to champion" in said.splitlines()[0]
        assert "Counted n-grams are the cheap baseline's own kind" in said
        assert "Of 3 minutes " in said
        assert CANARY not in said
        assert (tmp_path / "choice" / "recipes" / "first.yaml").is_file()
    finally:
        end_all(person.home)
