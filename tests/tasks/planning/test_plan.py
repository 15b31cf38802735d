"""Steps of a recipe with two networks: what goes on from what, and what enters a student's key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpora.words import segmenter_settings
from fourstage.digests import digest
from fourstage.errors import ContractViolation, RecipeError
from fourstage.recipe.resolved import as_recipe
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe, resolve_recipe
from tasks.store.artifacts import Artifact
from tasks.store.step_names import LABELLED
from tasks.store.steps import bind
from tests.flows.own_project import FIELDS, Project, recipe, row, stages

PROMOTED = "promote={model: some-model, require: {}}"
TAUGHT = {
    "name": "student",
    "family": "distilbert",
    "size": "tiny",
    "objectives": {"masked_lm": {}, "distillation": {"teacher": "teacher"}},
}


def taught() -> list[dict]:
    """Four stages and a teacher of the first."""
    general, *later = stages()
    return [general | {"name": "teacher"}, general | TAUGHT, *later]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project") / "own")


@pytest.fixture(scope="module")
def plan(project: Project) -> Plan:
    return plan_recipe(str(project.recipe(recipe("taught", stages=taught()))))


def key(plan: Plan, name: str, outputs: dict[str, str]) -> str:
    """A step's key, each input being an entry of a fixed digest unless another one is given."""
    made = {
        step: Artifact(
            kind.kind, digest(outputs.get(step, step)), Path(), {}, {}, "", step, {}, {}, {}, ""
        )
        for step, kind in plan.steps.items()
    }
    return bind(plan.steps[name], made).key


def test_a_student_starts_anew_and_its_teacher_is_an_input(plan: Plan):
    student, domain = plan.steps["stage student"], plan.steps["stage domain"]
    assert "stage before" not in student.inputs
    assert student.inputs["teacher of distillation"] == "stage teacher"
    assert domain.inputs["stage before"] == "stage student"
    assert domain.inputs["teacher of distillation"] == "stage teacher"
    assert "teacher of distillation" not in plan.steps["stage finetune"].inputs


def test_other_weights_of_the_teacher_give_the_student_another_key(plan: Plan):
    before = key(plan, "stage student", {})
    assert key(plan, "stage student", {"stage teacher": "others"}) != before
    assert key(plan, "stage student", {"stage domain": "others"}) == before


def test_the_code_of_both_families_is_the_students(plan: Plan):
    assert [part.stem for part in plan.steps["stage student"].parts] == [
        "wordpiece",
        "distilbert",
        "bert",
        "distillation",
        "masked_lm",
    ]
    assert [part.stem for part in plan.steps["stage teacher"].parts] == [
        "wordpiece",
        "bert",
        "masked_lm",
    ]


def test_what_the_teacher_knew_is_not_forgotten_by_the_student(plan: Plan):
    measured = [role for role in plan.steps["evaluation"].inputs if role.startswith("measurement")]
    assert measured == [f"measurement {name}" for name in ("student", "domain", "task", "finetune")]
    assert "measurement teacher" in plan.steps


def test_a_folder_without_a_finished_stage_is_no_teacher(project: Project, tmp_path: Path):
    said = taught()
    said[1] = said[1] | {
        "objectives": {"masked_lm": {}, "distillation": {"teacher": str(tmp_path)}}
    }
    with pytest.raises(RecipeError, match="expected the folder of a finished stage"):
        plan_recipe(str(project.recipe(recipe("elsewhere", stages=said))))


def test_the_bytes_of_a_folder_are_in_the_key_and_its_place_is_not(project: Project, tmp_path):
    settings = []
    for place, weights in (("here", b"1"), ("there", b"1"), ("there", b"2")):
        folder = tmp_path / place
        (folder / "heads").mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")
        (folder / "network.safetensors").write_bytes(b"0")
        (folder / "heads" / "masked_lm.safetensors").write_bytes(weights)
        said = taught()
        objectives = {"masked_lm": {}, "distillation": {"teacher": str(folder)}}
        said[1] = said[1] | {"objectives": objectives}
        plan = plan_recipe(str(project.recipe(recipe("elsewhere", stages=said))))
        settings.append(plan.steps["stage student"].settings)
    here, there, other = settings
    assert here == there != other
    assert set(here["teachers"]["distillation"]) == {
        "config.json",
        "network.safetensors",
        "heads/masked_lm.safetensors",
    }


