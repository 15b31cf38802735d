"""Answers of finished runs become contests: a pre-training counts once, whoever shares it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas
import pytest

from fourstage.errors import RecipeError
from models.answers.text import written
from models.evaluation.comparison import BETTER, UNCLEAR, WORSE
from models.evaluation.rivals.label import NAME as CHEAP
from tasks.comparison.contests import PROBE_MEAN, contests_of, words_read
from tasks.comparison.participants import SeedRun, scored_steps
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact
from tasks.store.predictions import PREDICTIONS
from tests.flows.own_project import Project, recipe, row, stages

ROWS = 40
SETS = ("2_way_1_shot", "2_way_5_shot")  # of ways and shots, in halves of the rows
PROBES = {"rows": "accuracy", "more": "macro_f1"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("project") / "own")
    made.dataset("more", train=map(row, range(400, 440)), test=map(row, range(440, 460)))
    made.contexts("senses")
    return made


class Answers:
    """Runs whose answers are right in as many rows as is said.

    Args:
        folder: Where their files go.
        project: With the recipe's sources.
    """

    def __init__(self, folder: Path, project: Project):
        self.folder, self.project = folder, project
        self.count = 0

    def artifact(self, name: str, right: int, keys: str = "", first: str = "r") -> Artifact:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir(parents=True)
        labels = ["kitchen", "weather"] * (ROWS // 2)
        wrong = ["weather", "kitchen"] * (ROWS // 2)
        table = {
            "id": [f"{first}{i}" for i in range(ROWS)],
            "label": labels,
            "predicted": labels[:right] + wrong[right:],
        }
        if not name.startswith("word_in_context"):
            table |= {"text": range(ROWS), "baseline": labels[:30] + wrong[30:]}
        facts: dict[str, Any] = {"labels": ["kitchen", "weather"]}
        if name.startswith("prototypes"):
            table["asked"] = [SETS[2 * i // ROWS] for i in range(ROWS)]
            facts["metrics"] = dict.fromkeys(SETS, 0.0)
        pandas.DataFrame(table).to_parquet(folder / PREDICTIONS)
        outputs = {PREDICTIONS: ""}
        return Artifact(name, "", folder, outputs, facts, keys or name, name, {}, {}, {}, "")

    def runs(
        self, name: str, right: Mapping[tuple[int, int], int], **changes: Any
    ) -> list[SeedRun]:
        """One run of each (seed, number of its pre-training): its probes are right so often."""
        whole = {"evaluate": {"metrics": ["accuracy"], "probes": PROBES}} | changes
        path = str(self.project.recipe(recipe(name, **whole)))
        found = []
        for (seed, pretraining), often in right.items():
            plan = plan_recipe(path)
            made = {}
            read = [step.name for step in plan.of_kind("rows", "stage")]
            for step in (*scored_steps(plan), *read):
                key = f"{step} {seed if step == 'stage finetune' else pretraining}"
                made[step] = self.artifact(step, often, f"{name} {key}")
            found.append(SeedRun(plan, seed, made))
        return found


def test_dev_scores_after_the_labels_are_not_read(project: Project):
    read = scored_steps(plan_recipe(str(project.recipe(recipe("read")))))
    assert {"evaluation", "measurement task"} <= {*read}
    assert "measurement finetune" not in read


@pytest.fixture
def answers(tmp_path: Path, project: Project) -> Answers:
    return Answers(tmp_path / "answers", project)


def test_fine_tunings_of_one_pretraining_share_its_probes_which_count_once(answers: Answers):
    runs = {"one": answers.runs("one", {(1, 1): 20, (2, 1): 20, (3, 1): 20, (4, 2): 36})}
    found = contests_of(runs, [("one", CHEAP)], CHEAP)
    assert list(found) == [PROBE_MEAN, "accuracy"]
    on, contest = found[PROBE_MEAN]
    assert [(each.name, each.metric) for each in on] == list(PROBES.items())
    cheap, score = contest.scores
    assert score.values == score.trainings == pytest.approx((0.5, 0.9), abs=0.01)
    assert score.mean == pytest.approx(0.7, abs=0.01)  # and not .6, the mean of four runs
    assert score.parts[0] == pytest.approx(0.7)
    assert cheap.mean == pytest.approx(0.75, abs=0.01)
    assert contest.rows == (ROWS, ROWS)
    fine_tuned = found["accuracy"][1].scores[1]
    assert fine_tuned.values == pytest.approx((0.5, 0.5, 0.5, 0.9))
    # Three fine-tunings within one pre-training, and one within another; probes have one level.
    assert fine_tuned.hierarchical is not None
    assert score.hierarchical is None


def test_what_has_no_pretraining_has_no_probes_and_no_contrasts_on_them(answers: Answers):
    seen = answers.runs("seen", {(1, 1): 30, (2, 2): 32})
    unread = stages(finetune={"sequence_length": 32})[3:]
    unseen = answers.runs("unseen", {(1, 1): 20, (2, 2): 22}, stages=unread)
    contrasts = [("seen", "unseen"), ("unseen", CHEAP), ("seen", CHEAP)]
    found = contests_of({"unseen": unseen, "seen": seen}, contrasts, CHEAP)
    judged = {
        score: [(d.candidate, d.reference) for d in contest.differences]
        for score, (_, contest) in found.items()
    }
    assert judged == {PROBE_MEAN: [("seen", CHEAP)], "accuracy": contrasts}
    assert [score.name for score in found[PROBE_MEAN][1].scores] == [CHEAP, "seen"]


def test_without_fine_tuning_probes_are_the_only_score(answers: Answers):
    evaluate = {"probes": PROBES}
    changes = {"stages": stages()[:2], "evaluate": evaluate, "promote": None}
    runs = {name: answers.runs(name, {(1, 1): 30}, **changes) for name in ("one", "two")}
    assert list(contests_of(runs, [("two", "one")], CHEAP)) == [PROBE_MEAN]


def test_words_in_context_are_a_score_of_the_pretraining_which_needs_no_labelled_rows(
    answers: Answers,
):
    asked = {"word_in_context": ["senses"]}
    tuned = answers.runs("tuned", {(1, 1): 30, (2, 2): 32}, evaluate={"metrics": ["accuracy"]})
    read = {"stages": stages()[:2], "promote": None, "evaluate": asked}
    both = {"evaluate": {"metrics": ["accuracy"]} | asked}
    runs = {
        "read": answers.runs("read", {(1, 1): 20, (2, 2): 24}, **read),
        "tuned": tuned,
        "both": answers.runs("both", {(1, 1): 30, (2, 1): 30, (3, 2): 36}, **both),
    }
    contrasts = [("both", "read"), ("both", "tuned"), ("both", CHEAP)]
    found = contests_of(runs, contrasts, CHEAP)
    assert {
        score: [(d.candidate, d.reference) for d in c.differences]
        for score, (_, c) in found.items()
    } == {
        "accuracy": [("both", "tuned"), ("both", CHEAP)],
        "word_in_context/senses": [("both", "read")],
    }
    read, both = found["word_in_context/senses"][1].scores
    assert (read.name, both.name) == ("read", "both")
    assert read.mean == pytest.approx(0.55)
    assert both.trainings == pytest.approx((0.75, 0.9))  # and not three


def test_each_number_of_ways_and_shots_is_a_score_of_the_pretraining(answers: Answers):
    evaluate = {"metrics": ["accuracy"], "prototypes": {"more": {"ways": [2], "shots": [1, 5]}}}
    runs = {
        "both": answers.runs("both", {(1, 1): 30, (2, 1): 30, (3, 2): 36}, evaluate=evaluate),
        "tuned": answers.runs("tuned", {(1, 1): 30}, evaluate={"metrics": ["accuracy"]}),
    }
    found = contests_of(runs, [("both", CHEAP)], CHEAP)
    assert list(found) == ["accuracy", *(f"prototypes/more/{asked}" for asked in SETS)]
    for asked, trainings, rival in zip(SETS, ((1.0, 1.0), (0.5, 0.8)), (1.0, 0.5), strict=True):
        on, contest = found[f"prototypes/more/{asked}"]
        assert [each.fact for each in on] == [asked]
        cheap, both = contest.scores
        assert (cheap.mean, both.name) == (rival, "both")
        assert both.trainings == pytest.approx(trainings)  # and not three
        assert contest.rows == (ROWS // 2,)


def test_each_recipe_is_held_against_the_baseline_of_its_own_training_rows(answers: Answers):
    draws = {"all": None, "few": 8, "again": {"number": 8, "seed": 1}, "too": 8}
    runs = {
        name: answers.runs(name, {(1, 1): 30}, stages=stages(finetune={"training_rows": drawn}))
        if drawn
        else answers.runs(name, {(1, 1): 30})
        for name, drawn in draws.items()
    }
    for right, name in ((10, "few"), (10, "too"), (20, "again")):
        path = runs[name][0].made["evaluation"].path(PREDICTIONS)
        table = pandas.read_parquet(path)
        wrong = ["weather" if label == "kitchen" else "kitchen" for label in table["label"]]
        table["baseline"] = [*table["label"][:right], *wrong[right:]]
        table.to_parquet(path)
    found = contests_of(runs, [(name, CHEAP) for name in runs] + [(CHEAP, "few")], CHEAP)
    contest = found["accuracy"][1]
    eight, again = f"{CHEAP} on 8 rows", f"{CHEAP} on 8 rows, seed 1"
    scores = {score.name: score.mean for score in contest.scores}
    assert scores == {CHEAP: 0.75, eight: 0.25, again: 0.5, **dict.fromkeys(runs, 0.75)}
    assert [(d.candidate, d.reference) for d in contest.differences] == [
        ("all", CHEAP),
        ("few", eight),
        ("again", again),
        ("too", eight),
        (eight, "few"),
    ]


def test_rows_drawn_for_each_seed_give_a_baseline_at_each_seed(answers: Answers):
    trained = {(1, 1): 30, (2, 1): 20, (3, 1): 10}
    few = stages(finetune={"training_rows": {"number": 8, "each_seed": True}})
    runs = {"all": answers.runs("all", trained), "few": answers.runs("few", trained, stages=few)}
    for run, right in zip(runs["few"], (28, 18, 8), strict=True):
        path = run.made["evaluation"].path(PREDICTIONS)
        table = pandas.read_parquet(path)
        wrong = ["weather" if label == "kitchen" else "kitchen" for label in table["label"]]
        table["baseline"] = [*table["label"][:right], *wrong[right:]]
        table.to_parquet(path)
    contrasts = [("few", CHEAP), ("few", "all")]
    contest = contests_of(runs, contrasts, CHEAP)["accuracy"][1]
    eight = f"{CHEAP} on 8 rows, of each seed"
    scores = {score.name: score for score in contest.scores}
    assert scores[CHEAP].values == (0.75,)
    assert scores[eight].values == pytest.approx((0.7, 0.45, 0.2))
    paired, unpaired = contest.differences
    assert (paired.reference, unpaired.reference) == (eight, "all")
    assert paired.trainings == 3
    # Two rows more at each draw; without the draws, thirty, twenty and ten vary by chance.
    assert paired.difference == pytest.approx(0.05)
    assert paired.standard_error < unpaired.standard_error / 2


def test_the_baseline_of_prototypes_has_learned_from_all_rows(answers: Answers):
    evaluate = {"metrics": ["accuracy"], "prototypes": {"more": {"ways": [2], "shots": [1, 5]}}}
    trained = {(1, 1): 30, (2, 1): 30}
    few = stages(finetune={"training_rows": 8})
    runs = {
        "all": answers.runs("all", trained, evaluate=evaluate),
        "few": answers.runs("few", trained, evaluate=evaluate, stages=few),
    }
    found = contests_of(runs, [("few", CHEAP)], CHEAP)
    assert [d.reference for d in found["accuracy"][1].differences] == [f"{CHEAP} on 8 rows"]
    for asked in SETS:
        contest = found[f"prototypes/more/{asked}"][1]
        assert [score.name for score in contest.scores] == [CHEAP, "all", "few"]
        assert [d.reference for d in contest.differences] == [CHEAP]


WRITES = """
name: writes
family: gpt2
size: tiny
stages:
  - {stage: general, corpora: {smoke_general: 1.0}, objectives: {causal_lm: {}}}
  - {stage: finetune, dataset: smoke_text, head: {sequence_to_sequence: {target_length: 16}}}
