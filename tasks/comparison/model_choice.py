"""A choice among candidates: its rounds, what they cost, and where it stands.

The state is a file in the home, so that a choice that was stopped divides its minutes as it had and
finds its stages in the store. It says what data, code and packages its scores are of: scores of
others can't be ranked beside them, so after a change the rounds start anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from corpora.prepared import prepared_rows
from fourstage.digests import canonical, digest, write_atomically
from fourstage.errors import RecipeError
from fourstage.recipe.resolved import as_recipe
from fourstage.settings import home
from fourstage.terminal import say
from tasks.comparison.candidates import Candidate, candidates_of
from tasks.comparison.halving import Expense, best_first, factors, most_rounds, sizes
from tasks.comparison.participants import Entry, pretraining_stages
from tasks.planning.forecast import Cost, costs_from_scratch
from tasks.planning.layout import Plan, stage_settings
from tasks.planning.plan import plan_recipe
from tasks.run.recipe_run import open_run
from tasks.store.artifacts import store
from tasks.store.step_names import dataset_step, measurement_step, stage_step
from tasks.store.steps import Bound, PreviousArtifacts, look_ahead

FOLDER = "choices"
STATE = "state.json"
TRAINING = 0.8  # share of the minutes for the rounds; the rest goes to test rows and registration
LEAST_TOKENS = 500_000  # before the labels; with less a network has learned too little to judge it
MOST_PASSES = 20.0  # over a text
FINALISTS = 2  # of the last round are judged on the test rows
LAST_SEEDS = 3  # fine-tunings of each candidate in the last round; one in those before
# What every candidate reads, and what a score on dev rows is made by.
READ = ("dataset", "corpus", "tokenizer", "tokens", "rows")
SCORED = (*READ, "stage", "measurement")


@dataclass(frozen=True)
class ModelChoice:
    """A question and its candidates.

    Attributes:
        recipe: Name or path, as given.
        smoke: Whether it is run at size tiny on embedded data, each round with the same budgets.
        minutes: Minutes in all.
        candidates: By name, in order.
        unmade: Why usual candidates can't be made of the recipe, by name.
        whole: The recipe's plan as written.
        folder: Where the choice keeps its state and its page.
    """

    recipe: str
    smoke: bool
    minutes: float
    candidates: Mapping[str, Candidate]
    unmade: Mapping[str, str]
    whole: Plan
    folder: Path

    @property
    def metric(self) -> str:
        """What chooses, on the dev rows."""
        return self.whole.recipe.metrics[0]

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """Each candidate's plan as written."""
        return {
            name: plan_recipe(self.recipe, candidate.overrides, self.smoke)
            for name, candidate in self.candidates.items()
        }

    @property
    def state(self) -> dict[str, Any]:
        """Where it stands.

        ``made_of``, a digest of data and code; seconds so far to be ``prepared``, by step, and
        then the number of ``rows`` by split; finished or begun ``rounds``, each with the seconds
        ``spent`` by candidate and step.
        """
        path = self.folder / STATE
        if not path.is_file():
            return {"prepared": {}, "rounds": []}
        return json.loads(path.read_text(encoding="utf-8"))

    def keep(self, state: Mapping[str, Any]) -> None:
        """Write the state."""
        write_atomically(self.folder / STATE, json.dumps(state, indent=1) + "\n")

    def charge(self, name: str | None, step: str, seconds: float, least: float = 0.0) -> None:
        """Add seconds to what a step has cost so far.

        Args:
            name: The candidate of the last round; None for what is made before the rounds.
            step: The step.
            seconds: Since the last charge.
            least: What the step has cost at least, in all attempts.
        """
        state = self.state
        if name is None:
            spent = state["prepared"]
        else:
            spent = state["rounds"][-1]["spent"].setdefault(name, {})
        spent[step] = max(spent.get(step, 0.0) + seconds, least)
        self.keep(state)

    @property
    def left(self) -> float:
        """Seconds left for rounds; what was made before this choice costs a look at it."""
        state = self.state
        spent = [of for turn in state["rounds"] for of in turn["spent"].values()]
        paid = sum(sum(of.values()) for of in (state["prepared"], *spent))
        return TRAINING * 60 * self.minutes - paid

    def overrides(self, name: str, factor: float, seeds: Sequence[int]) -> tuple[str, ...]:
        """A candidate's settings, with scaled budgets before the labels.

        Args:
            name: The candidate.
            factor: On the tokens that these stages read as written; 1.0 leaves them as they are.
            seeds: Of fine-tuning.
        """
        made = self.candidates[name].overrides
        if factor != 1.0:
            plan = self.plans[name]
            costs = _costs(plan)
            made += tuple(
                f"stages.{stage.name}.budget.tokens={max(1, round(factor * tokens))}"
                for stage in pretraining_stages(plan.recipe)
                if (tokens := costs[stage.name].tokens)
            )
        assert self.whole.recipe.finetune is not None
        finetune = self.whole.recipe.finetune.name
        return (*made, f"seeds={{values: {list(seeds)}, from: {finetune}}}")

    def entry(self, name: str, factor: float, seeds: Sequence[int]) -> Entry:
        """A candidate as an entry of a comparison."""
        made = self.overrides(name, factor, seeds)
        recipe = plan_recipe(self.recipe, made, self.smoke).recipe
        assert recipe.finetune is not None
        return Entry(
            recipe.name,
            self.recipe,
            made,
            self.smoke,
            tuple(seeds),
            recipe.finetune.name,
            len(seeds),
        )