def test_both_networks_that_one_starts_from_are_inputs_and_no_stage_before(project: Project):
    general, *_, finetune = stages()
    size = {"num_layers": 1, "embedding_dim": 8, "hidden_dim": 8}
    first = general | {"name": "first", "objectives": {"causal_lm": {}}}
    pair = {
        "family": "seq2seq",
        "size": {"target_table": True, **size},
        "starts_from": {"encoder": "first", "decoder": "second"},
    }
    said = [first, first | {"name": "second", "size": size}, finetune | pair]
    written = recipe("pair", family="recurrent", size=size, stages=said, promote=None)
    plan = plan_recipe(str(project.recipe(written)))
    stage = plan.steps["stage finetune"]
    assert stage.inputs["start of encoder"] == "stage first"
    assert stage.inputs["start of decoder"] == "stage second"
    assert "stage before" not in stage.inputs
    before = key(plan, "stage finetune", {})
    for name in ("stage first", "stage second"):
        assert key(plan, "stage finetune", {name: "others"}) != before


def test_the_bytes_of_a_file_of_vectors_are_in_the_key_and_its_place_is_not(
    project: Project, tmp_path: Path
):
    def settings(name: str, text: str) -> dict:
        (tmp_path / name).write_text(text)
        first, *later = stages(general={"starts_from": {"embeddings": str(tmp_path / name)}})
        written = recipe("given", stages=[first, *later])
        return dict(plan_recipe(str(project.recipe(written))).steps["stage general"].settings)

    row = " ".join(["0.5"] * 128) + "\n"
    here, there = settings("here.txt", f"word {row}"), settings("there.txt", f"word {row}")
    assert here == there != settings("there.txt", f"world {row}")


def test_a_trigram_is_counted_in_the_text_that_its_network_has_read(project: Project):
    said = stages(general={"objectives": {"causal_lm": {}}})

    def counted(share: float) -> list[list[str] | None]:
        size = {"embedding_dim": 8, "intermediate_dim": 8, "trigram_share": share}
        written = recipe("mixed", family="nnlm", size=size, stages=said, promote=None)
        plan = plan_recipe(str(project.recipe(written)))
        measured = [plan.steps[f"measurement {each['stage']}"] for each in said]
        return [step.settings.get("counted") for step in measured]

    whole = ["letters", "notes", "rows"]
    assert counted(0.5) == [["notes"], ["letters", "notes"], whole, whole]
    assert counted(0.0) == [None] * 4


@pytest.fixture(scope="module")
def probed(project: Project) -> Plan:
    project.dataset("more", train=map(row, range(400, 440)), test=map(row, range(440, 460)))
    evaluate = {"metrics": ["accuracy"], "probes": {"more": "macro_f1", "rows": "micro_f1"}}
    said = recipe("probed", evaluate=evaluate)
    return plan_recipe(str(project.recipe(said)))


def test_probes_ask_the_network_before_it_sees_labels(probed: Plan):
    steps = probed.of_kind("probe")
    assert [step.name for step in steps] == ["probe more", "probe rows"]
    assert [step.inputs["stage"] for step in steps] == ["stage task", "stage task"]
    assert [step.settings["metric"] for step in steps] == ["macro_f1", "micro_f1"]
    assert {step.settings["split"] for step in steps} == {"test"}


def test_a_probed_dataset_goes_the_way_of_the_labelled_one(probed: Plan):
    for corpus in ("corpus notes", "corpus letters"):
        assert {"dataset more", "dataset rows"} <= set(probed.steps[corpus].inputs.values())
    assert probed.steps["dataset more"].settings["overlap"] == "drop_from_train"
    assert probed.steps["tokens more"].kind == "rows"
    assert probed.steps["contract more"].settings["parameters"] == {"overlap_free": 1.0}
    assert probed.steps["baseline more"].settings["metric"] == "macro_f1"
    # The finetune stage's own is chosen by the metric that decides about the model.
    assert probed.steps["baseline rows"].settings["metric"] == "accuracy"