evaluate: {metrics: [perplexity, chrf]}
"""


def test_of_perplexities_the_lower_is_better_and_the_cheap_baseline_has_none(
    answers: Answers, tmp_path: Path
):
    path = tmp_path / "writes.yaml"
    path.write_text(WRITES, encoding="utf-8")
    plan = plan_recipe(str(path))
    runs = {}
    for name, nats in (("low", 6.0), ("high", 8.0)):
        made = {
            step: answers.artifact(step, ROWS, name)
            for step in plan.steps
            if step == "evaluation" or step.startswith("stage")
        }
        file = made["evaluation"].path(PREDICTIONS)
        table = pandas.read_parquet(file)
        table["label"] = table["baseline"] = '["a b c"]'
        table["predicted"] = [written("a b", (nats + i % 3, 4, 3)) for i in range(ROWS)]
        table.to_parquet(file)
        runs[name] = [SeedRun(plan, 1, made)]
    contrasts = [("low", "high"), ("high", CHEAP)]
    found = contests_of(runs, contrasts, CHEAP)
    perplexity, chrf = (found[metric][1] for metric in ("perplexity", "chrf"))
    assert [(d.candidate, d.reference, d.verdict) for d in perplexity.differences] == [
        ("low", "high", BETTER)
    ]
    assert [score.name for score in perplexity.scores] == ["low", "high"]
    assert [score.name for score in chrf.scores] == [CHEAP, "low", "high"]
    assert [d.verdict for d in chrf.differences] == [UNCLEAR, WORSE]
    assert words_read(runs["low"][0], found) == 3 * ROWS
    assert words_read(runs["low"][0], {"chrf": found["chrf"]}) is None
    table["predicted"] = [written("a b", (6.0, 2, 1.5))] * (ROWS - 1) + [written("a b")]
    table.to_parquet(runs["high"][0].made["evaluation"].path(PREDICTIONS))
    assert words_read(runs["high"][0], found) == 1.5 * (ROWS - 1)


def test_answers_to_other_rows_are_refused(answers: Answers):
    one, two = (answers.runs(name, {(1, 1): 20}) for name in ("one", "two"))
    made = dict(two[0].made) | {"probe more": answers.artifact("probe more", 20, first="other")}
    with pytest.raises(RecipeError, match="two was evaluated on 40 rows of more that are not"):
        contests_of({"one": one, "two": [SeedRun(two[0].plan, 1, made)]}, [], CHEAP)
