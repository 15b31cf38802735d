"""How a choice goes on, what it costs and what its page says; nothing is trained here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from fourstage.command.project import make_project
from fourstage.errors import EnvironmentFault
from models.catalogue import file_of
from tasks.comparison.choice_costs import BESIDE, expense, pace, training_seconds
from tasks.comparison.choice_entries import entry_of, scaled_overrides
from tasks.comparison.choice_meter import Meter
from tasks.comparison.choice_report import choice_page, least_difference
from tasks.comparison.choice_reserve import seconds_left, set_aside
from tasks.comparison.choice_rounds import close_round, next_round
from tasks.comparison.choice_table import table_of
from tasks.comparison.choice_trials import try_candidate
from tasks.comparison.finalists import finalists_of, may_judge
from tasks.comparison.model_choice import ModelChoice, close_choice, open_choice
from tasks.planning.forecast import costs_from_scratch
from tasks.store.artifacts import Findings, store
from tasks.store.steps import PreviousArtifacts
from tests.corpora.made_up import rows, write


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))


RANKED = ("labels-only", "no-domain", "no-general", "as-written")
RANKED += ("no-task", "no-wide", "counting", "fasttext")
NEEDS_A_NETWORK = "stages.finetune.objectives={masked_lm: {}}"


def tried(
    choice: ModelChoice,
    scores: dict[str, float],
    beside: float = 1.0,
    rows: Mapping[str, int] = MappingProxyType({"train": 20, "dev": 10}),
) -> None:
    """Enter what a round found, where each stage cost so much beside its training."""
    state = choice.state
    for name in state["rounds"][-1]["factors"]:
        wall = state["rounds"][-1]["seconds"] / len(state["rounds"][-1]["factors"])
        found = {"scores": [scores[name]], "tokens": 9, "seconds": 1.0}
        found |= {"beside": [beside], "asking": [beside / 10]}
        state["rounds"][-1]["tried"][name] = found
        state["rounds"][-1]["spent"][name] = {"all": wall}
    choice.keep({**state, "rows": dict(rows)})
    close_round(choice)


SCORES = {name: 1 - n / 10 for n, name in enumerate(RANKED)}


def test_rounds_halve_the_candidates_and_a_stopped_round_is_gone_on_with() -> None:
    asked = ("quickstart", [], True, 60.0)
    choice = open_choice(*asked)
    found, first = [], next_round(choice)
    assert first is not None
    assert next(iter(first["factors"])) == "counting", "the shortest, which is always finished"
    while turn := next_round(choice):
        found.append(len(turn["factors"]))
        # Whoever starts it again finds the round as it was divided.
        assert next_round(open_choice(*asked)) == turn
        tried(choice, SCORES)
    assert found == [3, 8, 4, 2], "first what has only labels, then all, then the better ones"
    table = table_of(choice)
    assert table["chosen"] == "labels-only"
    ranked = [each["name"] for each in table["candidates"]]
    assert tuple(ranked) == RANKED
    assert [len(each["rounds"]) for each in table["candidates"]] == [3, 3, 2, 2, 1, 1, 1, 1]
    assert open_choice("quickstart", [], True, 61.0).folder != choice.folder


OWN = """
name: mine
family: bert
size: {num_layers: 1, hidden_dim: 32, num_heads: 2, intermediate_dim: 64}
tokenizer: {vocabulary_size: 300, learn_from: [mine]}
stages:
  - {stage: finetune, dataset: mine, head: {sequence_classification: {}}, batch_size: 8,
     sequence_length: 32, budget: {epochs: 1}}