def test_a_draw_of_training_rows_leaves_all_that_reads_text_alone(project: Project):
    stages = recipe()["stages"]
    few = [*stages[:-1], {**stages[-1], "training_rows": 8}]
    plain, drawn = (
        plan_recipe(str(project.recipe(recipe("drawn", stages=of)))).steps for of in (stages, few)
    )
    assert drawn["dataset rows"].settings["training_rows"] == [8, 0]
    for name in ("contract rows", "tokens rows", "baseline rows"):
        assert drawn[name].inputs["data"] == "dataset rows"
    assert drawn["evaluation"].inputs["dataset"] == "dataset rows"
    assert drawn["stage finetune"].inputs["tokens rows"] == "tokens rows"
    # Text alone is of all rows.
    assert drawn["corpus notes"].inputs == {"evaluation rows": "dataset rows whole"}
    assert drawn["stage task"].inputs["tokens rows"] == "tokens rows whole"
    before = drawn["measurement task"].inputs
    assert (before["tokens rows"], before[LABELLED]) == ("tokens rows whole", "tokens rows")
    whole = {name for name in drawn if name.endswith(" whole")}
    assert drawn.keys() - plain.keys() == whole
    assert {name.partition(" ")[0] for name in whole} == {"dataset", "contract", "tokens"}
    for name in whole:
        usual = plain[name.removesuffix(" whole")]
        assert drawn[name].settings == usual.settings
        assert {n.removesuffix(" whole") for n in drawn[name].inputs.values()} == {
            *usual.inputs.values()
        }


def test_each_seed_draws_training_rows_of_its_own_and_shares_the_pretraining(project: Project):
    stages = recipe()["stages"]
    few = [*stages[:-1], {**stages[-1], "training_rows": {"number": 8, "each_seed": True}}]
    seeds = {"values": [4, 5], "from": "finetune"}
    path = str(project.recipe(recipe("each", stages=few, seeds=seeds, seed=None)))
    first, second = (plan_recipe(path, seed=seed) for seed in (4, 5))
    assert first.steps["dataset rows"].settings["training_rows"] == [8, 4]
    assert second.steps["dataset rows"].settings["training_rows"] == [8, 5]
    for name, step in first.steps.items():
        if name.startswith(("stage task", "stage general", "tokens rows whole")):
            assert step.settings == second.steps[name].settings
    # What is written with every value draws the same rows again.
    for plan in (first, second):
        again = project.recipe(as_recipe(plan.recipe))
        drawn = plan_recipe(str(again)).steps["dataset rows"].settings["training_rows"]
        assert drawn == plan.steps["dataset rows"].settings["training_rows"]


def test_corpora_are_compared_with_evaluation_texts_without_their_markings(tmp_path: Path):
    project = Project(tmp_path / "own")
    files = {split: f"data/rows-{split}.jsonl" for split in ("train", "dev", "test")}
    path = project.recipe(recipe())
    assert "evaluation_markings" not in plan_recipe(str(path)).steps["corpus notes"].settings
    project.source(
        "rows", files=files, fields={**FIELDS, "label": "label"}, markings=["<e1>", "</e1>"]
    )
    assert plan_recipe(str(path)).steps["corpus notes"].settings["evaluation_markings"] == {
        "evaluation rows": ["<e1>", "</e1>"]
    }


def test_a_suite_that_would_quarantine_tokens_which_stages_read_is_refused(tmp_path: Path):
    project = Project(tmp_path / "own")
    path = project.recipe(recipe())
    (project.folder / "suites").mkdir()
    promise = {
        "id": "known",
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "unknown_share", "max_value": 0.5},
    }
    file = project.folder / "suites" / "tokens.json"
    file.write_text(json.dumps({"name": "tokens", "expectations": [promise]}))
    with pytest.raises(RecipeError, match=r"suites/tokens\.json: expectation 'known': a document"):
        plan_recipe(str(path))
    promise["level"] = "table"
    file.write_text(json.dumps({"name": "tokens", "expectations": [promise]}))
    assert plan_recipe(str(path)).steps["contract tokens notes"].given["suite"].name == "tokens"


def test_a_probe_changes_no_other_step(project: Project, probed: Plan):
    evaluate = {"metrics": ["accuracy"]}
    plain = plan_recipe(str(project.recipe(recipe("probed", evaluate=evaluate))))
    assert not plain.of_kind("probe")
    for name in plain.steps:
        if not name.startswith("corpus "):  # from which the probed rows' texts are taken
            assert key(plain, name, {}) == key(probed, name, {})


