"""A choice among candidates: its rounds, what they cost, and where it stands.

Its minutes are those on the clock from the command's start, over all attempts. What follows the
rounds is set aside for, by what stages have cost so far beside their training: that grows on a busy
machine as test rows and registration do.

The state is a file in the home, so that a choice that was stopped divides its minutes as it had and
finds its stages in the store. It says what data, code and packages its scores are of: scores of
others can't be ranked beside them, so after a change the rounds start anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any

from corpora.prepared import prepared_rows
from fourstage.digests import canonical, digest, write_atomically
from fourstage.errors import Interrupted, RecipeError
from fourstage.recipe.resolved import as_recipe
from fourstage.settings import home
from fourstage.terminal import say
from tasks.comparison.budgets import run_entry
from tasks.comparison.candidates import Candidate, candidates_of
from tasks.comparison.choice_gate import COUNTED, not_below_baseline, told
from tasks.comparison.halving import Expense, best_first, factors, most_rounds, sizes
from tasks.comparison.participants import Entry, SeedRun, pretraining_stages
from tasks.planning.forecast import Cost, costs_from_scratch, stage_costs, tokens_per_second
from tasks.planning.layout import Plan, stage_settings
from tasks.planning.plan import plan_recipe
from tasks.run.recipe_run import open_run
from tasks.store.artifacts import store
from tasks.store.step_names import EVALUATION, dataset_step, measurement_step, stage_step
from tasks.store.steps import Bound, PreviousArtifacts, look_ahead

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage

FOLDER = "choices"
STATE, FORMAT = "state.json", 2  # a stopped choice with another format starts anew
PLANNED = 0.8  # share of a round's seconds that is planned, since speeds are estimates
BESIDE = 10.0  # seconds of a stage beside its training until that is measured
ASKED = 2.0  # seconds to answer the dev rows until that is measured
# What follows the rounds, in stages without their training: a finalist at a seed is packaged and
# answers test and dev rows, then one is registered, judged and tried in a fresh process.
JUDGED, REGISTERED = 1.25, 3.0
LEAST_TOKENS = 500_000  # before the labels; with less a network has learned too little to judge it
MOST_PASSES = 20.0  # over a text
FINALISTS = 2  # of the last round are judged on the test rows
LAST_SEEDS = 3  # fine-tunings of each candidate in the last round; one in those before
# What every candidate reads, and what a score on dev rows is made by.
READ = ("dataset", "corpus", "tokenizer", "tokens", "rows")
SCORED = (*READ, "stage", "measurement")
PREPARED, JUDGING = "prepared", "judged"  # outside the rounds


class Clock:
    """Seconds since they were last taken.

    Args:
        begun: When they began, by `time.time`; by default now.
    """

    def __init__(self, begun: float | None = None):
        past = 0.0 if begun is None else max(0.0, time.time() - begun)
        self._since = time.monotonic() - past

    @property
    def passed(self) -> float:
        """The seconds so far."""
        return time.monotonic() - self._since

    def take(self) -> float:
        """The seconds so far, which then begin anew."""
        passed = self.passed
        self._since += passed
        return passed


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
        clock: What has passed since the last charge.
    """

    recipe: str
    smoke: bool
    minutes: float
    candidates: Mapping[str, Candidate]
    unmade: Mapping[str, str]
    whole: Plan
    folder: Path
    clock: Clock

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
        ``spent`` by candidate and step; whether they are ``over``; seconds of what follows them
        (``judged``), by step, and in the end of all (``took``).
        """
        path = self.folder / STATE
        if not path.is_file():
            return _at_first()
        return _at_first() | json.loads(path.read_text(encoding="utf-8"))

    def keep(self, state: Mapping[str, Any]) -> None:
        """Write the state."""
        write_atomically(self.folder / STATE, json.dumps(state, indent=1) + "\n")

    def charge(
        self, step: str, seconds: float, least: float = 0.0, *, name: str = "", to: str = PREPARED
    ) -> None:
        """Add seconds to what a step has cost so far.

        Args:
            step: The step.
            seconds: Since the last charge.
            least: What the step has cost at least, in all attempts.
            name: The candidate of the last round; empty for what is outside the rounds.
            to: Without a candidate, ``prepared`` or ``judged``.
        """
        state = self.state
        spent = state["rounds"][-1]["spent"].setdefault(name, {}) if name else state[to]
        spent[step] = max(spent.get(step, 0.0) + seconds, least)
        self.keep(state)

    @property
    def spent(self) -> dict[str, float]:
        """Seconds charged so far: ``prepared``, ``rounds`` and ``judged``."""
        state = self.state
        rounds = [sum(of.values()) for turn in state["rounds"] for of in turn["spent"].values()]
        return {
            PREPARED: sum(state[PREPARED].values()),
            "rounds": sum(rounds),
            JUDGING: sum(state[JUDGING].values()),
        }

    def left(self, seeds: int) -> float:
        """Seconds left for a round at so many seeds, after which only judging follows."""
        return 60 * self.minutes - sum(self.spent.values()) - self.set_aside(seeds)

    def set_aside(self, seeds: int) -> float:
        """Seconds that judging two finalists at so many seeds and registering one may take."""
        rows = self.state.get("rows", {})
        asked = 1 + rows.get("test", 0) / max(rows.get("dev", 0), 1)
        judged = JUDGED * self.beside + asked * self.asking
        return FINALISTS * seeds * judged + REGISTERED * self.beside

    @property
    def beside(self) -> float:
        """Seconds that a stage costs beside its training, the mean of those made so far."""
        found = [s for tried in self._tried for s in tried["beside"]]
        return fmean(found) if found else BESIDE

    @property
    def asking(self) -> float:
        """Seconds that answering the dev rows has cost, at most, of what has only labels.

        Of a network that reads text before, the same step measures its losses, too.
        """
        first = next((turn["tried"] for turn in self.state["rounds"]), {})
        return max((s for tried in first.values() for s in tried["asking"]), default=ASKED)

    @property
    def pace(self) -> float:
        """How many times as long as the formula says a stage of the recipe's network takes here.

        So far as it was measured, else 1. A busy machine slows the networks that were not measured
        as well.
        """
        recipe, costs = self.whole.recipe, _costs(self.whole)
        found = [
            _by_formula(recipe, stage) / costs[stage.name].tokens_per_second
            for stage in recipe.last_network
            if stage.name in costs and costs[stage.name].measured
        ]
        return median(found) if found else 1.0

    def seconds(self, cost: Cost) -> float:
        """Estimated training time of a stage."""
        return (cost.seconds or 0.0) * (1.0 if cost.measured else self.pace)

    @property
    def _tried(self) -> list[dict[str, Any]]:
        return [tried for turn in self.state["rounds"] for tried in turn["tried"].values()]

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
        made = self.overrides(name, factor, seeds) + not_below_baseline(self.plans[name])
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
    begun: float | None = None,
) -> ModelChoice:
    """Check a choice before any work, and find where it stands.

    Args:
        recipe: Name or path of a recipe with labels.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial.
        minutes: Minutes in all, from `begun`.
        more: ``NAME:a.b=c``, further candidates.
        without: Names of candidates to leave out.
        begun: When this attempt began, by `time.time`; by default now.

    Raises:
        RecipeError: There are no labels, or a setting is invalid.
        UnknownNameError: `without` names no candidate.
    """
    clock = Clock(begun)
    unmade: dict[str, str] = {}
    found = candidates_of(recipe, overrides, smoke, more, without, unmade.__setitem__)
    candidates = {each.name: each for each in found}
    for name, why in unmade.items():
        say(f"choose: {name} is left out, it can't be made of this recipe: {why}")
    whole = plan_recipe(recipe, overrides, smoke)
    asked = {
        "state": FORMAT,
        "recipe": canonical(as_recipe(whole.recipe)),
        "candidates": {name: list(each.overrides) for name, each in candidates.items()},
        "minutes": minutes,
        "smoke": smoke,
    }
    folder = home() / FOLDER / digest(asked)
    folder.mkdir(parents=True, exist_ok=True)
    choice = ModelChoice(recipe, smoke, minutes, candidates, unmade, whole, folder, clock)
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
    choice.keep({**_at_first(), "made_of": now})


def _at_first() -> dict[str, Any]:
    return {PREPARED: {}, "rounds": [], "over": False, JUDGING: {}, "took": None}


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

    The first step is also charged with what has passed since the last charge.

    Args:
        choice: The choice.
        name: The candidate; empty for what is outside the rounds.
        to: Without a candidate, ``prepared`` or ``judged``.
    """

    def __init__(self, choice: ModelChoice, name: str = "", to: str = PREPARED):
        self._choice, self._name, self._to, self._step = choice, name, to, ""

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *failed: object) -> None:
        self.lap()

    def begin(self, step: str) -> None:
        """Say whose seconds the next ones are."""
        self._step = step

    def lap(self, least: float = 0.0) -> float:
        """Charge the seconds since the last lap to the step that was begun.

        Args:
            least: What the step has cost at least, in all attempts.

        Returns:
            The seconds.
        """
        passed = self._choice.clock.take()
        self._choice.charge(self._step, passed, least, name=self._name, to=self._to)
        return passed