def open_choice(
    recipe: str,
    overrides: Sequence[str],
    smoke: bool,
    minutes: float,
    more: Sequence[str] = (),
    without: Sequence[str] = (),
) -> ModelChoice:
    """Check a choice before any work, and find where it stands.

    Raises:
        RecipeError: There are no labels, or a setting is invalid.
        UnknownNameError: `without` names no candidate.
    """
    unmade: dict[str, str] = {}
    found = candidates_of(recipe, overrides, smoke, more, without, unmade.__setitem__)
    candidates = {each.name: each for each in found}
    for name, why in unmade.items():
        say(f"choose: {name} is left out, it can't be made of this recipe: {why}")
    whole = plan_recipe(recipe, overrides, smoke)
    asked = {
        "recipe": canonical(as_recipe(whole.recipe)),
        "candidates": {name: list(each.overrides) for name, each in candidates.items()},
        "minutes": minutes,
        "smoke": smoke,
    }
    folder = home() / FOLDER / digest(asked)
    folder.mkdir(parents=True, exist_ok=True)
    choice = ModelChoice(recipe, smoke, minutes, candidates, unmade, whole, folder)
    _start_anew_if_changed(choice)
    return choice


def _start_anew_if_changed(choice: ModelChoice) -> None:
    state, now = choice.state, _made_of(choice)
    if state.get("made_of") == now:
        return
    if state["rounds"]:
        say(
            "choose: data, code or packages have changed since this choice began, so its rounds"
            " start anew, with all of its minutes"
        )
    choice.keep({"made_of": now, "prepared": {}, "rounds": []})


def _made_of(choice: ModelChoice) -> str:
    """Digest of what the scores of all candidates are made of: files, code and packages."""
    # Keys of steps without their inputs: those are among the steps, most of them not yet made.
    return digest(
        {
            name: {step.name: Bound(step, {}).key for step in plan.of_kind(*SCORED)}
            for name, plan in choice.plans.items()
        }
    )


class Meter:
    """Charges a choice with the seconds that pass, step by step, so that a killed attempt is paid.

    Args:
        choice: The choice.
        name: The candidate; None for what is made before the rounds.
    """

    def __init__(self, choice: ModelChoice, name: str | None = None):
        self._choice, self._name, self._step = choice, name, ""
        self._since = time.monotonic()

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *failed: object) -> None:
        self.lap()

    def begin(self, step: str) -> None:
        """Say whose seconds the next ones are."""
        self._step = step

    def lap(self, least: float = 0.0) -> None:
        """Charge the seconds since the last lap to the step that was begun.

        Args:
            least: What the step has cost at least, in all attempts.
        """
        now = time.monotonic()
        self._choice.charge(self._name, self._step, now - self._since, least)
        self._since = now


def prepare(choice: ModelChoice) -> None:
    """Make what every candidate reads: data, contracts, tokenizer, tokens.

    Raises:
        RecipeError: There are no dev rows to choose by.
        ContractViolation: A contract is broken.
    """
    finetune = choice.whole.recipe.finetune
    assert finetune is not None
    assert finetune.dataset is not None
    counts: dict[str, int] = {}
    with Meter(choice) as meter, open_run(choice.whole) as run:
        for step in choice.whole.of_kind(*READ, "contract"):
            meter.begin(step.name)
            run.make(step.name)
            meter.lap()
        for row in prepared_rows(run.made[dataset_step(finetune.dataset)].folder):
            counts[row.split] = counts.get(row.split, 0) + 1
    if not counts.get("dev"):
        raise RecipeError(
            f"{choice.whole.recipe.where}: choose: {finetune.dataset} has no dev rows to choose by;"
            " add some to the source, or leave its rows in one file, of which some are then set"
            " aside (`set_aside` in the source)"
        )
    choice.keep({**choice.state, "rows": counts})