@pytest.fixture(scope="module")
def mixed(project: Project) -> Plan:
    project.dataset("beside", train=map(row, range(500, 540)), test=map(row, range(540, 560)))
    general, *_, finetune = stages()
    finetune |= {
        "dataset": "smoke_text",
        "head": {"sequence_to_sequence": {"target_length": 8, "prefix": "go on:"}},
        "mixture": {"beside": {"beside": "about:"}},
    }
    said = [general | {"objectives": {"causal_lm": {}}}, finetune]
    settings = {"evaluate": {"metrics": ["chrf"]}, "promote": None, "family": "gpt2"}
    # A vocabulary that is learned from the other dataset first does not prepare it first.
    tokenizer = {"vocabulary_size": 400, "learn_from": ["beside", "notes"]}
    return plan_recipe(
        str(project.recipe(recipe("mixed", stages=said, tokenizer=tokenizer, **settings)))
    )


def test_a_dataset_of_a_mixture_is_an_input_of_its_stage_behind_its_contract(mixed: Plan):
    stage = mixed.steps["stage finetune"]
    for name in ("smoke_text", "beside"):
        assert stage.inputs[f"tokens {name}"] == f"tokens {name}"
        assert stage.inputs[f"contract {name}"] == f"contract tokens {name}"
        assert mixed.steps[f"tokens {name}"].inputs["contract"] == f"contract {name}"
        assert mixed.steps[f"tokens {name}"].kind == "rows"
    before = key(mixed, "stage finetune", {})
    assert key(mixed, "stage finetune", {"tokens beside": "others"}) != before


def test_rows_of_a_mixture_do_not_repeat_what_the_stage_is_evaluated_on(mixed: Plan):
    assert mixed.steps["dataset beside"].inputs == {"evaluation smoke_text": "dataset smoke_text"}
    assert mixed.steps["dataset smoke_text"].inputs == {}
    assert mixed.steps["dataset beside"].settings["overlap"] == "drop_from_train"
    assert mixed.steps["contract beside"].settings["parameters"] == {"overlap_free": 1.0}
    # What counts afterwards are the rows of the stage's own dataset.
    for name in ("evaluation", "measurement finetune"):
        assert "tokens beside" not in mixed.steps[name].inputs
    assert mixed.steps["evaluation"].inputs["rows"] == "tokens smoke_text"


def test_classes_are_told_by_the_network_before_it_sees_labels(project: Project):
    project.source(
        "told",
        files={"train": "data/told-train.jsonl", "test": "data/told-test.jsonl"},
        fields={**FIELDS, "label": "label"},
        label_names={"kitchen": "kitchen", "weather": "weather"},
    )
    project.lines("told-train.jsonl", map(row, range(600, 640)))
    project.lines("told-test.jsonl", map(row, range(640, 660)))
    evaluate = {"metrics": ["accuracy"], "prototypes": {"told": {"ways": [2]}}}
    planned = plan_recipe(str(project.recipe(recipe("tells", evaluate=evaluate))))
    (step,) = planned.of_kind("prototypes")
    assert (step.name, step.inputs["stage"]) == ("prototypes told", "stage task")
    assert {k: step.settings[k] for k in ("ways", "shots", "split")} == {
        "ways": [2],
        "shots": [1, 5],
        "split": "test",
    }
    assert planned.steps["dataset told"].settings["overlap"] == "drop_from_train"
    assert planned.steps["contract told"].settings["classes"]
    assert "dataset told" in planned.steps["corpus notes"].inputs.values()
    evaluate["prototypes"]["told"]["ways"] = [2, 3]
    with pytest.raises(RecipeError, match=r"told\.ways: expected 2 at most, .* got 3"):
        plan_recipe(str(project.recipe(recipe("tells", evaluate=evaluate))))