def prepare(choice: ModelChoice) -> None:
    """Make what every candidate reads: data, contracts, tokenizer, tokens, and the cheap baseline.

    Raises:
        RecipeError: There are no dev rows to choose by.
        ContractViolation: A contract is broken.
    """
    finetune = choice.whole.recipe.finetune
    assert finetune is not None
    assert finetune.dataset is not None
    counts: dict[str, int] = {}
    say(
        f"choose: {choice.minutes:g} minutes from the command's start for all of it: data,"
        f" {len(choice.candidates)} candidates in rounds, test rows, registration"
    )
    with Meter(choice) as meter, open_run(choice.whole) as run:
        meter.begin("start")
        import_module("models.training.trainer")  # else the first stage would seem to cost more
        meter.lap()
        names = [step.name for step in choice.whole.of_kind(*READ, "contract")]
        if baseline := choice.whole.steps[EVALUATION].inputs.get("baseline"):
            names.append(baseline)
        for name in names:
            meter.begin(name)
            run.make(name)
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
    if state["over"]:
        return None
    if turns and not turns[-1].get("best"):
        return turns[-1]
    if not turns:
        turn = _without_pretraining(choice)
    elif turns[-1]["number"] == 0:
        turn = _first(choice)
    else:
        turn = _after(choice, turns[-1])
    if turn is not None:
        choice.keep({**state, "rounds": [*turns, turn]})
        say(_announced(choice, turn))
    return turn