def next_round(choice: ModelChoice) -> dict[str, Any] | None:
    """The round that comes next, or that was stopped; None when all are done.

    Returns:
        ``number``, 0 for the one without pre-training and 1 for the first that has all candidates;
        ``sizes`` of the rounds from 1; ``seconds``, ``seeds``, ``factors`` on the budgets before
        the labels, ``left_out`` with the seconds that were missing, and what was ``tried``.
    """
    state = choice.state
    turns = state["rounds"]
    if turns and not turns[-1].get("best"):
        return turns[-1]
    if not turns:
        turn = _without_pretraining(choice)
    elif turns[-1]["number"] == 0:
        turn = _first(choice, choice.left)
    else:
        turn = _after(choice, turns[-1], choice.left)
    if turn is not None:
        choice.keep({**state, "rounds": [*turns, turn]})
    return turn


def _turn(number: int, sizes: Sequence[int], **said: object) -> dict[str, Any]:
    begun: dict[str, Any] = {"tried": {}, "spent": {}}
    return {"number": number, "sizes": list(sizes), "left_out": {}, **said, **begun}


def _without_pretraining(choice: ModelChoice) -> dict[str, Any]:
    """The candidates that have only labels; if there are none, all."""
    free = [name for name in choice.candidates if not _is_pretrained(choice, name)]
    kept = dict.fromkeys(free or choice.candidates, 1.0)
    if not free:
        return _first(choice, choice.left)
    return _turn(0, [len(kept)], seconds=0.0, seeds=_seeds(choice, 1), factors=kept)


def _first(choice: ModelChoice, left: float) -> dict[str, Any]:
    """The round of all candidates, in the most rounds with which none has to be left out."""
    names = list(choice.candidates)
    rounds = most_rounds(len(names))
    kept, out = _divided(choice, names, left / rounds, 1)
    while out and rounds > 2:
        rounds -= 1
        kept, out = _divided(choice, names, left / rounds, 1)
    found, seeds = sizes(len(kept), rounds), _seeds(choice, 1)
    if len(found) == 1:  # the first round is the last one
        rounds, seeds = 1, _seeds(choice, LAST_SEEDS)
        kept, more = _divided(choice, list(kept), left, len(seeds))
        out = {**out, **more}
    return _turn(1, found, seconds=left / rounds, seeds=seeds, factors=kept, left_out=out)


def _after(choice: ModelChoice, before: Mapping[str, Any], left: float) -> dict[str, Any] | None:
    """The round after another one; None after the last, or where the minutes are over."""
    number, planned = before["number"] + 1, before["sizes"]
    if number > len(planned) or left <= 0 or len(before["best"]) == 1:
        return None
    names = before["best"][: planned[number - 1]]
    seeds = _seeds(choice, LAST_SEEDS if number == len(planned) else 1)
    seconds = left / (len(planned) - number + 1)
    kept, out = _divided(choice, names, seconds, len(seeds))
    return _turn(number, planned, seconds=seconds, seeds=seeds, factors=kept, left_out=out)


