"""A choice among candidates: what is asked, where it stands, and what it has cost.

The state is a file in the home, so that a choice that was stopped divides its minutes as it had and
finds its stages in the store. It says what data, code and packages its scores are of: scores of
others can't be ranked beside them, so after a change the rounds start anew.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.digests import canonical, digest, write_atomically
from fourstage.errors import EnvironmentFault
from fourstage.recipe.resolved import as_recipe
from fourstage.settings import home
from fourstage.terminal import say
from tasks.comparison.candidates import Candidate, candidates_of
from tasks.comparison.choice_clock import Clock
from tasks.comparison.participants import pretraining_stages
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage

FOLDER = "choices"
STATE, FORMAT = "state.json", 4  # a stopped choice with another format starts anew
# What every candidate reads, and what a score is made by.
READ = ("dataset", "corpus", "tokenizer", "tokens", "rows", "wide")
SCORED = (*READ, "stage", "measurement")
PREPARED, JUDGING = "prepared", "judged"  # outside the rounds


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
        """What chooses, on the dev rows and, where these are few, the training rows."""
        return self.whole.recipe.metrics[0]

    @property
    def finetune(self) -> ResolvedStage:
        """The stage with the labels, of the recipe as written."""
        assert self.whole.recipe.finetune is not None, "what `candidates_of` asks for"
        return self.whole.recipe.finetune

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """Each candidate's plan as written."""
        return {
            name: plan_recipe(self.recipe, candidate.overrides, self.smoke)
            for name, candidate in self.candidates.items()
        }

    def is_pretrained(self, name: str) -> bool:
        """Whether a candidate reads text before the labels."""
        return bool(pretraining_stages(self.plans[name].recipe))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process go on with this choice: each step changes what the last one wrote.

        Raises:
            EnvironmentFault: Another process is making it.
        """
        with open(self.folder / "lock", "a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EnvironmentFault(
                    "choose: another process is making this choice. When it has ended, the same"
                    " command shows what it found."
                ) from None
            yield

    @property
    def state(self) -> dict[str, Any]:
        """Where it stands.

        ``made_of``, a digest of data and code; seconds so far to be ``prepared``, by step, and
        then the number of ``rows`` by split; finished or begun ``rounds``, each with the seconds
        ``spent`` by candidate and step; those that were ``dropped``, which cost as much; whether
        they are ``over``; seconds of what follows them (``judged``), by step, and in the end of all
        (``took``); the seeds that were judged on the test rows (``tested``).
        """
        path = self.folder / STATE
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else _at_first()

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
        turns = [*state["rounds"], *state["dropped"]]
        rounds = [sum(of.values()) for turn in turns for of in turn["spent"].values()]
        return {
            PREPARED: sum(state[PREPARED].values()),
            "rounds": sum(rounds),
            JUDGING: sum(state[JUDGING].values()),
        }


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
        EnvironmentFault: Another process is making it.
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
    with choice.alone():  # who makes it loses no rounds to one that is refused
        _start_anew_if_changed(choice)
    return choice


def close_choice(choice: ModelChoice) -> None:
    """Note what the choice took in all, once: looking at it again takes nothing from it."""
    state = choice.state
    if state["took"] is None:
        choice.keep({**state, "took": choice.spent})


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
    return {
        PREPARED: {},
        "rounds": [],
        "dropped": [],
        "over": False,
        JUDGING: {},
        "took": None,
        "tested": [],
    }


def _made_of(choice: ModelChoice) -> str:
    """Digest of what the scores of all candidates are made of: files, code and packages."""
    # Keys of steps without their inputs: those are among the steps, most of them not yet made.
    return digest(
        {
            name: {step.name: Bound(step, {}).key for step in plan.of_kind(*SCORED)}
            for name, plan in choice.plans.items()
        }
    )
