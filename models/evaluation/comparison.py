"""Several recipes, several seeds, the same rows: which differences are real?

A score moves for two reasons: other test rows might have been drawn, and other seeds might have
trained the model. So both are resampled, crossed with each other: rows for all models together
(paired: a row that is hard for all blurs no difference), seeds for each recipe on its own. Of n
seeds n - 1 are drawn, which makes the variance of their mean unbiased; drawing n would understate
it by a third at three seeds. Rows that share a text are drawn together.

The bootstrap gives the standard error; the interval is that times Student's t, because three seeds
tell little of their own spread and a normal quantile would pretend otherwise.

Reference:
    Sellam et al. 2022, arXiv 2106.16163, section 3 (multi-bootstrap over seeds and rows);
    Rao and Wu 1988, JASA 83 (n - 1 of n); Satterthwaite 1946, Biometrics Bulletin 2 (degrees of
    freedom of a sum of variances); Card et al. 2020, arXiv 2010.06595 (power in NLP).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fourstage.errors import ContractViolation
from models.evaluation.classification import METRICS, Metric

BETTER, WORSE, UNCLEAR = "better", "worse", "not distinguishable"
RESAMPLES = 2000
CONFIDENCE = 0.95
POWER = 0.8


@dataclass(frozen=True)
class Contender:
    """What one recipe predicts.

    Attributes:
        name: Unique in the contest.
        predictions: (seeds, rows) label ids.
        random: Whether another seed could have given others; not so for a model without chance.
    """

    name: str
    predictions: np.ndarray
    random: bool = True

    @property
    def num_seeds(self) -> int:
        """How often it was trained."""
        return len(self.predictions)


@dataclass(frozen=True)
class Score:
    """A contender's metric.

    Attributes:
        name: The contender's.
        values: One a seed.
        mean: Of them.
        deviation: Standard deviation over seeds (n - 1); None for a single seed.
        low: Lower end of the interval of the mean, over rows and seeds.
        high: Upper end.
    """

    name: str
    values: tuple[float, ...]
    mean: float
    deviation: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """A contender against another on the same rows.

    Attributes:
        candidate: Name of the one judged.
        reference: Name of the one it is held against.
        difference: Mean of the candidate minus mean of the reference.
        low: Lower end of the two-sided interval.
        high: Upper end.
        standard_error: Of the difference, over rows and seeds.
        degrees_of_freedom: Of Student's t; few where the spread over few seeds decides.
        smallest_detectable: The true difference that such a comparison would find with the power
            asked for.
        verdict: `BETTER` or `WORSE` from there on, else `UNCLEAR`.
    """

    candidate: str
    reference: str
    difference: float
    low: float
    high: float
    standard_error: float
    degrees_of_freedom: float
    smallest_detectable: float
    verdict: str


@dataclass(frozen=True)
class Contest:
    """All contenders on one metric.

    Attributes:
        metric: Name in `METRICS`.
        scores: In the order of the contenders.
        differences: Every pair, the later contender judged against the earlier.
        rows: How many were compared.
        groups: How many texts they come from.
        one_seed: Contenders whose spread over seeds is not known: theirs is that of rows alone.
    """

    metric: str
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    rows: int
    groups: int
    one_seed: tuple[str, ...]


def contest(
    labels: np.ndarray,
    contenders: Sequence[Contender],
    num_labels: int,
    *,
    metric: str,
    groups: np.ndarray | None = None,
    confidence: float = CONFIDENCE,
    power: float = POWER,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Contest:
    """Score all contenders and judge every pair.

    Args:
        labels: (rows,) true label ids.
        contenders: With predictions for the same rows in the same order.
        num_labels: Number of labels.
        metric: Name in `METRICS`; higher is better.
        groups: (rows,) number of the text of each row, drawn as one; each row its own where None.
        confidence: Of the two-sided intervals, 0.5-1.
        power: Share of true differences that `Difference.smallest_detectable` promises to find.
        resamples: Of rows and seeds.
        seed: Of the resampling.

    Raises:
        ContractViolation: If the contenders do not speak of the same rows, or there is none.
    """
    labels = np.asarray(labels)
    for contender in contenders:
        if contender.predictions.ndim != 2 or contender.predictions.shape[1] != len(labels):
            raise ContractViolation(
                f"compare: expected predictions of {contender.name} for {len(labels)} rows, got"
                f" shape {contender.predictions.shape}; all recipes must be evaluated on the same"
                " split of the same dataset"
            )
    if not len(labels):
        raise ContractViolation("compare: there are no rows to compare on")
    _, group_of = np.unique(
        np.arange(len(labels)) if groups is None else np.asarray(groups), return_inverse=True
    )
    measure = METRICS[metric]
    drawn = _resampled(labels, contenders, num_labels, measure, group_of, resamples, seed)
    values = [[measure(labels, p, num_labels) for p in c.predictions] for c in contenders]
    of_seeds = [
        _variance_of_mean(v) if c.random else 0.0 for v, c in zip(values, contenders, strict=True)
    ]
    num_groups = int(group_of.max()) + 1

    def spread(number: np.ndarray, members: Sequence[int]) -> tuple[float, float]:
        """(standard error, degrees of freedom) of a resampled number."""
        variance = float(np.var(number, ddof=1))
        parts = [(of_seeds[i], contenders[i].num_seeds - 1) for i in members]
        parts.append((max(variance - sum(v for v, _ in parts), 0.0), num_groups - 1))
        return variance**0.5, _degrees_of_freedom(parts)

    scores = []
    for i, contender in enumerate(contenders):
        mean = float(np.mean(values[i]))
        error, freedom = spread(drawn[i], [i])
        reach = _student(1 - (1 - confidence) / 2, freedom) * error
        deviation = float(np.std(values[i], ddof=1)) if contender.num_seeds > 1 else None
        scores.append(
            Score(contender.name, tuple(values[i]), mean, deviation, mean - reach, mean + reach)
        )
    differences = []
    for i, j in combinations(range(len(contenders)), 2):
        difference = scores[j].mean - scores[i].mean
        error, freedom = spread(drawn[j] - drawn[i], [i, j])
        quantile = _student(1 - (1 - confidence) / 2, freedom)
        smallest = (quantile + _student(power, freedom)) * error
        clear = abs(difference) >= smallest and difference != 0
        differences.append(
            Difference(
                candidate=contenders[j].name,
                reference=contenders[i].name,
                difference=difference,
                low=difference - quantile * error,
                high=difference + quantile * error,
                standard_error=error,
                degrees_of_freedom=freedom,
                smallest_detectable=smallest,
                verdict=UNCLEAR if not clear else BETTER if difference > 0 else WORSE,
            )
        )
    alone = tuple(c.name for c in contenders if c.random and c.num_seeds == 1)
    return Contest(metric, tuple(scores), tuple(differences), len(labels), num_groups, alone)


def _resampled(
    labels: np.ndarray,
    contenders: Sequence[Contender],
    num_labels: int,
    measure: Metric,
    group_of: np.ndarray,
    resamples: int,
    seed: int,
) -> np.ndarray:
    """(contenders, resamples): mean over drawn seeds of the metric on drawn rows."""
    rng = np.random.default_rng([seed, len(labels), resamples])
    num_groups = int(group_of.max()) + 1
    found = np.empty((len(contenders), resamples))
    for r in range(resamples):
        times = np.bincount(rng.integers(num_groups, size=num_groups), minlength=num_groups)
        rows = np.repeat(np.arange(len(labels)), times[group_of])
        truth = labels[rows]
        for i, contender in enumerate(contenders):
            n = contender.num_seeds
            drawn = rng.integers(n, size=n - 1) if contender.random and n > 1 else np.arange(n)
            which, often = np.unique(drawn, return_counts=True)
            scores = [measure(truth, contender.predictions[s][rows], num_labels) for s in which]
            found[i, r] = np.average(scores, weights=often)
    return found


def _variance_of_mean(values: Sequence[float]) -> float:
    return float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0


def _degrees_of_freedom(parts: Sequence[tuple[float, int]]) -> float:
    """Of a sum of variances, each with its own; at least 1."""
    total = sum(variance for variance, _ in parts)
    below = sum(variance**2 / max(freedom, 1) for variance, freedom in parts)
    return max(total**2 / below, 1.0) if below else float(max(f for _, f in parts) or 1)


def _student(probability: float, degrees_of_freedom: float) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))
