"""Successive halving: minutes go to the candidates that are still the best.

    first:   those without pre-training, which cost little and measure this machine's speed
    round 1: all candidates, the minutes of a round divided among their pre-trainings
    round 2: the better ones, with the same minutes, so with longer pre-training
    …        until two are left; the better one is chosen

Reference:
    Jamieson and Talwalkar 2016, "Non-stochastic Best Arm Identification and Hyperparameter
    Optimization", arXiv 1502.07943, algorithm 1. There a candidate goes on from where it was; here
    it is trained anew, since a learning rate's schedule has the whole budget in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.metrics import rank

FINALISTS = 2  # of the last round


@dataclass(frozen=True)
class Expense:
    """What a candidate is expected to cost.

    Attributes:
        stages: Seconds of each stage before the labels, at the budgets as written; stages with the
            same key are the same stage, which is trained once.
        finetuning: Seconds of its stage with the labels, at one seed, with what goes on beside.
        network: Candidates with the same network here have their budgets scaled by one factor, so
            that they share stages and differ only in what they leave out.
        least: The smallest factor with which its pre-training is worth trying.
        most: The largest factor that its texts allow.
        beside: Seconds of each stage before the labels that don't depend on its budget.
    """

    stages: Mapping[str, float]
    finetuning: float
    network: str = ""
    least: float = 0.0
    most: float = math.inf
    beside: float = 0.0


def sizes(candidates: int, rounds: int) -> list[int]:
    """How many candidates each round tries, falling evenly to two: 9 in 3 rounds → [9, 4, 2].

    Args:
        candidates: Those of the first round.
        rounds: At most; fewer if two are left sooner.
    """
    found = [candidates]
    for number in range(1, rounds):
        if found[-1] <= FINALISTS:
            break
        share = number / (rounds - 1)
        between = round(candidates ** (1 - share) * FINALISTS**share)
        found.append(min(found[-1] - 1, max(FINALISTS, between)))
    return found


def most_rounds(candidates: int) -> int:
    """How many rounds halve the candidates until two are left."""
    return max(1, (candidates - 1).bit_length())


def best_first(metric: str, scores: Mapping[str, float], seconds: Mapping[str, float]) -> list[str]:
    """Candidates by score, the best first; of equal ones the one that took less time.

    Args:
        metric: What the scores are of.
        scores: Of each, on the same rows.
        seconds: Training time of each.
    """
    return sorted(scores, key=lambda name: (-rank(metric, scores[name]), seconds[name], name))


def factors(
    expenses: Mapping[str, Expense], seconds: float, seeds: int = 1
) -> tuple[dict[str, float], dict[str, float]]:
    """Divide the seconds of a round among its candidates.

    Each is fine-tuned as written. What is left goes in equal parts to the networks that are
    pre-trained, and the candidates of a network share one factor, no larger than the texts of each
    allow. Where a part is too small, the candidate that costs it most is left out; the first of a
    network is the last to go. Where fine-tuning alone takes too long, the longest is left out.

    Args:
        expenses: Of each candidate.
        seconds: Of the round.
        seeds: How often each is fine-tuned.

    Returns:
        Factors on the budgets before the labels, 1.0 for a candidate without such stages; and of
        the candidates that are left out the seconds that were missing. One candidate is always
        kept, if need be beyond the seconds.
    """
    kept, missing = dict(expenses), {}
    while True:
        networks = {each.network for each in kept.values() if each.stages}
        left = seconds - seeds * sum(each.finetuning for each in kept.values())
        part = left / max(len(networks), 1)
        short = {
            network: needed - part
            for network in networks
            if (needed := _needed(kept, network)) > part or part <= 0
        }
        longest = max(kept, key=lambda name: kept[name].finetuning)
        if len(kept) == 1 or not (short or (left < 0 and kept[longest].finetuning > 0)):
            break
        if short:
            worst = max(sorted(short), key=short.__getitem__)
            first, *others = _of(kept, worst)
            leaving = max(others or [first], key=lambda name: _saved(kept, worst, name))
            missing[leaving] = short[worst]
        else:
            leaving, missing[longest] = longest, -left
        del kept[leaving]
    shared = {network: _factor(kept, network, part) for network in networks}
    return {
        name: shared[each.network] if each.stages else 1.0 for name, each in kept.items()
    }, missing


def _of(kept: Mapping[str, Expense], network: str) -> dict[str, Expense]:
    return {n: each for n, each in kept.items() if each.stages and each.network == network}


def _total(kept: Mapping[str, Expense], network: str) -> float:
    """Seconds of a network's pre-trainings as written, each stage once."""
    stages = {key: s for each in _of(kept, network).values() for key, s in each.stages.items()}
    return sum(stages.values())


def _beside(kept: Mapping[str, Expense], network: str) -> float:
    """Seconds of a network's pre-trainings that don't depend on their budgets, each stage once."""
    stages = {key: each.beside for each in _of(kept, network).values() for key in each.stages}
    return sum(stages.values())


def _factor(kept: Mapping[str, Expense], network: str, part: float) -> float:
    """The factor of all candidates of a network that get so many seconds.

    1.0 where nothing is known of what they cost, before their text is read.
    """
    total = _total(kept, network)
    if not total:
        return 1.0
    most = min(each.most for each in _of(kept, network).values())
    scaled = (part - _beside(kept, network)) / total
    return max(min(scaled, most), _least(kept, network))


def _least(kept: Mapping[str, Expense], network: str) -> float:
    """The smallest factor worth trying, or the largest possible one if that is smaller."""
    of = _of(kept, network).values()
    return min(max(each.least for each in of), min(each.most for each in of))


def _needed(kept: Mapping[str, Expense], network: str) -> float:
    return _least(kept, network) * _total(kept, network) + _beside(kept, network)


def _saved(kept: Mapping[str, Expense], network: str, name: str) -> float:
    """Seconds that a network costs less without one of its candidates."""
    others = {other: each for other, each in kept.items() if other != name}
    of_all, without = (_total(k, network) + _beside(k, network) for k in (kept, others))
    return of_all - without