def test_rows_are_asked_of_the_network_before_it_sees_labels(project: Project):
    project.dataset("asked", train=map(row, range(500, 540)), test=map(row, range(540, 560)))
    causal = {"objectives": {"causal_lm": {}}}
    few_shot = {"asked": {"shots": [0, 2], "template": "{text} is {answer}"}}
    changes = {"family": "gpt2", "stages": stages(general=causal)}
    evaluate = {"metrics": ["accuracy"], "few_shot": few_shot}
    planned = plan_recipe(str(project.recipe(recipe("asks", evaluate=evaluate, **changes))))
    (step,) = planned.of_kind("few_shot")
    assert (step.name, step.inputs["stage"]) == ("few_shot asked", "stage task")
    read = {name for role, name in step.inputs.items() if role.startswith("text ")}
    assert read == {"corpus notes", "corpus letters", "dataset rows"}
    assert step.inputs["contract of rows"] == "contract rows"
    assert (step.settings["seed"], step.settings["from_elsewhere"]) == (17, False)
    assert planned.steps["dataset asked"].settings["overlap"] == "drop_from_train"
    assert planned.steps["contract asked"].settings["classes"]
    assert "dataset asked" in planned.steps["corpus notes"].inputs.values()
    del evaluate["few_shot"]
    plain = plan_recipe(str(project.recipe(recipe("asks", evaluate=evaluate, **changes))))
    for name in set(plain.steps) - {"corpus notes", "corpus letters"}:
        assert key(plain, name, {}) == key(planned, name, {})


@pytest.mark.parametrize(
    ("metrics", "chooses"), [(["perplexity", "rougeL"], "rougeL"), (["perplexity"], "chrf")]
)
def test_a_baseline_which_has_no_perplexity_is_chosen_by_another_metric(
    metrics: list[str], chooses: str
):
    asked = [f"evaluate.metrics={metrics}"]
    steps = plan_recipe("tasks/multi30k-en-de", asked, smoke=True).steps
    assert steps["baseline smoke_text"].settings["metric"] == chooses
    assert steps["evaluation"].settings["metrics"] == metrics
    assert steps["measurement finetune"].settings["metric"] == "perplexity"


def test_after_the_labels_only_what_may_be_forgotten_is_read_again(project: Project):
    def measured(evaluate: dict[str, Any]) -> dict[str, set[str]]:
        said = recipe("forgets", evaluate=evaluate, promote=None)
        steps = plan_recipe(str(project.recipe(said))).steps
        inputs = {s: steps[f"measurement {s}"].inputs for s in ("task", "finetune")}
        assert inputs["finetune"][LABELLED] == "tokens rows"
        named = "measurement finetune" in steps["evaluation"].inputs
        assert named == ("forgetting_on" in evaluate), "it is read for forgetting alone"
        return {
            s: {role for role in each if role.startswith("tokens ")} for s, each in inputs.items()
        }

    all_texts = {"tokens notes", "tokens letters", "tokens rows"}
    plain = {"metrics": ["accuracy"]}
    assert measured(plain) == {"task": all_texts, "finetune": set()}
    asked = plain | {"forgetting_on": ["notes"]}
    assert measured(asked) == {"task": all_texts, "finetune": {"tokens notes"}}


def test_a_model_that_writes_is_measured_on_its_rows_after_the_labels():
    steps = plan_recipe("tasks/multi30k-en-de", smoke=True).steps
    assert "tokens smoke_text" in steps["measurement finetune"].inputs