def _announced(choice: ModelChoice, turn: Mapping[str, Any]) -> str:
    """What a round will try, and what is left of the minutes."""
    seeds = len(turn["seeds"])
    left, aside = choice.left(seeds), choice.set_aside(seeds)
    return (
        f"{_called(turn)}: {', '.join(turn['factors'])}; {max(left, 0) / 60:.1f} of"
        f" {choice.minutes:g} minutes are left for candidates, beside {aside / 60:.1f} for test"
        " rows and registration"
    )


def _called(turn: Mapping[str, Any]) -> str:
    return f"round {turn['number']}" if turn["number"] else "without pre-training"


def _turn(number: int, sizes: Sequence[int], **said: object) -> dict[str, Any]:
    begun: dict[str, Any] = {"tried": {}, "spent": {}}
    return {"number": number, "sizes": list(sizes), "left_out": {}, **said, **begun}


def _without_pretraining(choice: ModelChoice) -> dict[str, Any]:
    """The candidates that have only labels, the shortest first; if there are none, all.

    Counting is shorter than the formula for networks says.
    """
    free = [name for name in choice.candidates if not _is_pretrained(choice, name)]
    if not free:
        return _first(choice)
    shortest = sorted(free, key=lambda name: _expense(choice, name, 1).finetuning)
    shortest.sort(key=lambda name: choice.plans[name].recipe.family != COUNTED)
    kept = dict.fromkeys(shortest, 1.0)
    return _turn(0, [len(kept)], seconds=0.0, seeds=_seeds(choice, 1), factors=kept)


