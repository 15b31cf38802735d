"""Every recipe goes through all its stages as smoke, and a taught network tells who taught it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from fourstage.recipe.loading import load_recipe, recipe_names
from fourstage.recipe.resolution import resolve
from tasks.orchestration.naming import card_key
from tasks.tracking.record_results import PLACE
from tests.flows.own_project import Project, recipe, stages
from tests.flows.person import Person

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def somebody(person: Callable[..., Person], tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody with one home for all recipes, so that they share their text."""
    return person(tmp_path_factory.mktemp("anywhere"))


@pytest.mark.parametrize("name", sorted(recipe_names([])))
def test_a_recipe_runs_through_all_its_stages(somebody: Person, name: str):
    whole = resolve(load_recipe(name, smoke=True))
    wanted = whole.stages
    model = f"promote={{model: {name.replace('/', '-')}, require: {{}}}}"
    served = ["--set", model] if whole.finetune and not whole.model else []
    answer = somebody.types("run", name, "--smoke", *served, "--json")
    assert answer.code == 0, answer.told()
    done = [stage for stage in answer.json["stages"] if stage["status"] != "skipped"]
    assert [stage["stage"] for stage in done] == [stage.name for stage in wanted]
    # What another recipe has trained in this home is not trained again.
    assert {stage["status"] for stage in done} <= {"trained", "reused"}
    assert all(stage["steps"] > 0 and stage["tokens"] > 0 for stage in done)
    assert all(0 <= value <= 1 for value in answer.json["metrics"].values())


def test_examples_with_pictures_are_shown_with_the_boxes_of_their_regions(
    somebody: Person, tmp_path: Path
):
    answer = somebody.types("run", "papers/unicoder-vl", "--smoke", "--json")
    assert answer.code == 0, answer.told()
    client = MlflowClient(f"sqlite:///{somebody.home / 'mlflow.db'}")
    files = {file.path for file in client.list_artifacts(answer.json["lifecycle_run"], PLACE)}
    with closing(sqlite3.connect(somebody.home / "prefect" / "prefect.db")) as database:
        cards = dict(database.execute("select key, data from artifact"))
    for stage in ("general", "finetune"):
        assert f"{PLACE}/word_regions_measurement_{stage}.png" in files
        card = cards[card_key("unicoder-vl-smoke", f"stage-{stage}")]
        assert "![Words and the regions of their picture](data:image/png;base64," in card
    for stage in ("general", "finetune"):
        folder = tmp_path / stage
        shown = somebody.types(
            "show", "papers/unicoder-vl", "--smoke", stage, "--pictures", str(folder)
        )
        assert shown.code == 0, shown.told()
        examples = shown.out.count("picture: ")
        assert examples >= 10
        drawn = sorted(folder.iterdir())
        wanted = [f"{i:02d}.png" for i in range(1, examples + 1)]
        assert [file.name for file in drawn] == [*wanted, "word_regions.png"]
        assert all(file.read_bytes().startswith(b"\x89PNG") for file in drawn)
    for taken in (tmp_path / "general", tmp_path / "general" / "01.png"):
        again = somebody.types("show", "papers/bert", "general", "--pictures", str(taken))
        assert again.code == 2
        assert "--pictures: expected a new or an empty folder" in again.err
    blind = somebody.types(
        "show", "papers/bert", "--smoke", "general", "--pictures", str(tmp_path / "no")
    )
    assert blind.code != 0
    assert not (tmp_path / "no").exists()


def taught() -> list[dict]:
    """A teacher before the four stages of its student."""
    general, *later = stages()
    student = general | {
        "family": "distilbert",
        "size": "tiny",
        "objectives": {"masked_lm": {}, "distillation": {"teacher": "teacher"}},
    }
    return [general | {"name": "teacher"}, student, *later]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project") / "own")