def test_without_pretraining_there_is_nothing_to_probe(project: Project):
    evaluate = {"metrics": ["accuracy"], "probes": {"rows": "accuracy"}}
    said = recipe("unread", stages=stages(finetune={"sequence_length": 32})[3:], evaluate=evaluate)
    assert not plan_recipe(str(project.recipe(said))).of_kind("probe")


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose head answers with something that is no class."""
    own = Project(tmp_path_factory.mktemp("lists") / "own")
    for kind in ("heads", "answers"):
        (own.folder / kind).mkdir()
    (own.folder / "heads" / "listing.py").write_text(
        "CHOOSES = 2\nANSWERS = 'lists'\nclass Listing:\n    def __init__(self, context): ...\n",
        encoding="utf-8",
    )
    (own.folder / "answers" / "lists.py").write_text(
        "class Lists:\n    is_class, is_served = False, False\n"
        "    usual, metrics = ('exact',), {'exact': None}\n",
        encoding="utf-8",
    )
    fields = {"id": "id", "text": "text", "label": "label"}
    own.source("rows", files={"train": "data/rows-train.jsonl"}, fields=fields, answers="lists")
    return own


def test_answers_that_are_no_class_have_no_baseline(lists: Project):
    whole = recipe("lists", stages=stages(finetune={"head": {"listing": {}}}), promote=None)
    steps = plan_recipe(str(lists.recipe(whole | {"evaluate": {}}))).steps
    assert not [name for name in steps if name.startswith("baseline")]
    assert steps["evaluation"].settings["metrics"] == ["exact"]
    assert lists.folder / "answers" / "lists.py" in steps["evaluation"].parts
    assert steps["contract rows"].settings["classes"] is False


def test_a_model_whose_answers_are_no_class_is_not_promoted(lists: Project):
    whole = recipe("promoted", stages=stages(finetune={"head": {"listing": {}}}))
    whole |= {"evaluate": {}, "promote": {"model": "lists"}}
    with pytest.raises(RecipeError, match="head listing can't be served and judged yet"):
        plan_recipe(str(lists.recipe(whole)))


def test_a_network_that_sees_reads_regions_of_the_datasets_width():
    said = r"stages\[1\]\.dataset: expected regions of 2048 .* nlvr, whose regions have 39; give"
    with pytest.raises(RecipeError, match=said):
        resolve_recipe("tasks/nlvr", ["size.region_dim=2048"])
    assert resolve_recipe("tasks/nlvr")[0].notes == ()
    resolve_recipe("tasks/mrpc", ["family=lxmert", "size=base"])  # no pictures, no regions
    blind = resolve_recipe("tasks/nlvr", ["family=bert", "size=tiny"])[0]
    assert "which family bert does not see" in blind.notes[0]


def test_a_model_that_sees_is_packaged_unless_it_needs_a_detector(project: Project):
    most = {
        name: plan_recipe("tasks/nlvr", [f"family={name}", "size=tiny", PROMOTED], smoke=True)
        .steps["package"]
        .settings.get("most_regions")
        for name in ("lxmert", "bert")
    }
    assert most == {"lxmert": 36, "bert": None}
    resolve_recipe("tasks/nlvr", [PROMOTED])
    project.source(
        "detected",
        files={split: f"data/{split}.jsonl" for split in ("train", "test")},
        fields={"text": "text", "label": "label", "picture": "image_id"},
        pictures={"files": ["data/regions.tsv"], "region_dim": 39},
    )
    stage = stages()[-1] | {"dataset": "detected"}
    asked = recipe("detecting", family="lxmert", stages=[*stages()[:-1], stage], evaluate={})
    with pytest.raises(RecipeError, match="it needs the detector that found these regions"):
        resolve_recipe(str(project.recipe(asked)))
    blind = {**asked, "name": "blind", "family": "bert"}
    assert resolve_recipe(str(project.recipe(blind)))[0].model == "detecting"


def test_a_source_that_is_no_test_of_word_vectors_is_refused_before_any_work(project: Project):
    stage = {"stage": "general", "corpora": {"notes": 1.0}, "objectives": {"skip_gram": {}}}
    asked = {"family": "word2vec", "stages": [stage], "promote": None}
    asked["evaluate"] = {"word_relations": ["letters"]}
    with pytest.raises(ContractViolation, match=r"word_relations: letters: .*letters\.jsonl:1: "):
        plan_recipe(str(project.recipe(recipe("related", **asked))))


def test_a_word_in_context_needs_marked_words_and_two_labels_of_these_names(project: Project):
    general, *_ = stages()
    project.contexts("contexts")
    project.source(
        "others",
        files={"train": "data/contexts-train.jsonl"},
        fields={"id": "id", "text": "text", "text_pair": "pair", "label": "label"},
        label_names={"same": "T", "different": "F"},
        markings=["<<", ">>"],
    )

    def asked(name: str) -> dict[str, Any]:
        evaluate = {"word_in_context": [name], "split": "dev"}
        whole = recipe(f"asks-{name}", stages=[general], evaluate=evaluate, promote=None)
        return dict(plan_recipe(str(project.recipe(whole))).steps)

    step = asked("contexts")["word_in_context contexts"]
    assert (step.settings["split"], step.settings["chosen_on"]) == ("dev", "train")
    with pytest.raises(RecipeError, match="others has 2 markings and the labels F, T"):
        asked("others")


def test_a_graph_has_its_own_vocabulary_which_links_the_names_of_texts():
    plan = plan_recipe("papers/ernie-tsinghua", [PROMOTED], smoke=True)
    graph, text = plan.steps["stage graph"], plan.steps["stage text"]
    assert graph.inputs["tokenizer"] == "tokenizer graph"
    assert text.inputs["tokenizer"] == "tokenizer"
    assert text.inputs["start of entities"] == "stage graph"
    assert plan.steps["tokenizer graph"].settings["scheme"] == "name"
    triples, words = plan.steps["tokens smoke_triples"], plan.steps["tokens smoke_general"]
    assert triples.inputs["tokenizer"] == "tokenizer graph"
    assert (words.inputs["tokenizer"], words.inputs["entities"]) == ("tokenizer", "tokenizer graph")
    assert plan.steps["tokens smoke_labels"].settings["entities"] == words.settings["entities"]
    assert "entities" not in triples.settings
    measured = plan.steps["measurement graph"]
    assert measured.settings["objective"] == "transe"
    assert LABELLED not in measured.inputs
    assert "tokens smoke_general" not in measured.inputs
    assert "tokens smoke_triples" not in plan.steps["measurement text"].inputs
    package = plan.steps["package"]
    assert package.inputs["entities"] == "tokenizer graph"
    assert package.settings["entities"] == words.settings["entities"]
    assert package.given["entities"] == words.given["entities"]
    other = ["tokenizer={scheme: unigram, vocabulary_size: 30522, lowercase: false}"]
    with pytest.raises(RecipeError, match="unigram, whose graph doesn't say where tokens lie"):
        plan_recipe("papers/ernie-tsinghua", [*other, PROMOTED], smoke=True)


def test_only_a_model_that_is_to_be_registered_is_packed():
    alone = plan_recipe("papers/bert", smoke=True).steps
    promoted = plan_recipe("papers/bert", [PROMOTED], smoke=True).steps
    assert set(promoted) - set(alone) == {"package"}
    assert "package" in promoted["evaluation"].inputs
    assert alone["stage finetune"].settings == promoted["stage finetune"].settings


def test_a_segmenter_and_its_dictionary_are_in_the_key_of_a_vocabulary(project: Project):
    def planned(**tokenizer: str):
        whole = recipe("cut", stages=stages()[:1], promote=None, evaluate=None)
        return plan_recipe(str(project.recipe(whole | {"tokenizer": tokenizer})))

    plain, cut = planned(scheme="word"), planned(scheme="word", segmenter="rjieba")
    assert cut.steps["tokenizer"].settings == {
        **plain.steps["tokenizer"].settings,
        "segmenter": segmenter_settings("rjieba"),
    }
    # The text is read without the segmenter, by what the vocabulary says.
    assert cut.steps["tokens notes"].settings == plain.steps["tokens notes"].settings


def test_a_list_of_entities_is_read_before_any_work(project: Project):
    names = project.folder / "data" / "names.tsv"
    names.write_text("Context\tcontext\n", encoding="utf-8")
    size = {"hidden_dim": 32}
    names_of_graph = {"scheme": "name", "vocabulary_size": 2000, "minimum_count": 1}
    graph = {
        **{"stage": "general", "name": "graph", "family": "transe", "size": size},
        **{"tokenizer": names_of_graph, "corpora": {"smoke_triples": 1.0}},
        **{"objectives": {"transe": {}}, "budget": {"epochs": 1}},
    }
    general = {key: value for key, value in stages()[0].items() if key != "objectives"}
    text = {**general, "family": "ernie_tsinghua", "size": "tiny", "objectives": {"masked_lm": {}}}
    text |= {"name": "text", "starts_from": {"entities": "graph"}}
    whole = recipe("knowing", stages=[graph, text], promote=None, evaluate=None)
    whole |= {"family": "ernie_tsinghua", "units": {"entities": "data/names.tsv"}}
    file = str(project.recipe(whole))
    before = plan_recipe(file).steps["tokens notes"].settings["entities"]
    names.write_text("Context\tcontext\nGroup\tgroup\n", encoding="utf-8")
    assert plan_recipe(file).steps["tokens notes"].settings["entities"] != before
    names.write_text("Context\tcontext\nGroup, group\n", encoding="utf-8")
    with pytest.raises(
        ContractViolation, match=r"^units.entities: .*names.tsv:2: expected id<TAB>"
    ):
        plan_recipe(file)