evaluate: {metrics: [accuracy]}
"""
GENERAL = """stages:
  - {stage: general, corpora: {words: 1.0}, objectives: {masked_lm: {}}, batch_size: 8,
     sequence_length: 32, budget: {epochs: 1}}"""
SOURCE = """
name: mine
language: en
licence: CC0-1.0
files: [rows.jsonl]
fields: {text: text, label: label}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with rows of its own, in which one is."""
    make_project(tmp_path / "own", {"sources/mine.yaml": SOURCE, "recipes/mine.yaml": OWN})
    monkeypatch.chdir(tmp_path / "own")
    write(tmp_path / "own" / "rows.jsonl", rows(30))
    return tmp_path / "own"


TEXT = """
name: words
language: en
licence: CC0-1.0
files: [words.txt]
"""


def test_a_round_keeps_the_budgets_by_which_it_scores(own: Path) -> None:
    """A text that is counted meanwhile is not as long as its file let expect."""
    recipe = OWN.replace("stages:", GENERAL)
    (own / "recipes" / "mine.yaml").write_text(recipe, "utf-8")
    (own / "sources" / "words.yaml").write_text(TEXT, "utf-8")
    (own / "words.txt").write_text("Words of a text of which nobody knows how many.\n" * 30_000)
    asked = ("mine", [], False, 30.0)
    choice = open_choice(*asked)
    next_round(choice)
    tried(choice, dict.fromkeys(choice.candidates, 0.5))
    turn = next_round(choice)
    assert turn is not None
    now = turn["factors"]["as-written"], turn["seeds"]
    made = entry_of(choice, "as-written", turn).overrides
    assert made == scaled_overrides(choice, "as-written", *now)
    assert any(".budget.tokens=" in each for each in made)

    def make(_: Path) -> Findings:
        return Findings({"tokens": {"train": 700_000}}, {})

    store().make("tokens", "tokens words", {"settings": {}}, make)
    assert made != scaled_overrides(choice, "as-written", *now)
    again = open_choice(*asked)
    turn = next_round(again)
    assert turn is not None
    assert entry_of(again, "as-written", turn).overrides == made


def test_after_a_change_of_rows_or_code_the_rounds_start_anew(own: Path, capsys) -> None:
    def opened() -> ModelChoice:
        return open_choice("mine", [], False, 5.0)

    choice = opened()
    next_round(choice)
    tried(choice, dict.fromkeys(choice.candidates, 0.5))
    before = choice.state
    assert before["rounds"]
    assert opened().state == before, "nothing has changed"
    assert "start anew" not in capsys.readouterr().err

    corrected = [
        record | {"label": "pos"} if n < 5 else record for n, record in enumerate(rows(30))
    ]
    write(own / "rows.jsonl", corrected)
    again = opened()
    assert again.folder == choice.folder
    assert again.state["rounds"] == []
    assert "rows" not in again.state
    assert again.state["prepared"] == {}
    assert "its rounds start anew" in capsys.readouterr().err
    next_round(again)
    tried(again, dict.fromkeys(again.candidates, 0.5))

    # A family of one's own in place of the built-in one: as good as a change of its code.
    code = own / "families" / "bert.py"
    code.write_text(file_of("families", "bert").read_text("utf-8") + "\nMORE = 1\n", "utf-8")
    assert opened().state["rounds"] == []


def test_where_what_has_only_labels_diverges_what_reads_text_is_still_tried(own: Path) -> None:
    recipe = OWN.replace("stages:", GENERAL)
    (own / "recipes" / "mine.yaml").write_text(recipe, "utf-8")
    (own / "sources" / "words.yaml").write_text(TEXT, "utf-8")
    (own / "words.txt").write_text("Words of a text.\n" * 3000)
    choice = open_choice("mine", [], False, 30.0)
    turn = next_round(choice)
    assert turn is not None
    assert turn["number"] == 0
    state = choice.state
    state["rounds"][-1]["diverged"] = dict.fromkeys(turn["factors"], "the loss is nan")
    choice.keep({**state, "rows": {"train": 20, "dev": 10}})
    close_round(choice)
    again = next_round(choice)
    assert again is not None
    assert again["number"] == 1
    assert list(again["factors"]) == [
        name for name in choice.candidates if name not in turn["factors"]
    ]


def test_a_killed_attempt_is_paid_for(own: Path) -> None:
    choice = open_choice("mine", [], False, 5.0)
    next_round(choice)
    general, finetune = "stage general at seed 1", "stage finetune at seed 1"

    def attempt() -> None:
        with Meter(choice, "as-written") as meter:
            meter.begin(general)
            meter.lap()
            meter.begin(finetune)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt()
    spent = choice.state["rounds"][-1]["spent"]["as-written"]
    assert set(spent) == {general, finetune}
    assert all(seconds > 0 for seconds in spent.values())
    before = choice.spent["prepared"]
    given = 60 * 5 - set_aside(choice, 1) - before

    def left() -> float:
        return pytest.approx(seconds_left(choice, 1))

    assert left() == given - sum(spent.values())
    choice.charge(finetune, 60.0, name="as-written")
    assert left() == given - spent[general] - (spent[finetune] + 60.0)
    # Killed without a word, it went on from a checkpoint: its updates alone took 90 s.
    choice.charge(finetune, 20.0, least=90.0, name="as-written")
    assert left() == given - (spent[general] + 90.0)
    choice.charge("dataset mine", 7.0)
    assert left() == given - spent[general] - 90.0 - 7.0
    choice.charge("test rows", 3.0, to="judged")
    assert choice.spent == pytest.approx(
        {"prepared": before + 7.0, "rounds": spent[general] + 90.0, "judged": 3.0}
    )


def test_the_minutes_begin_with_the_command_and_keep_some_for_what_follows(own: Path) -> None:
    choice = open_choice("mine", [], False, 5.0, begun=time.time() - 30)
    with Meter(choice) as meter:
        meter.begin("start")
    assert 30 <= choice.spent["prepared"] < 60
    next_round(choice)
    tried(choice, dict.fromkeys(choice.candidates, 0.5), beside=8.0)
    choice.keep({**choice.state, "rows": {"dev": 20, "test": 60}})
    # Two finalists answer 80 rows, of which 20 took 0.8 s; the rest in stages of 8 s.
    assert set_aside(choice, 1) == pytest.approx(2 * (1.25 * 8 + 0.8 * 4) + 3 * 8)
    assert set_aside(choice, 3) == pytest.approx(3 * 2 * (1.25 * 8 + 0.8 * 4) + 3 * 8)
    alone = open_choice("mine", [], False, 5.0, without=[*choice.candidates][1:])
    alone.keep(choice.state)
    assert set_aside(alone, 3) == pytest.approx(3 * (1.25 * 8 + 0.8 * 4) + 3 * 8)
    spent = sum(choice.spent.values())
    assert seconds_left(choice, 3) == pytest.approx(300 - spent - set_aside(choice, 3))


def test_a_network_that_was_not_measured_is_as_slow_as_the_recipes_was(own: Path) -> None:
    choice = open_choice("mine", [], False, 5.0)
    (cost,) = costs_from_scratch(choice.whole.recipe, (), PreviousArtifacts(store()))
    assert pace(choice) == 1.0
    stage = choice.whole.recipe.finetune
    assert stage is not None
    settings = {"family": stage.family, "network": dict(stage.network), "head": stage.head}

    def make(_: Path) -> Findings:
        return Findings({}, {"tokens_per_second": cost.tokens_per_second / 4})

    store().make("stage", "stage finetune", {"settings": settings}, make)
    assert pace(choice) == pytest.approx(4.0)
    tokens = replace(cost, tokens=600.0, seconds=6.0)
    assert training_seconds(choice, tokens) == pytest.approx(24.0), "a formula's seconds"
    assert training_seconds(choice, replace(tokens, measured=True)) == 6.0


def test_a_candidate_that_can_not_finish_is_not_begun(own: Path) -> None:
    """Nothing is trained here: if one were begun, it would fail for want of a flow."""
    choice = open_choice("mine", [], False, 5.0)
    turn = next_round(choice)
    assert turn is not None
    first, late, *_ = turn["factors"]
    state = choice.state
    found = {"scores": [0.5], "tokens": 9, "seconds": 1.0, "beside": [4.0], "asking": [0.5]}
    state["rounds"][-1]["tried"][first] = found
    state["rounds"][-1]["spent"][first] = {"all": 0.0}
    choice.keep({**state, "rows": {"train": 20, "dev": 10}})
    choice.charge(
        "contract", seconds_left(choice, 1) - 3.0
    )  # a stage costs 4 s beside its training

    try_candidate(choice, turn, late)
    missing = choice.state["rounds"][-1]["left_out"][late]
    assert 1.0 < missing < 30.0
    turn = choice.state["rounds"][-1]
    for name in turn["factors"]:
        try_candidate(choice, turn, name)
    close_round(choice)
    assert choice.state["rounds"][-1]["best"] == [first]


def test_a_round_in_which_none_finishes_leaves_the_ranking_before_it(own: Path) -> None:
    choice = open_choice("quickstart", [], True, 60.0)
    next_round(choice)
    tried(choice, SCORES)
    next_round(choice)
    tried(choice, SCORES)
    before, turn = choice.state["rounds"], next_round(choice)
    assert turn is not None
    choice.charge("contract", seconds_left(choice, 1) + 1.0)
    for name in turn["factors"]:
        try_candidate(choice, turn, name)
    choice.charge("stage general at seed 1", 50.0, name="as-written")
    spent = choice.spent
    assert spent["rounds"] > 50.0
    close_round(choice)
    assert choice.state["rounds"] == before
    assert choice.spent == spent, "the seconds of a round that is dropped have passed, too"
    assert next_round(choice) is None
    assert next_round(open_choice("quickstart", [], True, 60.0)) is None
    finalists = before[-1]["best"][:2]
    assert [entry.name for entry in finalists_of(choice)] == [
        f"quickstart-smoke-{name}-smoke" for name in finalists
    ]


def test_the_best_that_was_stopped_is_not_replaced_by_one_that_it_had_beaten() -> None:
    choice = open_choice("quickstart", [], True, 60.0)
    scores = SCORES | {"as-written": 2.0}
    for _ in range(3):
        next_round(choice)
        tried(choice, scores)
    before, turn = choice.state["rounds"], next_round(choice)
    assert turn is not None
    assert [*turn["factors"]] == ["as-written", "labels-only"]
    state = choice.state
    state["rounds"][-1]["left_out"]["as-written"] = 0.0
    found = {"scores": [0.9], "tokens": 9, "seconds": 1.0, "beside": [], "asking": []}
    state["rounds"][-1]["tried"]["labels-only"] = found
    choice.keep(state)
    close_round(choice)
    assert choice.state["rounds"] == before
    assert next_round(choice) is None
    assert table_of(choice)["chosen"] == "as-written"


def test_candidates_are_ranked_at_the_seeds_that_all_of_them_have() -> None:
    choice = open_choice("quickstart", [], True, 60.0)
    for _ in range(3):
        next_round(choice)
        tried(choice, SCORES)
    turn = next_round(choice)
    assert turn is not None
    one, other = turn["factors"]
    state, found = choice.state, {"tokens": 9, "seconds": 1.0, "beside": [], "asking": []}
    state["rounds"][-1]["tried"] = {
        one: {**found, "scores": [0.6]},
        other: {**found, "scores": [0.5, 0.9, 0.9]},
    }
    choice.keep(state)
    close_round(choice)
    assert choice.state["rounds"][-1]["best"] == [one, other]


def test_of_two_processes_one_makes_the_choice() -> None:
    with (
        open_choice("quickstart", [], True, 60.0).alone(),
        pytest.raises(EnvironmentFault, match="another process is making this choice"),
        open_choice("quickstart", [], True, 60.0).alone(),
    ):
        pass
    with open_choice("quickstart", [], True, 60.0).alone():
        pass


def test_who_looks_again_at_a_choice_finds_the_seeds_that_were_judged(own: Path) -> None:
    choice = open_choice("mine", [], False, 5.0)
    next_round(choice)
    assert may_judge(choice, 1), "the first always is"
    choice.keep({**choice.state, "tested": [1]})
    choice.charge("test rows at seed 1", 20.0, to="judged")
    assert may_judge(choice, 2)
    choice.charge("registration", seconds_left(choice, seeds=0) - 19.0, to="judged")
    assert not may_judge(choice, 2), "it would take 20 s, of which 19 are left"
    choice.keep({**choice.state, "tested": [1, 2]})
    choice.charge("test rows at seed 2", 300.0, to="judged")
    again = open_choice("mine", [], False, 5.0)
    assert [may_judge(again, seed) for seed in (1, 2, 3)] == [True, True, False], "it is killed"
    close_choice(choice)
    assert [may_judge(again, seed) for seed in (1, 2, 3)] == [True, True, False]
    choice.keep(
        {**choice.state, "prepared": {}, "judged": dict.fromkeys(choice.state["judged"], 0)}
    )
    assert not may_judge(again, 3), "time is left, but the comparison is made"


def test_who_is_refused_takes_no_rounds_from_the_one_that_makes_the_choice(own: Path) -> None:
    choice = open_choice("mine", [], False, 5.0)
    with choice.alone():
        next_round(choice)
        before = choice.state
        write(own / "rows.jsonl", rows(29))
        with pytest.raises(EnvironmentFault, match="another process is making this choice"):
            open_choice("mine", [], False, 5.0)
        assert choice.state == before
    assert open_choice("mine", [], False, 5.0).state["rounds"] == []


@pytest.mark.parametrize(
    ("minutes", "rounds", "out"),
    [
        (240, [3, 9, 5, 3, 2], 0),
        (8, [3, 8, 2], 1),
        (1, [3, 6], 3),
    ],
)
def test_few_minutes_mean_fewer_rounds_and_then_fewer_candidates(minutes, rounds, out) -> None:
    choice = open_choice("quickstart", [], False, float(minutes))
    scores = {name: 1.0 - n / 10 for n, name in enumerate(choice.candidates)}
    found, spent = [], 0.0
    while turn := next_round(choice):
        found.append(len(turn["factors"]))
        spent += turn["seconds"] if turn["number"] else 0.0
        assert all(factor > 0 for factor in turn["factors"].values())
        tried(choice, scores)
    assert found == rounds
    assert len(table_of(choice)["left_out"]) == out
    assert spent < 60 * minutes + 1e-6


@pytest.mark.parametrize(
    ("minutes", "dev", "folds"),
    [(240, 10, 5), (240, 200, 0), (8, 10, 0)],
    ids=["few dev rows", "enough of them", "too few minutes"],
)
def test_training_rows_choose_beside_few_dev_rows(
    minutes: int, dev: int, folds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = open_choice("quickstart", [], False, float(minutes))
    scores = {name: 1.0 - n / 10 for n, name in enumerate(choice.candidates)}
    found, fewer = [], 0
    while turn := next_round(choice):
        found.append(turn["folds"])
        fewer += len(turn["left_out"])
        tried(choice, scores, rows={"train": 20, "dev": dev})
    assert found == [0, *[folds] * (len(found) - 1)], "what has only labels is tried first"
    assert bool(fewer) == (minutes == 8)
    told = capsys.readouterr().err
    assert ("each candidate is trained 5 more times" in told) == bool(folds)
    assert ("minutes are too few for cross-validation" in told) == (minutes == 8)
    assert table_of(choice)["folds"] == folds


def test_cross_validation_counts_in_what_a_candidate_costs() -> None:
    choice = open_choice("quickstart", [], False, 240.0)
    once, thrice = (expense(choice, "as-written", 1, folds) for folds in (0, 2))
    assert thrice.finetuning == pytest.approx(3 * once.finetuning)
    assert thrice.stages == once.stages
    labels = "labels-only"
    alone = expense(choice, labels, 1).finetuning
    next_round(choice)
    tried(choice, dict.fromkeys(choice.candidates, 0.5), beside=BESIDE)
    # Its training with all rows is made, at the first seed.
    again = [expense(choice, labels, seeds, 2).finetuning for seeds in (1, 2)]
    assert again == pytest.approx([2 * alone, 2.5 * alone], rel=0.1)


def test_the_page_says_what_was_tried_chosen_and_left_out() -> None:
    choice = open_choice("quickstart", [], True, 60.0)
    while next_round(choice):
        tried(choice, SCORES)
    told = table_of(choice)
    told["left_out"] = {
        "larger": {"about": "twice as wide", "seconds": 600.0},
        "late": {"about": "yours", "seconds": 0.0},
    }
    told["diverged"] = {"wild": "finetune: the loss is nan at step 7"}
    told["spent"] = {"prepared": 60.0, "rounds": 600.0, "judged": 120.0}
    told["unmade"] = open_choice("quickstart", [NEEDS_A_NETWORK], True, 60.0).unmade
    comparison = {
        "split": "test",
        "metrics": ["accuracy"],
        "confidence": 0.95,
        "baselines": [],
        "recipes": [{"name": "mine", "metrics": {"accuracy": {"mean": 0.8}}}],
        "differences": {"accuracy": []},
    }
    page = choice_page({"choice": told, "comparison": comparison, "summary": {}})
    assert page.startswith("# labels-only: the same network, trained on the labels alone; no model")
    assert "Chosen on 10 dev rows, in 3 rounds;" in page
    crossed = {"choice": told | {"folds": 5}, "comparison": comparison, "summary": {}}
    assert "Chosen on 10 dev rows and 20 train rows in 5 folds, in 3" in choice_page(crossed)
    assert "answers differ by about 0.179 or more" in choice_page(crossed), "of 30 rows"
    assert "The only one was then judged once on the test rows: mine has" in page
    assert "on the test rows\n" not in page, "nothing was tested"
    assert "| no-general | 0.8000 | -0.1000 |" in page
    assert "larger (twice as wide) is 10.0 minutes a round short; late (yours) did not" in page
    assert "training diverged:\n\n- wild: finetune: the loss is nan at step 7\n" in page
    assert "Of 60 minutes 13.0 were used, from the command's start: 1.0 to start" in page
    assert "10.0 for candidates, 2.0 for test rows and registration.\n" in page
    beyond = told | {"minutes": 12.0}
    page_beyond = choice_page({"choice": beyond, "comparison": comparison, "summary": {}})
    assert "registration. These are more than you gave: training is stopped in time" in page_beyond
    assert "\n- fasttext: objectives of the stage finetune is for its own network\n" in page
    assert "mine has the highest accuracy, 0.800" in page
    assert "at one seed and with the shortest budgets" in page
    bought = page.partition("## What each stage bought")[2].partition("\n\n## ")[0]
    assert "no-domain" in bought
    assert "no-wide" not in bought, "no stage"
    assert "shares of right answers differ by about 0.310 or more" in page
    of_texts = {"choice": told | {"metric": "perplexity"}, "comparison": comparison, "summary": {}}
    assert "shares of right answers" not in choice_page(of_texts)
    assert "small differences are often chance" in choice_page(of_texts)
    assert "differences of a point or two are often chance" in page
    alike = dict.fromkeys(("wide", "fasttext"), "no words")
    once = told | {"unmade": {"counting": "no network", **alike}, "rounds": 1}
    page = choice_page({"choice": once, "comparison": comparison, "summary": {}})
    assert "in 1 round;" in page
    assert page.count("no words") == 1
    assert "\n- counting: no network\n- wide, fasttext: no words\n" in page
    assert "as-written is pre-trained" not in page
    assert (
        "no-domain is pre-trained at one seed; runs differ only in the seeds of fine-tuning" in page
    )
    for decision, became in (("keep", "the champion already"), ("refuse", "not promoted")):
        summary = {"gate": {"decision": decision}}
        summary["gate"] |= {"reason": "it is said here", "warnings": ["the baseline is ahead"]}
        asks = told | {"gate": "The choice asks so."}
        told_again = {"choice": asks, "comparison": comparison, "summary": summary}
        page = choice_page(told_again)
        assert page.split("\n")[0].endswith(f"; {became}")
        assert "The choice asks so. The gate: it is said here. the baseline is ahead.\n" in page
    close_choice(choice)
    took = table_of(choice)["spent"]
    choice.charge("start", 100.0)
    close_choice(choice)
    assert table_of(choice)["spent"] == took, "who looks at it again takes nothing from it"


def test_the_least_difference_is_that_of_answers_that_differ_on_a_quarter_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    wins = rng.choice([-1, 0, 1], size=(20_000, 200), p=[1 / 8, 3 / 4, 1 / 8]).mean(axis=1)
    assert np.mean(np.abs(wins) < least_difference(200)) == pytest.approx(0.95, abs=0.01)
    assert least_difference(50) == 2 * least_difference(200)