def test_a_version_is_traced_to_its_teacher(person: Callable[..., Person], project: Project):
    project.recipe(recipe("taught", stages=taught()))
    pupil = person(project.folder)
    answer = pupil.types("run", "taught", "--json")
    assert answer.code == 0, answer.told()
    by_name = {stage["stage"]: stage for stage in answer.json["stages"]}
    assert list(by_name) == ["teacher", "general", "domain", "task", "finetune"]
    for stage in (by_name["teacher"], by_name["general"]):
        assert stage["gained"]["loss on notes"] == pytest.approx(
            stage["heldout_loss"]["notes"] - stage["unigram_loss"]["notes"]
        )
    assert "loss on notes" in by_name["domain"]["gained"]

    hops = pupil.types("trace", "models:/taught@champion", "--json").json["hops"]
    stage = {hop["stage"]: hop for hop in hops if hop["kind"] == "stage"}
    assert set(stage) == set(by_name)
    assert stage["general"]["inputs"]["teacher of distillation"] == stage["teacher"]["key"]
    assert "stage before" not in stage["general"]["inputs"]
    assert stage["domain"]["inputs"]["stage before"] == stage["general"]["key"]
    assert all(hop["model_id"] and hop["run_id"] for hop in stage.values())

    runs = pupil.python(MODELS_READ, stage["general"]["run_id"], stage["domain"]["run_id"],
                        MLFLOW_TRACKING_URI=f"sqlite:///{pupil.home / 'mlflow.db'}")  # fmt: skip
    general, domain = runs.json
    assert general == [stage["teacher"]["model_id"]]
    assert sorted(domain) == sorted([stage["general"]["model_id"], stage["teacher"]["model_id"]])
    assert pupil.types("run", "taught", "--json").json["stages"][1]["status"] == "reused"


def test_a_version_is_traced_to_both_language_models_that_it_began_as(
    person: Callable[..., Person], project: Project
):
    size = {"num_layers": 1, "embedding_dim": 16, "hidden_dim": 16}
    source = {
        "stage": "general",
        "name": "source_lm",
        "corpora": {"smoke_general": 1.0},
        "objectives": {"causal_lm": {}},
        "sequence_length": 32,
        "batch_size": 8,
        "budget": {"steps": 4},
    }
    target = {"name": "target_lm", "corpora": {"smoke_domain": 1.0}, "size": size}
    pair = {
        "stage": "finetune",
        "family": "seq2seq",
        "size": {"target_table": True, **size},
        "starts_from": {"encoder": "source_lm", "decoder": "target_lm"},
        "dataset": "smoke_text",
        "head": {"sequence_to_sequence": {"target_length": 8}},
        "objectives": {"joint_lm": {}},
        "sequence_length": 32,
        "batch_size": 8,
        "budget": {"steps": 4},
    }
    written = recipe(
        "pair",
        family="recurrent",
        size=size,
        stages=[source, source | target, pair],
        evaluate={"metrics": ["rouge1"]},
        promote={"model": "pair", "require": {"rouge1": {"at_least": 0.0}}},
    )
    project.recipe(written)
    teacher = person(project.folder)
    answer = teacher.types("run", "pair", "--json")
    assert answer.code == 0, answer.told()
    hops = teacher.types("trace", "models:/pair@champion", "--json").json["hops"]
    stage = {hop["stage"]: hop for hop in hops if hop["kind"] == "stage"}
    assert set(stage) == {"source_lm", "target_lm", "finetune"}
    inputs = stage["finetune"]["inputs"]
    assert inputs["start of encoder"] == stage["source_lm"]["key"]
    assert inputs["start of decoder"] == stage["target_lm"]["key"]
    tracking = f"sqlite:///{teacher.home / 'mlflow.db'}"
    run = stage["finetune"]["run_id"]
    runs = teacher.python(MODELS_READ, run, MLFLOW_TRACKING_URI=tracking)
    parents = [stage[name]["model_id"] for name in ("source_lm", "target_lm")]
    assert sorted(runs.json[0]) == sorted(parents)