def _first(choice: ModelChoice) -> dict[str, Any]:
    """The round of all candidates, in the most rounds with which none has to be left out.

    Where even in two every network would be left out that reads text, it is the only round.
    """
    names, left = list(choice.candidates), choice.left(1)
    rounds = most_rounds(len(names))
    kept, out = _divided(choice, names, PLANNED * left / rounds, 1)
    while out and rounds > 2:
        rounds -= 1
        kept, out = _divided(choice, names, PLANNED * left / rounds, 1)
    if out and rounds > 1 and not _any_pretrained(choice, kept):
        rounds = 1
        # All of it: what is stopped takes no time that another round could use.
        kept, out = _divided(choice, names, left, 1)
    found, seeds = sizes(len(kept), rounds), _seeds(choice, 1)
    if len(found) == 1:  # the first round is the last one
        rounds = 1
        if len(kept) <= FINALISTS:
            kept, more, seeds = _at_most_seeds(choice, list(kept))
            out = {**out, **more}
    return _turn(1, found, seconds=left / rounds, seeds=seeds, factors=kept, left_out=out)


def _after(choice: ModelChoice, before: Mapping[str, Any]) -> dict[str, Any] | None:
    """The round after another one; None after the last, or where no two fit what is left.

    Or if it would train nothing anew: what has only labels is the same in each round at one seed.
    """
    number, planned = before["number"] + 1, before["sizes"]
    if number > len(planned) or len(before["best"]) == 1:
        return None
    names = before["best"][: planned[number - 1]]
    if number == len(planned):
        seconds = choice.left(1)
        kept, out, seeds = _at_most_seeds(choice, names)
    else:
        seconds, seeds = choice.left(1) / (len(planned) - number + 1), _seeds(choice, 1)
        kept, out = _divided(choice, names, PLANNED * seconds, 1)
    anew = len(seeds) > 1 or _any_pretrained(choice, kept)
    if seconds <= 0 or len(kept) == 1 or not anew:
        return None
    return _turn(number, planned, seconds=seconds, seeds=seeds, factors=kept, left_out=out)


def _at_most_seeds(
    choice: ModelChoice, names: Sequence[str]
) -> tuple[dict[str, float], dict[str, float], list[int]]:
    """The last round at as many seeds as leave none out: factors, what is left out, seeds."""
    count = LAST_SEEDS
    kept, out = _divided(choice, names, PLANNED * choice.left(count), count)
    while out and count > 1:
        count -= 1
        kept, out = _divided(choice, names, PLANNED * choice.left(count), count)
    return kept, out, _seeds(choice, count)