def _divided(
    choice: ModelChoice, names: Sequence[str], seconds: float, seeds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Factors of a round's candidates, and what those left out were short of (`factors`)."""
    if choice.smoke:
        return dict.fromkeys(names, 1.0), {}
    return factors({name: _expense(choice, name, seeds) for name in names}, seconds, seeds)


def _is_pretrained(choice: ModelChoice, name: str) -> bool:
    return bool(pretraining_stages(choice.plans[name].recipe))


def try_candidate(choice: ModelChoice, turn: Mapping[str, Any], name: str) -> None:
    """Train a candidate with a round's budget and score it on the dev rows.

    What it costs is written down step by step. Of an attempt that is killed inside a stage, the
    updates up to the last checkpoint are paid for when the stage is finished.
    """
    if name in turn["tried"]:
        return
    where = f"round {turn['number']}" if turn["number"] else "without pre-training"
    say(f"{where}: {name}")
    scores, tokens, seconds = [], 0, 0.0
    made = choice.overrides(name, turn["factors"][name], turn["seeds"])
    with Meter(choice, name) as meter:
        for seed in turn["seeds"]:
            plan = plan_recipe(choice.recipe, made, choice.smoke, seed)
            finetune = plan.recipe.finetune
            assert finetune is not None
            stages = []
            with open_run(plan) as run:
                for stage in plan.recipe.stages:
                    step = stage_step(stage.name)
                    meter.begin(f"{step} at seed {seed}")
                    stages.append(run.make(step))
                    trained = stages[-1].notes["seconds"] if run.status[step] == "made" else 0.0
                    meter.lap(least=trained)
                found = run.make(measurement_step(finetune.name))
            scores.append(found.facts["task_metric"]["value"])
            tokens = sum(stage.facts["tokens"] for stage in stages)
            seconds += stages[-1].notes["seconds"]
            if seed == turn["seeds"][0]:
                seconds += sum(stage.notes["seconds"] for stage in stages[:-1])
    say(f"{where}: {name}: {choice.metric} {fmean(scores):.4f} on dev rows")
    state = choice.state
    state["rounds"][-1]["tried"][name] = {"scores": scores, "tokens": tokens, "seconds": seconds}
    choice.keep(state)


def close_round(choice: ModelChoice) -> None:
    """Rank the candidates of the round that was just tried."""
    state = choice.state
    turn = state["rounds"][-1]
    means = {name: fmean(tried["scores"]) for name, tried in turn["tried"].items()}
    seconds = {name: of["seconds"] for name, of in turn["tried"].items()}
    turn["best"] = best_first(choice.metric, means, seconds)
    choice.keep(state)


def survivors(choice: ModelChoice) -> list[Entry]:
    """The two best of the last round, the chosen one first, as entries of a comparison."""
    turn = choice.state["rounds"][-1]
    finalists = turn["best"][:FINALISTS]
    return [choice.entry(name, turn["factors"][name], turn["seeds"]) for name in finalists]


def table_of(choice: ModelChoice) -> dict[str, Any]:
    """The rounds as plain JSON, for the page: a row per candidate in the order of their ranks.

    Besides, the recipe's ``stages`` before the labels, and which finalists are ``pretrained``.
    """
    state = choice.state
    rows: dict[str, dict[str, Any]] = {}
    turns = [turn for turn in state["rounds"] if turn["number"] > 0]
    for turn in turns:
        for name, tried in turn["tried"].items():
            scores = tried["scores"]
            row = rows.setdefault(name, {"name": name, "rounds": []})
            row["rounds"].append(
                {
                    "mean": fmean(scores),
                    "deviation": stdev(scores) if len(scores) > 1 else None,
                    "tokens": tried["tokens"],
                    "seconds": tried["seconds"],
                }
            )
    ranked = list(dict.fromkeys(name for turn in reversed(turns) for name in turn["best"]))
    left_out = {n: s for turn in turns for n, s in turn["left_out"].items()}
    return {
        "metric": choice.metric,
        "minutes": choice.minutes,
        "dev_rows": state["rows"]["dev"],
        "train_rows": state["rows"].get("train", 0),
        "rounds": state["rounds"][-1]["number"],
        "planned_rounds": len(state["rounds"][-1]["sizes"]),
        "seeds": state["rounds"][-1]["seeds"],
        "chosen": ranked[0],
        "stages": [stage.name for stage in pretraining_stages(choice.whole.recipe)],
        "pretrained": [n for n in turns[-1]["best"][:FINALISTS] if _is_pretrained(choice, n)],
        "candidates": [{**rows[name], "about": choice.candidates[name].about} for name in ranked],
        "left_out": {
            name: {"about": choice.candidates[name].about, "seconds": seconds}
            for name, seconds in left_out.items()
            if name not in rows
        },
        "unmade": dict(choice.unmade),
        "folder": str(choice.folder),
    }


def _seeds(choice: ModelChoice, count: int) -> list[int]:
    finetune = choice.whole.recipe.finetune
    assert finetune is not None
    # A quick trial has one seed.
    return [finetune.seed + i for i in range(1 if choice.smoke else count)]


def _expense(choice: ModelChoice, name: str, seeds: int) -> Expense:
    """What a candidate costs as written."""
    plan = choice.plans[name]
    costs = _costs(plan)
    finetune = plan.recipe.finetune
    assert finetune is not None
    stages, before = {}, []
    for stage in pretraining_stages(plan.recipe):
        before.append(dict(stage_settings(stage)))
        stages[digest(before)] = costs[stage.name].seconds or 0.0
    read = [costs[stage.name] for stage in pretraining_stages(plan.recipe)]
    tokens = sum(cost.tokens or 0.0 for cost in read)
    passes = max((n for cost in read for n in cost.passes.values()), default=0.0)
    most = max(1.0, MOST_PASSES / passes) if passes else 1.0
    least = LEAST_TOKENS / tokens if tokens else 0.0
    finetuning = costs[finetune.name].seconds or 0.0
    if not stages:  # its first seed is trained already
        finetuning *= (seeds - 1) / seeds
    network = canonical({"family": plan.recipe.family, **plan.recipe.network})
    return Expense(stages, finetuning, network, least, most)


def _costs(plan: Plan) -> dict[str, Cost]:
    """The cost as written of each stage, by its name."""
    prospects = list(look_ahead(list(plan.steps.values()), store()))
    found = costs_from_scratch(plan.recipe, prospects, PreviousArtifacts(store()))
    return {cost.stage: cost for cost in found}