def test_a_network_from_elsewhere_is_the_stage_general(
    person: Callable[..., Person], project: Project
):
    project.recipe(recipe("first", stages=stages()))
    researcher = person(project.folder)
    first = researcher.types("run", "first", "--json")
    assert first.code == 0, first.told()
    task = next(stage for stage in first.json["stages"] if stage["stage"] == "task")
    folder = researcher.home / "store" / "stage" / task["key"]
    assert researcher.types("convert", str(folder), "network").code == 0

    later = stages(domain={"sequence_length": 32})[1:]
    start = {"stage": "general", "init": "folder:network"}
    project.recipe(recipe("given", stages=[start, *later], size=None, tokenizer=None))
    answer = researcher.types("run", "given", "--json")
    assert answer.code == 0, answer.told()
    taken = answer.json["stages"][0]
    assert (taken["status"], taken["steps"]) == ("imported", 0)
    # The way to Hugging Face's names and back has lost nothing.
    assert taken["weights_digest"] == task["weights_digest"]
    assert taken["heldout_loss"] == task["heldout_loss"]

    hops = researcher.types("trace", "models:/given@champion", "--json").json["hops"]
    inits = [hop.get("init") for hop in hops if hop["kind"] == "stage"]
    assert inits == ["folder:network", None, None, None]
    again = researcher.types("run", "given", "--json").json
    assert [stage["status"] for stage in again["stages"]] == ["reused"] * 4
    shown = researcher.types("show", "given", "general")
    assert (shown.code, "sees no examples here" in shown.err) == (2, True)
    shown = researcher.types("show", "given", "finetune")
    assert (shown.code, shown.out.count("\nanswer: ")) == (0, 10)

    start["init"] = "models:/first@champion"
    # Another seed: with the same one all that follows is what came of the folder, and says so.
    settings = {"size": None, "tokenizer": None, "seed": 23}
    project.recipe(recipe("later", stages=[start, later[-1]], **settings))
    answer = researcher.types("run", "later", "--json")
    assert answer.code == 0, answer.told()
    # What a version was pre-trained to, and none of its labels.
    assert answer.json["stages"][0]["weights_digest"] == task["weights_digest"]
    hops = researcher.types("trace", "models:/later@champion", "--json").json["hops"]
    assert "models:/first/1" in [hop.get("init") for hop in hops]

    table = stages(general={"starts_from": {"embeddings": "models:/first@champion"}})
    vocabulary = {"vocabulary_size": 400, "learn_from": ["notes", "letters"]}  # as first has it
    project.recipe(recipe("table", stages=[table[0], table[-1]], tokenizer=vocabulary))
    answer = researcher.types("run", "table", "--json")
    assert answer.code == 0, answer.told()
    assert "its embeddings from models:/first/1" in researcher.types("trace", "table@champion").out

    start["init"] = "models:/frist@champion"
    project.recipe(recipe("later", stages=[start, *later], **settings))
    refused = researcher.types("plan", "later")
    assert refused.code == 2
    assert "stages[0].init: models:/frist@champion" in refused.err
    assert "did you mean 'first'" in refused.err


MODELS_READ = """
import json, sys
from mlflow import MlflowClient
runs = [MlflowClient().get_run(run) for run in sys.argv[1:]]
print(json.dumps([[model.model_id for model in run.inputs.model_inputs] for run in runs]))
"""


def test_other_weights_of_the_teacher_train_the_student_again(
    person: Callable[..., Person], project: Project
):
    project.recipe(recipe("retaught", stages=taught(), promote=None))
    pupil = person(project.folder)
    first = pupil.types("run", "retaught", "--json").json
    longer = pupil.types(
        "run", "retaught", "--set", "stages.teacher.budget.steps=31", "--json"
    ).json
    assert [stage["status"] for stage in longer["stages"]] == ["trained"] * 5
    other = pupil.types("run", "retaught", "--set", "stages.domain.budget.steps=21", "--json").json
    assert [stage["status"] for stage in other["stages"]] == ["reused"] * 2 + ["trained"] * 3
    assert first["stages"][1]["weights_digest"] != longer["stages"][1]["weights_digest"]


def test_with_and_without_a_teacher_is_compared_on_equal_tokens(
    person: Callable[..., Person], project: Project
):
    _, student, *later = taught()
    alone = [student | {"objectives": {"masked_lm": {}}, "budget": {"steps": 60}}, *later]
    project.recipe(recipe("with-teacher", stages=taught(), promote=None))
    project.recipe(recipe("without", stages=alone, promote=None))
    pupil = person(project.folder)
    words = ("compare", "with-teacher", "without", "--equal", "tokens", "--json")
    answer = pupil.types(*words)
    assert answer.code == 0, answer.told()
    with_teacher, without = answer.json["recipes"]
    assert with_teacher["stages"] == ["teacher", *without["stages"]]
    read = [recipe["pretraining"]["tokens"] for recipe in (with_teacher, without)]
    assert read[1] == pytest.approx(read[0], rel=0.15), "the teacher's own are not the student's"
    assert with_teacher["teachers"]["tokens"] > without["teachers"]["tokens"] == 0
    for each in answer.json["recipes"]:
        parts = [each[part]["tokens"] for part in ("teachers", "pretraining", "finetuning")]
        assert each["tokens"] == sum(parts), "the teacher's own are paid for"


def test_a_wrong_teacher_is_refused_before_any_work(
    person: Callable[..., Person], project: Project
):
    project.recipe(recipe("mistaught", stages=taught()))
    pupil = person(project.folder)
    wrong = "stages.general.objectives.distillation.teacher=techer"
    answer = pupil.types("run", "mistaught", "--set", wrong)
    assert answer.code == 2, answer.told()
    assert "'techer' is not an earlier stage of the recipe; did you mean 'teacher'?" in answer.err
    assert not (pupil.home / "store").exists()
