"""The whole way with the quickstart at its smallest: data to champion, traced, asked, served."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from fourstage.settings import REPOSITORY
from fourstage.text_width import width
from tests.faults.finished_home import SECOND, STRICT, THIRD, Finished
from tests.flows.conftest import Story, free_port, wait_for
from tests.flows.person import Answer, Listener, end, living

STAGES = ["general", "domain", "task", "finetune"]
MODEL = "python-libraries-smoke"
STAGE_KEYS = {"stage", "status", "key", "weights_digest", "steps", "seconds"}
TEXTS = ["Return a tensor with the gradient of each variable.", "这是一个句子。", ""]

# A stranger's program: MLflow, and nothing of this project even where it is installed.
STRANGER = """
import json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("fourstage", "flows", "tasks", "corpora", "models",
                                  "data_contracts"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import mlflow.pyfunc
model = mlflow.pyfunc.load_model(sys.argv[1])
answers = [model.predict(json.loads(sys.argv[2])) for _ in range(2)]
assert answers[0] == answers[1]
print("ANSWERS", json.dumps(answers[0]))
"""


@pytest.fixture(scope="module")
def asking(story: Story) -> Iterator[Listener]:
    """Who asks for answers: only the two runs are about a process."""
    listener = Listener(story.person)
    yield listener
    listener.close()


def runs_of(story: Story) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=story.database["MLFLOW_TRACKING_URI"])
    experiments = [each.experiment_id for each in client.search_experiments()]
    return list(client.search_runs(experiments, max_results=1000))


def test_a_run_prints_one_object_on_standard_output(story: Story):
    assert story.first.code == 0, story.first.told()
    summary = story.first.json
    assert {"recipe", "stages", "metrics", "gate", "model"} <= set(summary)
    assert [stage["stage"] for stage in summary["stages"]] == STAGES
    for stage in summary["stages"]:
        assert set(stage) >= STAGE_KEYS
        assert stage["status"] == "trained"
        assert 0 < stage["steps"] <= 20
        assert stage["seconds"] > 0
        assert re.fullmatch("[0-9a-f]{64}", stage["key"])
        assert re.fullmatch("[0-9a-f]{64}", stage["weights_digest"])
    first = summary["stages"][0]
    assert first["gained"] == {
        f"loss on {corpus}": pytest.approx(loss - first["unigram_loss"][corpus])
        for corpus, loss in first["heldout_loss"].items()
    }
    for corpus, loss in first["heldout_loss_a_word"].items():  # English: a blank a word, or more
        assert loss > 2 * first["heldout_loss_a_character"][corpus] > 0
    assert {"accuracy", "macro_f1"} == set(summary["metrics"])
    assert all(0 <= value <= 1 for value in summary["metrics"].values())
    assert summary["gate"]["decision"] == "promote"
    assert summary["model"] == {"name": MODEL, "version": 1, "aliases": ["champion"]}


def test_a_run_tells_its_story_to_the_person(story: Story):
    """Every step a line, the table, the version, what to do next, and no library's chatter."""
    for step in ("corpus smoke_domain", "tokenizer", "stage domain", "evaluation"):
        assert re.search(rf"^{step} ", story.first.err, re.MULTILINE), step
    assert f"{MODEL} version 1: promoted to champion" in story.first.err
    assert "fourstage trace models:/" in story.first.err
    assert "Traceback" not in story.first.err
    assert " | INFO " not in story.first.err  # Prefect's


def test_a_terminal_shows_what_is_being_done_and_how_far_it_is(story: Story):
    shown = "\n".join(story.screen.feet)
    assert "getting ready: Prefect's server, libraries  0:00" in shown
    for step in ("corpus smoke_domain: reading", "measurement task: measuring", "evaluation: "):
        assert step in shown
    for stage in ("general", "domain", "task", "finetune"):
        assert re.search(rf"stage {stage}  [━╌]+  1 of \d+  0:\d\d  loss \d", shown)
    assert "testing it in a fresh process" in shown


def test_no_line_is_longer_than_the_terminal_is_wide(story: Story):
    """It would be broken inside words."""
    assert max(map(width, (*story.screen.lines, *story.screen.feet))) <= story.screen.columns


def of_prefect(story: Story, question: str) -> list[tuple[str, ...]]:
    """What Prefect's database answers."""
    with closing(sqlite3.connect(story.person.home / "prefect" / "prefect.db")) as database:
        return database.execute(question).fetchall()


def test_the_mark_of_a_process_is_no_tag_on_the_pages_of_its_runs(story: Story):
    """For every tag of a task Prefect looks for a limit, which cost two seconds a stage."""
    assert set(of_prefect(story, "select tags from task_run")) == {("[]",)}
    assert set(of_prefect(story, "select tags from flow_run")) == {("[]",)}
    marks = list((story.person.home / "prefect" / "fourstage-runs").iterdir())
    assert len(marks) == 1  # of the run whose end no later start has seen
    assert marks[0].read_text("utf-8").startswith("process:")


def test_runs_are_named_after_stage_recipe_and_date(story: Story):
    names = {name for (name,) in of_prefect(story, "select name from flow_run")}
    today = r"\d{4}-\d\d-\d\d-\d{4}"
    for begin in ("lifecycle-quickstart", "pretrain-general-quickstart", "adapt-task-quickstart"):
        assert any(re.fullmatch(f"{begin}-{today}", name) for name in names), names
    assert any(re.fullmatch(f"promote-{MODEL}-{today}", name) for name in names), names


def test_a_flow_of_the_run_shows_what_it_would_be_started_with_by_itself(story: Story):
    asked = {"recipe": "quickstart", "overrides": [], "smoke": True, "run": "<InMemory>"}
    shown = dict(of_prefect(story, "select name, parameters from flow_run"))
    for flow, stage in (("pretrain", "general"), ("adapt", "task"), ("finetune", "finetune")):
        begin = f"{flow}-{stage}-quick" if flow != stage else f"{flow}-quick"
        (first, *_) = [given for name, given in shown.items() if name.startswith(begin)]
        assert json.loads(first) == {**asked, "stage": stage}


def test_the_log_of_the_outermost_run_tells_the_whole_story(story: Story):
    said = of_prefect(
        story,
        "select message from log where name = 'fourstage.story' and flow_run_id in"
        " (select id from flow_run where parent_task_run_id is null order by start_time limit 1)"
        " order by timestamp",
    )
    told = "\n".join(message for (message,) in said)
    for step in ("corpus smoke_domain", "tokenizer", "stage domain", "evaluation"):
        assert re.search(rf"^{step} +(made|trained) ", told, re.MULTILINE), step
    ended = re.findall(r"^stage domain +(?:made|trained) ", told, re.MULTILINE)
    assert len(ended) == 1, "told twice"
    assert "loss on smoke_domain" in said[-1][0]
    assert f"{MODEL} version 1: promoted to champion" in said[-1][0]


def test_steps_are_tied_to_those_they_were_made_from(story: Story):
    """The arrows of the graph on a run's page."""
    inputs = dict(of_prefect(story, "select id, task_inputs from task_run"))
    runs = of_prefect(
        story, "select id, name from task_run union select parent_task_run_id, id from flow_run"
    )
    ids = {name.rsplit("-", 1)[0]: number for number, name in runs}
    for made, of in (
        ("tokens-smoke_domain", "tokenizer"),
        ("contract-smoke_domain", "corpus-smoke_domain"),
        ("measurement-task", "stage-task"),
        ("record", "measurement-finetune"),
        ("evaluation", "package"),
    ):
        assert ids[of] in inputs[ids[made]], (made, of)


def test_the_same_command_again_trains_nothing(story: Story):
    assert story.second.code == 0, story.second.told()
    before, after = story.first.json, story.second.json
    assert [stage["status"] for stage in after["stages"]] == ["reused"] * 4
    for name in ("key", "weights_digest"):
        assert [s[name] for s in before["stages"]] == [s[name] for s in after["stages"]]
    assert after["metrics"] == before["metrics"]
    assert after["model"] == before["model"]
    assert after["gate"]["decision"] == "keep"
    assert f"{MODEL} version 1: the champion already" in story.second.err
    cards = of_prefect(
        story, f"select data from artifact where key = '{MODEL}-gate' order by created"
    )
    last = json.loads(cards[-1][0])
    assert last.startswith(f"### {MODEL} version 1: the champion already")
    assert "There is no other champion to compare with. There was nothing to decide." in last
    assert "Nothing was trained: every stage was finished before" in story.second.err
    assert not re.search(r"^\w.* (made|trained) ", story.second.err, re.MULTILINE)


def test_mlflow_has_one_run_a_stage_and_one_a_lifecycle_all_finished(story: Story):
    found = runs_of(story)
    assert {run.info.status for run in found} == {"FINISHED"}
    kinds = [run.data.tags.get("fourstage.kind") for run in found]
    assert sorted(kinds) == ["lifecycle"] * 2 + ["stage"] * 4
    stages = [run for run in found if run.data.tags["fourstage.kind"] == "stage"]
    keys = {stage["key"] for stage in story.first.json["stages"]}
    assert {run.data.tags["fourstage.key"] for run in stages} == keys
    for run in stages:
        assert run.inputs.dataset_inputs
        assert run.outputs.model_outputs


def test_mlflow_says_which_run_was_best_and_what_it_was_made_with(story: Story):
    """By its own search and sort; settings and scores are on run and model, each with its rows."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=story.database["MLFLOW_TRACKING_URI"])
    experiment = client.get_experiment_by_name(MODEL)
    runs = client.search_runs(
        [experiment.experiment_id],
        "params.family = 'roformer' AND metrics.accuracy >= 0",
        order_by=["metrics.accuracy DESC"],
    )
    assert len(runs) == 2
    summary = story.first.json
    corpora = summary["stages"][0]["heldout_loss"]
    for run in runs:
        found = run.data.metrics
        assert summary["metrics"].items() <= found.items()
        for name, table in (("baseline", "baseline"), ("majority", "majority")):
            assert all(found[f"{name}/{metric}"] == x for metric, x in summary[table].items())
        assert found["dev/accuracy"] == summary["stages"][-1]["task_metric"]["value"]
        assert {"latency_ms/p95", "size_mb", "forgetting/smoke_general"} <= found.keys()
        assert run.data.params["general.learning_rate"] == "0.002"
        assert run.data.params["stages"] == "general, domain, task, finetune"
        assert len(run.data.params) < 40
        assert 0 <= run.data.metrics["calibration_error"] <= 1
        for corpus in corpora:  # a guess by frequency, then one value a stage that measured it
            curve = client.get_metric_history(run.info.run_id, f"heldout_loss/{corpus}")
            stages = summary["stages"] if corpus == "smoke_general" else summary["stages"][:-1]
            assert [point.step for point in curve] == [*range(len(stages) + 1)]
            assert [p.value for p in curve[1:]] == [each["heldout_loss"][corpus] for each in stages]
            last = stages[-1]["heldout_loss_a_word"][corpus]
            assert found[f"heldout_loss_a_word/{corpus}"] == last
        assert set(summary["stages"][-1]["heldout_loss"]) == {"smoke_general"}
        pictures = {item.path for item in client.list_artifacts(run.info.run_id, "evaluation")}
        assert pictures >= {
            "evaluation/confusion.png",
            "evaluation/precision_recall.png",
            "evaluation/reliability.png",
            "evaluation/labels.csv",
        }
        note = run.data.tags["mlflow.note.content"]
        assert all(f"[{stage}](#/experiments/" in note for stage in STAGES)

    rows = [{"dataset_name": "smoke_labels"}]
    search = partial(client.search_logged_models, [experiment.experiment_id], datasets=rows)
    (model,) = search(filter_string="metrics.accuracy >= 0")
    assert model.name == MODEL
    assert not search(filter_string="metrics.accuracy > 1")
    assert model.params == runs[0].data.params
    (accuracy,) = [metric for metric in model.metrics if metric.key == "accuracy"]
    assert accuracy.value == summary["metrics"]["accuracy"]
    assert accuracy.dataset_digest
    (general,) = client.search_logged_models(
        [experiment.experiment_id], "tags.`fourstage.stage` = 'general'"
    )
    measured = {metric.key: metric.value for metric in general.metrics}
    for corpus, loss in corpora.items():
        assert measured[f"heldout_loss/{corpus}"] == loss


def test_a_version_has_a_card_and_an_example(story: Story):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=story.database["MLFLOW_TRACKING_URI"])
    version = client.get_model_version(MODEL, "1")
    card = str(version.description)
    for heading in ("Data", "Scores", "What each stage bought", "Limits", "How to call it"):
        assert f"\n## {heading}\n" in card
    for source in ("smoke_general", "smoke_domain", "smoke_labels", "BSD-3-Clause", "Apache-2.0"):
        assert source in card
    score = f"{story.first.json['metrics']['accuracy']:.3f}"
    assert re.search(rf"^\| accuracy \| {score} \(0\.\d+ to 0\.\d+\) \| 0\.", card, re.MULTILINE)
    assert f"fourstage predict {MODEL}/1" in card
    assert str(story.person.home) not in card

    model_id = version.tags["fourstage.model_id"]
    tags = client.get_logged_model(model_id).tags
    assert tags["mlflow.note.content"] == card
    assert json.loads(tags["mlflow.modelVersions"]) == [{"name": MODEL, "version": "1"}]
    (files,) = (story.person.home / "mlflow").glob(f"**/{model_id}/artifacts")
    assert (files / "model_card.md").read_text("utf-8") == card
    assert json.loads((files / "input_example.json").read_text("utf-8")) == ["This is a sentence."]
    assert "signature:" in (files / "MLmodel").read_text("utf-8")


def test_a_converted_version_brings_its_card(asking: Listener, tmp_path: Path):
    folder = tmp_path / "theirs"
    answer = asking.types("convert", f"models:/{MODEL}@champion", str(folder))
    assert answer.code == 0, answer.told()
    _, front, card = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    facts = yaml.safe_load(front)
    assert facts["language"] == ["en"]
    assert facts["license"] == "other"  # in words, as the sources' own
    assert "BSD-3-Clause" in facts["license_name"]
    assert facts["pipeline_tag"] == "fill-mask"
    assert facts["tags"] == ["fourstage", "roformer"]
    assert "\n## Scores\n" in card
    lacks = card.split("\n## Not in this folder\n")[1]
    assert "head sequence_classification" in lacks  # it counts words, too; theirs can't
    assert "transformers.RoFormerForMaskedLM.from_pretrained" in card
    assert "fourstage predict" not in card


def test_two_runs_of_one_recipe_differ_in_nothing(story: Story, asking: Listener):
    runs = [each.json["lifecycle_run"] for each in (story.first, story.second)]
    answer = asking.types("diff", *runs, "--json")
    assert answer.code == 0, answer.told()
    for section in ("settings", "data", "code", "scores"):
        assert answer.json[section] == [], section
    assert answer.json["not_known"] == {}


def test_what_cannot_be_told_apart_is_a_wrong_name(asking: Listener):
    for word, says in (
        (MODEL, f"{MODEL}@champion"),
        (f"{MODEL}/9", "no version 9"),
        (f"{MODEL}@champoin", "did you mean 'champion'?"),
        ("quikstart", "did you mean 'quickstart'?"),
        ("0" * 32, "no such run"),
    ):
        answer = asking.types("diff", word, "quickstart")
        assert answer.code == 2, answer.told()
        assert says in answer.err


def test_nothing_is_left_running(story: Story, asking: Listener):
    assert story.left == []
    assert [process.pid for process in living(story.person.home)] == [asking.process.pid]


# Lineage


@pytest.fixture(scope="module")
def traced(asking: Listener) -> dict[str, Any]:
    answer = asking.types("trace", f"models:/{MODEL}@champion", "--json")
    assert answer.code == 0, answer.told()
    return answer.json


def test_trace_holds_every_hop(story: Story, traced: dict[str, Any]):
    assert traced["complete"] is True
    assert traced["told_by"] == "mlflow"
    hops = {hop["key"]: hop for hop in traced["hops"]}
    stages = {hop["stage"]: hop for hop in traced["hops"] if hop["kind"] == "stage"}
    for stage in story.first.json["stages"]:
        hop = stages[stage["stage"]]
        assert (hop["key"], hop["weights_digest"]) == (stage["key"], stage["weights_digest"])
        assert hop["run_id"]
        assert hop["model_id"]
    kinds = {hop["kind"] for hop in traced["hops"]}
    assert kinds >= {"corpus", "dataset", "contract", "tokenizer", "tokens", "stage", "package"}
    for hop in traced["hops"]:
        assert re.fullmatch("[0-9a-f]{64}", hop["digest"])
        assert set(hop["inputs"].values()) <= set(hops), f"{hop['name']} comes from elsewhere"
    if (REPOSITORY / ".git").exists():
        assert all(re.fullmatch("[0-9a-f]{40}", hop["commit"]) for hop in traced["hops"])
    sources = {hop["source"]["name"] for hop in traced["hops"] if "source" in hop}
    assert sources == {"smoke_general", "smoke_domain", "smoke_labels"}
    assert all("licence" in hop["source"] for hop in traced["hops"] if "source" in hop)


def test_trace_is_complete_with_the_store_gone(
    story: Story, asking: Listener, traced: dict[str, Any]
):
    store = story.person.home / "store"
    away = store.rename(store.with_name("moved away"))
    try:
        answer = asking.types("trace", f"models:/{MODEL}@champion", "--json")
    finally:
        away.rename(store)
    assert answer.code == 0, answer.told()
    assert [hop["key"] for hop in answer.json["hops"]] == [hop["key"] for hop in traced["hops"]]
    assert all(hop["held_by"] == ["mlflow"] for hop in answer.json["hops"])


def test_trace_asks_the_store_where_mlflow_has_lost_the_model(
    story: Story, asking: Listener, traced
):
    (folder,) = (story.person.home / "mlflow").glob(f"**/{traced['model']['model_id']}")
    away = folder.rename(story.person.home / "model moved away")
    try:
        answer = asking.types("trace", f"models:/{MODEL}/1", "--json")
        nothing = story.person.home / "store"
        hidden = nothing.rename(nothing.with_name("moved away"))
        try:
            neither = asking.types("trace", f"models:/{MODEL}/1", "--json")
        finally:
            hidden.rename(nothing)
    finally:
        away.rename(folder)
    assert answer.code == 0, answer.told()
    assert answer.json["told_by"] == "store"
    assert {h["key"] for h in answer.json["hops"]} == {h["key"] for h in traced["hops"]}
    assert neither.code != 0
    assert neither.out == ""
    assert "Traceback" not in neither.err


def test_impact_leads_from_a_text_to_the_version(asking: Listener, traced: dict[str, Any]):
    corpus = next(h for h in traced["hops"] if h["name"] == "corpus smoke_domain")
    for digest in (corpus["digest"], corpus["key"][:12]):
        answer = asking.types("impact", digest, "--json")
        assert answer.code == 0, answer.told()
        (found,) = answer.json
        assert (found["name"], found["version"]) == (MODEL, 1)
    assert asking.types("impact", "0123456789", "--json").json == []


# Answers


def check(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        assert answer["label"] in answer["probabilities"]
        assert answer["score"] == max(answer["probabilities"].values())
        assert abs(sum(answer["probabilities"].values()) - 1) < 1e-4


@pytest.fixture(scope="module")
def predicted(asking: Listener) -> list[dict[str, Any]]:
    answer = asking.types("predict", f"{MODEL}@champion", *TEXTS, "--json")
    assert answer.code == 0, answer.told()
    assert (answer.json["model"], answer.json["version"]) == (MODEL, 1)
    return answer.json["predictions"]


def test_predict_answers_raw_text_and_says_of_an_empty_one_that_it_is(predicted):
    check(predicted[:-1])
    assert predicted[-1] == {"row": 3, "label": None, "score": None, "error": "empty text"}


def test_predict_adds_its_answers_to_a_file_with_every_column(
    story: Story, asking: Listener, predicted
):
    rows = [{"id": f"r{i}", "review": text, "数": i} for i, text in enumerate((*TEXTS, " \u200b"))]
    folder = story.person.home.parent
    with open(folder / "rows.csv", "w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    given = ("--input", str(folder / "rows.csv"), "--column", "review")
    out = folder / "out.jsonl"
    answer = asking.types("predict", f"{MODEL}@champion", *given, "--output", str(out))
    assert answer.code == 0, answer.told()
    told = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(r["id"], r["review"], r["数"]) for r in told] == [
        (r["id"], r["review"], str(r["数"])) for r in rows
    ]
    labels = [each["label"] for each in predicted]
    assert [row["predicted_label"] for row in told] == [*labels, None]
    whys = [None if row["predicted_label"] else "empty text" for row in told]
    assert [row["prediction_error"] for row in told] == whys
    assert told[0]["predicted_score"] == pytest.approx(predicted[0]["score"], abs=1e-6)
    table = asking.types("predict", f"{MODEL}@champion", *given)
    head, *lines = table.out.split("\n")[:-1]
    assert head == "id\tlabel\tscore\terror"
    assert [line.split("\t")[:2] for line in lines] == [
        [row["id"], row["predicted_label"] or ""] for row in told
    ]
    assert lines[-1].endswith("\t\t\tempty text")


def test_a_stranger_with_mlflow_alone_gets_the_same_answers(story: Story, predicted):
    answer = story.person.python(
        STRANGER, f"models:/{MODEL}@champion", json.dumps(TEXTS), **story.database
    )
    assert answer.code == 0, answer.told()
    (line,) = [line for line in answer.out.splitlines() if line.startswith("ANSWERS ")]
    answers = json.loads(line.removeprefix("ANSWERS "))
    check(answers)
    assert len(answers) == len(TEXTS)
    for ours, theirs in zip(predicted[:-1], answers, strict=False):
        assert ours["label"] == theirs["label"]
        assert ours["score"] == pytest.approx(theirs["score"], abs=1e-6)


@pytest.fixture(scope="module")
def served(story: Story, tmp_path_factory) -> Iterator[str]:
    port = free_port()
    with open(tmp_path_factory.mktemp("served") / "log", "wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "mlflow", "models", "serve"),
                *("--model-uri", f"models:/{MODEL}@champion", "--env-manager", "local"),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            cwd=story.person.folder,
            env=story.person.variables(PYTHONPATH="", **story.database),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/invocations"
    finally:
        end(process)


def post(address: str, body: Any) -> tuple[int, Any]:
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, None


def test_a_served_model_answers_and_refuses_what_is_no_text(served: str, predicted):
    status, answer = post(served, {"inputs": TEXTS})
    assert status == 200
    check(answer["predictions"])
    labels = [a["label"] for a in answer["predictions"]]
    assert len(labels) == len(TEXTS)
    assert labels[:-1] == [a["label"] for a in predicted[:-1]]
    assert post(served, {"inputs": [1, 2]})[0] == 400
    assert post(served, {"texts": TEXTS})[0] == 400


# Promotion: versions of a small model


@dataclass
class Versions:
    """What happened to a model, command by command."""

    told: dict[str, Answer]
    listener: Listener

    def aliases(self, name: str) -> dict[str, Any]:
        return self.told[name].json["model"]


@pytest.fixture(scope="module")
def versions(
    finished: Finished, prefect_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Versions]:
    """Of a home in which a model has three, two runs and a promotion are recorded by a server."""
    copied = finished.copy(tmp_path_factory.mktemp("versions"))
    listener = Listener(replace(copied, environment={"PREFECT_API_URL": prefect_server}))
    commands: dict[str, tuple[str, ...]] = {
        "why": ("explain", "small", "--set", "seed=5", "--json"),
        "refused": (*THIRD, *STRICT),
        "refused again": ("promote", "small", "--version", "3", "--json"),
        "forced": ("promote", "small", "--version", "3", "--force", "--json"),
        "rolled back": ("rollback", "small", "--json"),
        "back once more": ("rollback", "small", "--json"),
        "nothing to go back to": ("rollback", "small", "--json"),
        "run again": SECOND,
        "by number": ("promote", "small", "--version", "2", "--approve", "mended", "--json"),
        "by number again": ("promote", "small", "--version", "2"),
        "what differs": ("diff", "small/1", "small@champion", "--json"),
        "for people": ("diff", "small/1", "small/2"),
        "waits": (*THIRD, "--set", "promote.approve=by_hand"),
        "approved": ("promote", "small", "--version", "3", "--approve", "looked at it", "--json"),
        "back from that": ("rollback", "small", "--json"),
        "no challenger": ("promote", "small", "--json"),
        "no challenger of no model": ("promote", "smal", "--json"),
        "no such version": ("promote", "small", "--version", "9", "--json"),
        "no such model": ("rollback", "smal", "--json"),
    }
    try:
        told = {name: listener.types(*words) for name, words in commands.items()}
        told |= {name: finished.told[name] for name in ("first", "second", "third")}
        yield Versions(told, listener)
    finally:
        listener.close()


def test_a_first_version_that_meets_its_floor_is_promoted(versions: Versions):
    answer = versions.told["first"]
    assert answer.code == 0, answer.told()
    assert answer.json["model"] == {"name": "small", "version": 1, "aliases": ["champion"]}


def test_what_the_network_knew_before_it_was_fine_tuned_is_probed(versions: Versions):
    answer = versions.told["first"]
    probe = answer.json["probes"]["rows"]
    assert (probe["split"], probe["rows"]) == ("test", 60)
    assert 0 < probe["metrics"]["accuracy"] <= 1
    assert re.search(r"^probe rows +made .* accuracy [01]\.\d+ \(TF-IDF", answer.err, re.MULTILINE)
    assert "linear probe, accuracy on 60 test rows of rows: " in answer.err


def test_its_classes_are_told_by_a_few_rows_of_each(versions: Versions):
    answer = versions.told["first"]
    found = answer.json["prototypes"]["rows"]
    assert (found["split"], found["rows"], found["classes"]) == ("test", 60, 2)
    assert found["chance"] == {"2_way_1_shot": 0.5, "2_way_3_shot": 0.5}
    for table in ("metrics", "baseline"):
        assert 0.5 < found[table]["2_way_3_shot"] <= 1  # the classes have words of their own
    assert re.search(
        r"^prototypes rows +made .* 2-way 1-shot [01]\.\d+ ± ", answer.err, re.MULTILINE
    )
    assert "prototypes, accuracy in 50 episodes of 60 test rows of rows: 2-way" in answer.err


def test_explain_says_what_a_changed_seed_would_train_and_why(versions: Versions):
    steps = versions.told["why"].json["steps"]
    assert steps["stage general"] == ["settings.seed: 17 → 5"]
    assert steps["stage finetune"] == ["waits for stage general"]
    for name in ("corpus notes", "dataset rows", "tokenizer", "tokens notes"):
        assert "unchanged since" in steps[name][0], name


def test_a_refusal_is_exit_4_and_moves_no_alias(versions: Versions):
    for name, trained in (("third", "trained"), ("refused", "reused")):
        answer = versions.told[name]
        assert answer.code == 4, answer.told()
        summary = answer.json
        assert [stage["status"] for stage in summary["stages"]] == [
            "reused",
            "skipped",
            "skipped",
            trained,
        ]
        assert summary["gate"]["decision"] == "refuse"
        assert "accuracy" in summary["gate"]["reason"]
        assert summary["model"] == {"name": "small", "version": 3, "aliases": ["challenger"]}
    again = versions.told["refused again"]
    assert again.code == 4, again.told()
    assert again.json["decision"] == "refuse"


def test_a_refused_run_is_completed_in_prefect_and_named_refused(versions, prefect_server):
    body = {"flow_runs": {"state": {"name": {"any_": ["Refused"]}}}, "limit": 50}
    _, refused = post(f"{prefect_server}/flow_runs/filter", body)
    assert {run["state_type"] for run in refused} == {"COMPLETED"}
    for run in refused:
        assert "Exit code 4. Next: no action needed" in run["state"]["message"]
        stays = r"champion version [12] stays; `fourstage trace models:/small@champion`"
        assert re.search(stays, run["state"]["message"])
    names = [run["name"] for run in refused]
    for begin in ("lifecycle-small-", "promote-small-", "rollback-small-"):
        assert any(name.startswith(begin) for name in names), names
    _, failed = post(
        f"{prefect_server}/flow_runs/filter",
        {"flow_runs": {"name": {"any_": names}, "state": {"type": {"any_": ["CRASHED"]}}}},
    )
    assert failed == []


def test_the_cards_of_a_recipe_and_of_a_model_have_a_history_of_their_own(
    versions: Versions, prefect_server
):
    _, latest = post(f"{prefect_server}/artifacts/latest/filter", {"limit": 200})
    keys = {each["key"] for each in latest}
    # The stages were trained before there was a server.
    before = versions.listener.person.home / "prefect" / "prefect.db"
    with closing(sqlite3.connect(before)) as database:
        keys |= {key for (key,) in database.execute("select key from artifact")}
    of_recipe = {"contracts", "evaluation", "stage-general", "progress-general", "stages"}
    of_model = {"gate", "lineage", "rollback"}
    assert {f"small-{card}" for card in of_recipe | of_model} <= keys
    assert not keys & (of_recipe | of_model)


def test_a_first_champion_cannot_be_rolled_back(versions: Versions):
    answer = versions.told["nothing to go back to"]
    assert answer.code == 4, answer.told()
    assert "first champion" in answer.json["reason"]


def test_a_recipe_may_want_an_approval(versions: Versions, prefect_server):
    answer = versions.told["waits"]
    assert answer.code == 0, answer.told()
    assert answer.json["gate"]["decision"] == "wait"
    assert answer.json["model"]["aliases"] == ["challenger"]
    *_, last = answer.err.strip().splitlines()
    assert last.startswith(
        "small version 3 waits for somebody's approval: all 4 checks passed, but"
    )
    assert last.endswith("Approve it with  fourstage promote small --version 3 --approve 'WHY'")
    body = {"flow_runs": {"state": {"name": {"any_": ["AwaitingApproval"]}}}, "limit": 50}
    _, waiting = post(f"{prefect_server}/flow_runs/filter", body)
    named = {re.sub(r"-\d{4}-\d\d-\d\d-\d{4}$", "", run["name"]) for run in waiting}
    assert named == {"lifecycle-small", "promote-small"}
    assert {run["state_type"] for run in waiting} == {"COMPLETED"}
    approved = versions.told["approved"]
    assert approved.code == 0, approved.told()
    assert versions.aliases("approved") == {"name": "small", "version": 3, "aliases": ["champion"]}
    assert "approved by" in approved.json["reason"]
    assert versions.told["back from that"].json["champion"] == 2


def test_without_a_challenger_a_promotion_is_refused(versions: Versions, prefect_server):
    answer = versions.told["no challenger"]
    assert answer.code == 4, answer.told()
    assert answer.json["reason"].startswith("small has no challenger: version 2 is the champion.")
    assert answer.json["champion"] == 2
    body = {"flow_runs": {"state": {"name": {"any_": ["Refused"]}}}, "limit": 50}
    _, refused = post(f"{prefect_server}/flow_runs/filter", body)
    assert any("has no challenger" in run["state"]["message"] for run in refused)


def test_force_and_rollback_move_the_champion_and_back(versions: Versions):
    forced = versions.told["forced"]
    assert forced.code == 0, forced.told()
    assert versions.aliases("forced") == {"name": "small", "version": 3, "aliases": ["champion"]}
    back = versions.told["rolled back"]
    assert back.code == 0, back.told()
    assert versions.aliases("rolled back") == {
        "name": "small",
        "version": 2,
        "aliases": ["champion"],
    }


def test_a_better_version_becomes_champion_and_can_be_promoted_by_number(versions: Versions):
    second = versions.told["second"]
    assert second.code == 0, second.told()
    assert versions.aliases("second")["version"] == 2
    assert "champion" in versions.aliases("second")["aliases"]
    assert versions.aliases("back once more")["version"] == 1
    again = versions.told["run again"]
    assert again.code == 0, again.told()
    assert "somebody rolled version 2 back" in again.json["gate"]["reason"]
    assert versions.aliases("run again") == {
        "name": "small",
        "version": 2,
        "aliases": ["challenger"],
    }
    by_number = versions.told["by number"]
    assert by_number.code == 0, by_number.told()
    assert versions.aliases("by number") == {"name": "small", "version": 2, "aliases": ["champion"]}
    said = "small version 2 is the champion already: there was nothing to decide\n"
    assert versions.told["by number again"].out == said


def test_diff_says_what_differs_between_versions(versions: Versions):
    found = versions.told["what differs"].json
    assert (found["from"], found["to"]) == ("small version 1", "small version 2")
    (change,) = found["settings"]
    assert change["at"] == "stage finetune.phases"
    assert [phases[0][2] for phases in (change["from"], change["to"])][1] == 16
    assert found["data"] == []
    assert {each["at"] for each in found["scores"]} >= {"seconds/finetune"}
    told = versions.told["for people"].out
    assert told.startswith("small version 1 → small version 2\nsettings\n  stage finetune.phases: ")
    assert "\ndata: the same\n" in told
    assert re.search(r"^  seconds/finetune: .* → .* \([+-]", told, re.MULTILINE)


def test_what_does_not_exist_is_a_wrong_name(versions: Versions):
    version, model = versions.told["no such version"], versions.told["no such model"]
    unknown = versions.told["no challenger of no model"]
    assert unknown.code == 2, unknown.told()
    assert "did you mean 'small'?" in unknown.err
    assert version.code == 2, version.told()
    assert "Versions: 1, 2, 3" in version.err
    assert model.code == 2, model.told()
    assert "did you mean 'small'?" in model.err


def test_promotions_of_one_model_take_turns_over_all_machines(versions: Versions, prefect_server):
    """Another machine holds Prefect's limit; the lock of this home is free."""
    from prefect.client.orchestration import SyncPrefectClient

    rollbacks = {"flow_runs": {"name": {"like_": "rollback-small-"}}, "limit": 50}

    def running() -> int:
        _, found = post(f"{prefect_server}/flow_runs/filter", rollbacks)
        return sum(run["state_type"] == "RUNNING" for run in found)

    with SyncPrefectClient(prefect_server) as client, ThreadPoolExecutor(1) as pool:
        limit = client.read_global_concurrency_limit_by_name("promote-small")
        assert (limit.limit, limit.active_slots) == (1, 0)
        held = client.increment_concurrency_slots_with_lease(
            [limit.name], 1, "concurrency", lease_duration=60
        ).json()
        waiting = pool.submit(versions.listener.types, "rollback", "small", "--json")
        try:
            while not running():
                assert not waiting.done(), waiting.result().told()
                time.sleep(0.2)
            time.sleep(2)
            assert not waiting.done(), "it took no turn"
        finally:
            client.release_concurrency_slots_with_lease(held["lease_id"])
        assert waiting.result().code == 0, waiting.result().told()
        limit = client.read_global_concurrency_limit_by_name(limit.name)
        assert limit.active_slots == 0


def test_nothing_is_written_into_the_clone():
    assert not (REPOSITORY / "mlruns").exists()
    assert not (REPOSITORY / "mlflow.db").exists()