def _divided(
    choice: ModelChoice, names: Sequence[str], seconds: float, seeds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Factors of a round's candidates, and what those left out were short of (`factors`)."""
    if choice.smoke:
        return dict.fromkeys(names, 1.0), {}
    expenses = {name: _expense(choice, name, seeds) for name in names}
    return factors(expenses, seconds, seeds)


def _any_pretrained(choice: ModelChoice, names: Iterable[str]) -> bool:
    return any(_is_pretrained(choice, name) for name in names)


def _is_pretrained(choice: ModelChoice, name: str) -> bool:
    return bool(pretraining_stages(choice.plans[name].recipe))


def try_candidate(choice: ModelChoice, turn: Mapping[str, Any], name: str) -> None:
    """Train a candidate with a round's budget and score it on the dev rows, if there is time.

    A seed that may take longer than what is left is not begun, and one that does is stopped; a
    candidate without any is left out. What it costs is written down step by step. Of an attempt
    that is killed inside a stage, the updates up to the last checkpoint are paid for when the stage
    is finished.
    """
    if name in turn["tried"] or name in turn["left_out"]:
        return
    # The first of all has no limit: there has to be one that can be chosen.
    bounded = any(each["tried"] for each in choice.state["rounds"])
    say(f"{_called(turn)}: {name}")
    tried: dict[str, Any] = {
        **{"scores": [], "tokens": 0, "seconds": 0.0},
        **{"beside": [], "asking": []},
    }
    made = choice.overrides(name, turn["factors"][name], turn["seeds"])
    missing = 0.0
    with Meter(choice, name) as meter:
        for number, seed in enumerate(turn["seeds"]):
            plan = plan_recipe(choice.recipe, made, choice.smoke, seed)
            meter.begin(f"plan at seed {seed}")
            meter.lap()
            left = max(choice.left(number + 1), 0.0) if bounded or number else None
            if left is not None and (missing := _expected(choice, plan) - left) > 0:
                break
            try:
                _train(plan, seed, meter, tried, left)
            except Interrupted as interruption:
                meter.lap()
                if interruption.signal_number or left is None or choice.left(number + 1) > 0:
                    raise
                break
    where = f"{_called(turn)}: {name}"
    state = choice.state
    if tried["scores"]:
        say(f"{where}: {choice.metric} {fmean(tried['scores']):.4f} on dev rows")
        state["rounds"][-1]["tried"][name] = tried
    else:
        needs = (
            f"needs {missing:.0f} s more than are left" if missing > 0 else "did not end in time"
        )
        say(f"{where} is left out: it {needs}")
        state["rounds"][-1]["left_out"][name] = max(missing, 0.0)
    choice.keep(state)


def _expected(choice: ModelChoice, plan: Plan) -> float:
    """Seconds that those stages of a plan may take which are not in the store."""
    prospects = list(look_ahead(list(plan.steps.values()), store()))
    costs = stage_costs(plan.recipe, prospects, PreviousArtifacts(store()))
    seconds = sum(choice.beside + choice.seconds(cost) for cost in costs)
    return seconds + (choice.asking if costs else 0.0)


def _train(plan: Plan, seed: int, meter: Meter, tried: dict[str, Any], limit: float | None) -> None:
    """Train a candidate at a seed and score it on the dev rows, in so many seconds.

    Args:
        plan: Its plan at the seed.
        seed: The seed.
        meter: What is charged.
        tried: Gets its score and what it took: ``seconds`` of training, those ``beside`` the
            training of each stage that was made, and those of ``asking`` about the dev rows.
        limit: Seconds after which no stage may train any more.

    Raises:
        Interrupted: The seconds have passed.
    """
    finetune = plan.recipe.finetune
    assert finetune is not None
    stages = []
    with open_run(plan, None if limit is None else time.monotonic() + limit) as run:
        for stage in plan.recipe.stages:
            step = stage_step(stage.name)
            meter.begin(f"{step} at seed {seed}")
            stages.append(run.make(step))
            trained = stages[-1].notes["seconds"]
            if run.status[step] == "made":
                tried["beside"].append(max(meter.lap(least=trained) - trained, 0.0))
            else:
                meter.lap()
        step = measurement_step(finetune.name)
        meter.begin(f"{step} at seed {seed}")
        measured = run.make(step)
        passed = meter.lap()
        if run.status[step] == "made":
            tried["asking"].append(passed)
    counted = stages[-1:] if tried["scores"] else stages  # the seeds share what is before
    tried["seconds"] += sum(stage.notes["seconds"] for stage in counted)
    tried["tokens"] = sum(stage.facts["tokens"] for stage in stages)
    tried["scores"].append(measured.facts["task_metric"]["value"])


def close_round(choice: ModelChoice) -> None:
    """Rank the candidates of the round that was just tried.

    A round in which none was finished in time is dropped: what the one before has ranked, stands.
    """
    state = choice.state
    turn = state["rounds"][-1]
    if not turn["tried"]:
        del state["rounds"][-1]
        choice.keep({**state, "over": True})
        return
    means = {name: fmean(tried["scores"]) for name, tried in turn["tried"].items()}
    seconds = {name: of["seconds"] for name, of in turn["tried"].items()}
    turn["best"] = best_first(choice.metric, means, seconds)
    choice.keep(state)


def close_choice(choice: ModelChoice) -> None:
    """Note what the choice took in all, once: looking at it again takes nothing from it."""
    state = choice.state
    if state["took"] is None:
        choice.keep({**state, "took": choice.spent})


def survivors(choice: ModelChoice) -> list[Entry]:
    """The two best of the last round, the chosen one first, as entries of a comparison.

    Their seeds are those that both were trained at. Their gate asks what `not_below_baseline` says.
    """
    turn = choice.state["rounds"][-1]
    finalists, seeds = turn["best"][:FINALISTS], _seeds_of_both(turn)
    entries = [choice.entry(name, turn["factors"][name], turn["seeds"]) for name in finalists]
    return [_at_seeds(entry, seeds) for entry in entries]


def _seeds_of_both(turn: Mapping[str, Any]) -> list[int]:
    """The seeds at which all finalists were trained."""
    tried = [turn["tried"][name] for name in turn["best"][:FINALISTS]]
    return turn["seeds"][: min(len(each["scores"]) for each in tried)]


def _at_seeds(entry: Entry, seeds: Sequence[int]) -> Entry:
    return replace(entry, seeds=tuple(seeds), together=len(seeds))


def judge_finalists(choice: ModelChoice) -> tuple[list[Entry], dict[str, list[SeedRun]]]:
    """Score the `survivors` on the test rows, seed by seed as long as the minutes allow it.

    Returns:
        The survivors with the seeds that were judged, and the runs of each by its name.
    """
    entries = survivors(choice)
    runs: dict[str, list[SeedRun]] = {entry.name: [] for entry in entries}
    most, seeds = 0.0, entries[0].seeds
    with Meter(choice, to=JUDGING) as meter:
        for number, seed in enumerate(seeds):
            left = 60 * choice.minutes - sum(choice.spent.values()) - REGISTERED * choice.beside
            if number and most > left:
                say(f"the minutes allow only {number} of {len(seeds)} seeds on the test rows")
                seeds = seeds[:number]
                break
            meter.begin(f"test rows at seed {seed}")
            for entry in entries:
                runs[entry.name].append(run_entry(entry, seed))
            most = max(most, meter.lap())
    return [_at_seeds(entry, seeds) for entry in entries], runs


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
        "spent": state["took"] or choice.spent,
        "gate": told(choice.plans[ranked[0]]),
        "dev_rows": state["rows"]["dev"],
        "train_rows": state["rows"].get("train", 0),
        "rounds": state["rounds"][-1]["number"],
        "planned_rounds": len(state["rounds"][-1]["sizes"]),
        "seeds": _seeds_of_both(state["rounds"][-1]),
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
        stages[digest(before)] = choice.seconds(costs[stage.name])
    read = [costs[stage.name] for stage in pretraining_stages(plan.recipe)]
    tokens = sum(cost.tokens or 0.0 for cost in read)
    passes = max((n for cost in read for n in cost.passes.values()), default=0.0)
    most = max(1.0, MOST_PASSES / passes) if passes else 1.0
    least = LEAST_TOKENS / tokens if tokens else 0.0
    finetuning = choice.seconds(costs[finetune.name]) + choice.beside + choice.asking
    if not stages and any(name in turn["tried"] for turn in choice.state["rounds"]):
        # Its first seed is trained already.
        finetuning *= (seeds - 1) / seeds
    network = canonical({"family": plan.recipe.family, **plan.recipe.network})
    return Expense(stages, finetuning, network, least, most, choice.beside)


def _by_formula(recipe: ResolvedRecipe, stage: ResolvedStage) -> float:
    """Tokens per second of a stage on a machine of which nothing is known."""
    vocabulary = (stage.tokenizer or recipe.tokenizer).vocabulary_size
    speed, _ = tokens_per_second(
        stage.family, stage.network, vocabulary, (), trains_itself=stage.trains_itself
    )
    return speed


def _costs(plan: Plan) -> dict[str, Cost]:
    """The cost as written of each stage, by its name."""
    prospects = list(look_ahead(list(plan.steps.values()), store()))
    found = costs_from_scratch(plan.recipe, prospects, PreviousArtifacts(store()))
    return {cost.stage: cost for cost in found}
