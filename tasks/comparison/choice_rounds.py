"""The rounds of a choice: which candidates each tries, at which budgets and seeds, and its ranking.

`tasks.comparison.halving` divides the seconds; here it is asked with what is left of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fourstage.terminal import say
from tasks.comparison.choice_costs import expense
from tasks.comparison.choice_entries import scaled_overrides
from tasks.comparison.choice_gate import COUNTED
from tasks.comparison.choice_reserve import seconds_left, set_aside
from tasks.comparison.halving import FINALISTS, best_first, factors, most_rounds, sizes
from tasks.comparison.model_choice import ModelChoice

PLANNED = 0.8  # share of a round's seconds that is planned, since speeds are estimates
LAST_SEEDS = 3  # fine-tunings of each candidate in the last round; one in those before
FEW = 200  # dev rows; fewer choose together with training rows, by cross-validation
FOLDS = (5, 4, 3, 2)  # the most for which no more candidates have to be left out


def next_round(choice: ModelChoice) -> dict[str, Any] | None:
    """The round that comes next, or that was stopped; None when all are done.

    Returns:
        ``number``, 0 for the one without pre-training and 1 for the first that has all candidates;
        ``sizes`` of the rounds from 1; ``seconds``, ``seeds``, ``folds`` of the training rows that
        choose beside the dev rows, ``factors`` on the budgets before the labels, the ``settings``
        that these make of each candidate, ``left_out`` with the seconds that were missing, what
        ``diverged`` with the message, and what was ``tried``.
    """
    state = choice.state
    turns = state["rounds"]
    if state["over"]:
        return None
    if turns and "best" not in turns[-1]:
        return turns[-1]
    if not turns:
        turn = _without_pretraining(choice)
    elif turns[-1]["number"] == 0:
        turn = _first(choice)
    else:
        turn = _after(choice, turns[-1])
    if turn is not None:
        turn["settings"] = {
            name: list(scaled_overrides(choice, name, factor, turn["seeds"]))
            for name, factor in turn["factors"].items()
        }
        choice.keep({**state, "rounds": [*turns, turn]})
        say(_announced(choice, turn))
    return turn


def close_round(choice: ModelChoice) -> None:
    """Rank the candidates of the round that was just tried, at the seeds that all of them have.

    A round in which none was finished in time is dropped, and so is one that has no score of the
    best of the round before, of which it can't say that another is better: what the one before has
    ranked, stands. What a dropped round took stays charged. Where everything that has only labels
    diverged, what reads text is still to be tried.
    """
    state = choice.state
    *before, turn = state["rounds"]
    if turn["number"] == 0 and not turn["tried"]:
        choice.keep({**state, "rounds": [*before, {**turn, "best": []}]})
        return
    if not turn["tried"] or _lacks_the_best(before, turn):
        dropped = [*state["dropped"], turn]
        choice.keep({**state, "rounds": before, "dropped": dropped, "over": True})
        return
    both = min(len(tried["scores"]) for tried in turn["tried"].values())  # one may be stopped early
    means = {name: fmean(tried["scores"][:both]) for name, tried in turn["tried"].items()}
    seconds = {name: of["seconds"] for name, of in turn["tried"].items()}
    turn["best"] = best_first(choice.metric, means, seconds)
    choice.keep(state)


def _lacks_the_best(before: Sequence[Mapping[str, Any]], turn: Mapping[str, Any]) -> bool:
    """Whether the best of the round before was left out; the first has all candidates."""
    return turn["number"] > 1 and before[-1]["best"][0] not in turn["tried"]


def round_name(turn: Mapping[str, Any]) -> str:
    """What a round is called in lines about it."""
    return f"round {turn['number']}" if turn["number"] else "without pre-training"


def _announced(choice: ModelChoice, turn: Mapping[str, Any]) -> str:
    """What a round will try, and what is left of the minutes."""
    seeds = len(turn["seeds"])
    left, aside = seconds_left(choice, seeds), set_aside(choice, seeds)
    return (
        f"{round_name(turn)}: {', '.join(turn['factors'])}; {max(left, 0) / 60:.1f} of"
        f" {choice.minutes:g} minutes are left for candidates, beside {aside / 60:.1f} for test"
        " rows and registration"
    )


def rows_that_choose(turn: Mapping[str, Any]) -> str:
    """The rows whose answers rank the candidates of a round, in words."""
    return f"dev rows and {turn['folds']} folds of train rows" if turn["folds"] else "dev rows"


def _turn(number: int, sizes: Sequence[int], folds: int = 0, **said: object) -> dict[str, Any]:
    ends: dict[str, dict] = {end: {} for end in ("left_out", "diverged", "tried")}
    return {"number": number, "sizes": list(sizes), "folds": folds, **ends, "spent": {}, **said}


def _without_pretraining(choice: ModelChoice) -> dict[str, Any]:
    """The candidates that have only labels, the shortest first; if there are none, all.

    Counting is shorter than the formula for networks says.
    """
    free = [name for name in choice.candidates if not choice.is_pretrained(name)]
    if not free:
        return _first(choice)

    def duration(name: str) -> tuple[bool, float]:
        counted = choice.plans[name].recipe.family == COUNTED
        return not counted, expense(choice, name, 1).finetuning

    kept = dict.fromkeys(sorted(free, key=duration), 1.0)
    return _turn(0, [len(kept)], seconds=0.0, seeds=_seeds(choice, 1), factors=kept)


def _first(choice: ModelChoice) -> dict[str, Any]:
    """The round of all candidates but those that diverged.

    Where dev rows are few, training rows choose beside them: scores on ten rows are a matter of
    chance, however long the candidates are trained.
    """
    turns = choice.state["rounds"]
    names = [name for name in choice.candidates if not any(name in t["diverged"] for t in turns)]
    left, folds = seconds_left(choice, 1), 0
    rounds, kept, out = _most_rounds(choice, names, left, folds)
    if not choice.smoke and (rows := choice.state["rows"])["dev"] < FEW:
        for each in (n for n in FOLDS if n <= rows["train"]):
            with_folds = _most_rounds(choice, names, left, each)
            if with_folds[2].keys() <= out.keys():
                folds, (rounds, kept, out) = each, with_folds
                break
        say(_why_folds(rows, folds))
    found, seeds = sizes(len(kept), rounds), _seeds(choice, 1)
    if len(found) == 1:  # the first round is the last one
        rounds = 1
        if len(kept) <= FINALISTS:
            kept, more, seeds = _at_most_seeds(choice, list(kept), folds)
            out = {**out, **more}
    return _turn(1, found, folds, seconds=left / rounds, seeds=seeds, factors=kept, left_out=out)


def _most_rounds(
    choice: ModelChoice, names: Sequence[str], left: float, folds: int
) -> tuple[int, dict[str, float], dict[str, float]]:
    """The most rounds with which none has to be left out; factors, what is left out.

    At least two, but one where even in two every network would be left out that reads text.
    """
    rounds = most_rounds(len(names))
    kept, out = _divided(choice, names, PLANNED * left / rounds, 1, folds)
    while out and rounds > 2:
        rounds -= 1
        kept, out = _divided(choice, names, PLANNED * left / rounds, 1, folds)
    if out and rounds > 1 and not any(map(choice.is_pretrained, kept)):
        rounds = 1
        # All of it: what is stopped takes no time that another round could use.
        kept, out = _divided(choice, names, left, 1, folds)
    return rounds, kept, out


def _why_folds(rows: Mapping[str, int], folds: int) -> str:
    few = f"choose: {rows['dev']:,} dev rows tell little apart"
    if not folds:
        return f"{few}, and the minutes are too few for cross-validation on the train rows"
    return (
        f"{few}, so {rows['train']:,} train rows choose, too: each candidate is trained {folds}"
        " more times, each time without another part of them, which it then answers"
    )


def _after(choice: ModelChoice, before: Mapping[str, Any]) -> dict[str, Any] | None:
    """The round after another one; None after the last, or where no two fit what is left.

    Or where the best does not fit, which the others would then replace unbeaten; or if it would
    train nothing anew: what has only labels is the same in each round at one seed.
    """
    number, planned = before["number"] + 1, before["sizes"]
    if number > len(planned) or len(before["best"]) == 1:
        return None
    names = before["best"][: planned[number - 1]]
    folds = before["folds"]
    if number == len(planned):
        seconds = seconds_left(choice, 1)
        kept, out, seeds = _at_most_seeds(choice, names, folds)
    else:
        seconds, seeds = seconds_left(choice, 1) / (len(planned) - number + 1), _seeds(choice, 1)
        kept, out = _divided(choice, names, PLANNED * seconds, 1, folds)
    anew = len(seeds) > 1 or any(map(choice.is_pretrained, kept))
    if seconds <= 0 or len(kept) == 1 or names[0] not in kept or not anew:
        return None
    return _turn(number, planned, folds, seconds=seconds, seeds=seeds, factors=kept, left_out=out)


def _at_most_seeds(
    choice: ModelChoice, names: Sequence[str], folds: int
) -> tuple[dict[str, float], dict[str, float], list[int]]:
    """The last round at as many seeds as leave none out: factors, what is left out, seeds."""
    count = LAST_SEEDS
    kept, out = _divided(choice, names, PLANNED * seconds_left(choice, count), count, folds)
    while out and count > 1:
        count -= 1
        kept, out = _divided(choice, names, PLANNED * seconds_left(choice, count), count, folds)
    return kept, out, _seeds(choice, count)


def _divided(
    choice: ModelChoice, names: Sequence[str], seconds: float, seeds: int, folds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Factors of a round's candidates, and what those left out were short of (`factors`)."""
    if choice.smoke:
        return dict.fromkeys(names, 1.0), {}
    expenses = {name: expense(choice, name, seeds, folds) for name in names}
    return factors(expenses, seconds, seeds)


def _seeds(choice: ModelChoice, count: int) -> list[int]:
    # A quick trial has one seed.
    return [choice.finetune.seed + i for i in range(1 if choice.smoke else count)]
