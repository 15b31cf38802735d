"""Comparison of recipes over several seeds on the same rows: which differences are real?

A run's score is the mean of its metrics over one or more data sets. It has two sources of variance:
the sample of test rows, and the random seed of the training.

- Rows: a bootstrap over texts with fixed models. All models share the resamples, so that rows that
  are hard for all do not blur a difference. Rows of one text are resampled together, and each data
  set separately.
- Training: the variance of the mean over independent trainings. Fine-tunings of one pre-training
  are dependent, so their mean counts as one value. The variance is never less than what the spread
  of fine-tunings within pre-trainings alone makes of it, since the means of two pre-trainings may
  be close by chance. Where two recipes share their starts (the same
  first stage for each seed), differences are paired by start. If all of a recipe's runs have the
  same pre-training, its variance can't be estimated, and the fine-tunings count instead.
- Labelled rows, where each run has drawn its own (`Contender.draws`): runs of two recipes that
  learned from the same rows are compared one by one, because which rows they are, of a few, decides
  more than anything else. What shares a pre-training is still one value.

The variance of a difference is the sum of both, minus the interaction of training and rows, which
both contain. It is never less than the variance from rows alone. Intervals use Student's t with
Satterthwaite's degrees of freedom, because a few seeds estimate their variance poorly. The verdict
is a two-sided test of each declared contrast with Holm's correction: where nothing differs, at most
one comparison in twenty finds a difference.

Where pre-trainings have several fine-tunings each, scores and differences have a second interval,
by a hierarchical bootstrap (`models.evaluation.hierarchical_bootstrap`). It decides nothing.

Reference:
    Cameron, Gelbach and Miller 2011, JBES 29 (two-way clustering); Sellam et al. 2022, arXiv
    2106.16163 (seeds and rows as two sources); Satterthwaite 1946, Biometrics Bulletin 2; Holm
    1979, Scandinavian Journal of Statistics 6; Card et al. 2020, arXiv 2010.06595 (power in NLP).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from fourstage.errors import ContractViolation
from models.evaluation.hierarchical_bootstrap import drawn_pretrainings, resampled_means
from models.evaluation.resampling import RESAMPLES, numbered, resampled_scores, scores
from models.metrics import advantage
from models.protocols import Answers, Column

BETTER, WORSE, UNCLEAR = "better", "worse", "not distinguishable"
CONFIDENCE = 0.95
TWO_SIDED = 1 - (1 - CONFIDENCE) / 2
POWER = 0.8


@dataclass(frozen=True)
class AnsweredRows:
    """The rows of one data set that all contenders answer.

    Attributes:
        answers: The kind of answer.
        true: (rows,) correct answers.
        metric: Name of a metric of `answers`.
        groups: (rows,) group (text) of each row; None for a group per row.
    """

    answers: Answers
    true: Column
    metric: str
    groups: np.ndarray | None = None


@dataclass(frozen=True)
class Contender:
    """One recipe's predictions.

    Attributes:
        name: Unique name.
        predictions: Answers (runs, rows) for each data set, with the runs in the same order.
        starts: The pre-training that each run starts from. Runs with the same start are dependent;
            contenders with the same set of starts are compared start by start. If empty, each run
            has its own.
        random: Whether predictions depend on a seed; False for a deterministic model.
        draws: Number of the draw of labelled rows that each run learned from. Contenders with the
            same draws in the same order are compared draw by draw. If empty, all runs of all
            contenders have the same rows.
    """

    name: str
    predictions: Sequence[Sequence[Column]]
    starts: tuple[str, ...] = ()
    random: bool = True
    draws: tuple[int, ...] = ()

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.predictions[0])

    @property
    def trainings(self) -> list[tuple[str, list[int]]]:
        """(start, numbers of its runs) of each independent training, in a fixed order."""
        starts = self.starts or tuple(f"{self.name} {i}" for i in range(self.runs))
        if len(set(starts)) == 1:
            return [(f"{starts[0]} {i}", [i]) for i in range(len(starts))]
        return [(one, [i for i, s in enumerate(starts) if s == one]) for one in sorted(set(starts))]


@dataclass(frozen=True)
class Score:
    """A contender's score.

    Attributes:
        name: The contender's name.
        values: Score of each run: its mean over the data sets.
        trainings: Score of each independent training: the mean of its runs.
        mean: Mean over the trainings.
        deviation: Standard deviation over the trainings (n - 1); None for a single one.
        low: Lower end of the mean's interval, over rows and trainings.
        high: Upper end of the interval.
        parts: Mean on each data set.
        hierarchical: The ends of the interval by a hierarchical bootstrap, where there are several
            pre-trainings and one of them has several fine-tunings; else None.
    """

    name: str
    values: tuple[float, ...]
    trainings: tuple[float, ...]
    mean: float
    deviation: float | None
    low: float
    high: float
    parts: tuple[float, ...]
    hierarchical: tuple[float, float] | None = None


@dataclass(frozen=True)
class Difference:
    """A contrast: one contender compared with another on the same rows.

    Attributes:
        candidate: Name of the contender that is judged.
        reference: Name of the contender that it is compared with.
        difference: The candidate's mean minus the reference's mean.
        low: Lower end of the two-sided interval, not corrected for other contrasts.
        high: Upper end of the interval.
        standard_error: Standard error of the difference, over rows and trainings.
        p: p-value, corrected for the number of contrasts.
        trainings: Number of independent trainings of the contender that has fewer; deterministic
            contenders do not count, and 0 means that both are. Two are too few for a useful
            interval.
        smallest_detectable: True difference that this comparison, as the only contrast, would
            detect with probability `POWER`. For planning only; the verdict does not use it.
        verdict: `BETTER` or `WORSE` if p is below 1 - `CONFIDENCE`, else `UNCLEAR`.
        hierarchical: As in `Score`, where one of the two has it. Recipes with the same
            pre-trainings draw them together, and fine-tunings by themselves.
    """

    candidate: str
    reference: str
    difference: float
    low: float
    high: float
    standard_error: float
    p: float
    trainings: int
    smallest_detectable: float
    verdict: str
    hierarchical: tuple[float, float] | None = None


@dataclass(frozen=True)
class Contest:
    """Result of comparing all contenders on the same rows.

    Attributes:
        scores: Scores in the order of the contenders.
        differences: Contrasts in the order of their declaration.
        rows: Number of rows of each data set.
        groups: Number of groups (texts) of each data set.
        one_seed: Contenders with a single training, whose intervals cover the variance from rows
            only.
    """

    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    rows: tuple[int, ...]
    groups: tuple[int, ...]
    one_seed: tuple[str, ...]


def contest(
    data_sets: Sequence[AnsweredRows],
    contenders: Sequence[Contender],
    *,
    contrasts: Sequence[tuple[str, str]] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Contest:
    """Score all contenders and judge the contrasts.

    Args:
        data_sets: One or more data sets of equal weight, whose metrics are all better where they
            are higher, or all where they are lower.
        contenders: Contenders with predictions for the same rows in the same order.
        contrasts: (candidate, reference) names; None for every pair, the later contender as the
            candidate.
        resamples: Number of resamples of the texts.
        seed: Seed of the resampling.

    Raises:
        ContractViolation: The numbers of predictions differ, or there are no rows.
    """
    for contender in contenders:
        for rows, runs in zip(data_sets, contender.predictions, strict=True):
            lengths = sorted({len(predictions) for predictions in runs})
            if len(runs) != contender.runs or lengths != [len(rows.true)]:
                raise ContractViolation(
                    f"compare: expected {contender.runs} predictions of {contender.name} for"
                    f" {len(rows.true)} rows, got {len(runs)} for {', '.join(map(str, lengths))};"
                    " all recipes must be evaluated on the same split of the same dataset"
                )
    if not all(len(rows.true) for rows in data_sets):
        raise ContractViolation("compare: there are no rows to compare on")
    groups = [int(numbered(rows.groups, len(rows.true)).max()) + 1 for rows in data_sets]
    # With several data sets, the smallest one dominates the variance from rows.
    fewest = min(groups)
    scored = [
        _scored(rows, [contender.predictions[i] for contender in contenders], resamples, seed + i)
        for i, rows in enumerate(data_sets)
    ]
    parts = {c.name: np.array([on[k][0] for on in scored]) for k, c in enumerate(contenders)}
    measured = {
        contender.name: _Measured.of(
            contender.trainings,
            parts[contender.name].mean(axis=0).tolist(),
            np.mean([on[k][1] for on in scored], axis=0),
            contender.random,
            contender.draws,
        )
        for k, contender in enumerate(contenders)
    }
    table = []
    for contender in contenders:
        own = measured[contender.name]
        reach = _Spread.of([own], fewest).reach(TWO_SIDED)
        deviation = float(np.std(own.values, ddof=1)) if len(own.values) > 1 else None
        table.append(
            Score(
                name=contender.name,
                values=own.runs,
                trainings=tuple(map(float, own.values)),
                mean=own.mean,
                deviation=deviation,
                low=own.mean - reach,
                high=own.mean + reach,
                parts=tuple(
                    float(np.mean([np.mean(runs[members]) for _, members in contender.trainings]))
                    for runs in parts[contender.name]
                ),
                hierarchical=_hierarchical([own], seed),
            )
        )
    pairs = contrasts
    if pairs is None:
        pairs = [(b.name, a.name) for a, b in combinations(contenders, 2)]
    return Contest(
        tuple(table),
        _holm([_difference(measured, pair, fewest, seed) for pair in pairs], data_sets[0].metric),
        tuple(len(rows.true) for rows in data_sets),
        tuple(groups),
        tuple(c.name for c in contenders if c.random and len(measured[c.name].values) == 1),
    )


def _scored(
    rows: AnsweredRows,
    predictions: Sequence[Sequence[Column]],
    resamples: int,
    seed: int,
) -> list[tuple[list[float], np.ndarray]]:
    """Each contender's scores of its runs: (runs,) on the rows, (runs, resamples) on resamples."""
    drawn = iter(
        resampled_scores(
            rows.answers,
            rows.true,
            [answers for runs in predictions for answers in runs],
            rows.metric,
            groups=rows.groups,
            resamples=resamples,
            seed=seed,
        )
    )
    return [
        (
            [scores(rows.answers, rows.true, run, [rows.metric])[rows.metric] for run in runs],
            np.array([next(drawn) for _ in runs]),
        )
        for runs in predictions
    ]


@dataclass(frozen=True)
class _Measured:
    """A contender's scores.

    Attributes:
        runs: Score of each run on the rows.
        starts: Start of each independent training.
        values: (trainings,) mean score of each training's runs on the rows.
        drawn: (trainings, resamples) the same on resampled rows.
        random: Whether the trainings differ by chance.
        members: Numbers of each training's runs.
        resampled: (runs, resamples) scores of each run on resampled rows.
        draws: As `Contender.draws`.
        from_runs: Variance of the mean that runs within trainings make, and its degrees of freedom;
            0, 0 where each training is one run.
    """

    runs: tuple[float, ...]
    starts: tuple[str, ...]
    values: np.ndarray
    drawn: np.ndarray
    random: bool
    members: tuple[tuple[int, ...], ...]
    resampled: np.ndarray
    draws: tuple[int, ...]
    from_runs: tuple[float, int]

    @classmethod
    def of(
        cls,
        trainings: Sequence[tuple[str, Sequence[int]]],
        runs: Sequence[float],
        resampled: np.ndarray,
        random: bool,
        draws: tuple[int, ...],
    ) -> _Measured:
        """From each run's scores, on the rows (runs,) and on resampled rows (runs, resamples)."""
        return cls(
            tuple(runs),
            tuple(start for start, _ in trainings),
            np.array([np.mean([runs[i] for i in members]) for _, members in trainings]),
            np.array([resampled[list(members)].mean(axis=0) for _, members in trainings]),
            random,
            tuple(tuple(members) for _, members in trainings),
            resampled,
            draws,
            _from_runs([[runs[i] for i in members] for _, members in trainings]),
        )

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def within(self) -> list[np.ndarray]:
        """(runs, resamples) scores of each training's runs on resampled rows."""
        return [self.resampled[list(members)] for members in self.members]

    def minus(self, other: _Measured) -> list[_Measured]:
        """The difference as a sum of terms whose trainings are independent of each other.

        One term of paired differences if the starts are the same, else two terms, self and -other.
        """
        if self.starts == other.starts:
            values, drawn = self.values - other.values, self.drawn - other.drawn
            (variance, freedom), (more, its) = self.from_runs, other.from_runs
            from_runs = variance + more, freedom + its
            return [replace(self, values=values, drawn=drawn, from_runs=from_runs)]
        return [self, replace(other, values=-other.values, drawn=-other.drawn)]

    def by_draw(self, other: _Measured) -> _Measured | None:
        """The differences between runs of the same draw; None where draws differ, or are not known.

        Its trainings are those of the contender that has fewer: a pre-training's runs are one
        value, whether or not the other contender has one. Each training of the other has to be
        within one of them.
        """
        if not self.draws or self.draws != other.draws:
            return None
        fewer, more = sorted((self, other), key=lambda one: len(one.members))
        blocks = [set(members) for members in fewer.members]
        if not all(any(block.issuperset(own) for block in blocks) for own in more.members):
            return None
        return _Measured.of(
            list(zip(fewer.starts, fewer.members, strict=True)),
            [a - b for a, b in zip(self.runs, other.runs, strict=True)],
            self.resampled - other.resampled,
            self.random or other.random,
            self.draws,
        )


@dataclass(frozen=True)
class _Spread:
    """Uncertainty of a mean: from rows alone, and from rows and training together.

    Training counts by the spread of trainings, and by the larger of that and the one that their
    runs make: of two trainings the first has one degree of freedom, and may be small by chance.

    Attributes:
        parts: (standard error, degrees of freedom) of each; the widest counts.
    """

    parts: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, means: Sequence[_Measured], num_groups: int) -> _Spread:
        """The uncertainty of a sum of means whose trainings are independent of each other."""
        rows = float(np.var(sum(one.drawn.mean(axis=0) for one in means), ddof=1))
        trained: list[tuple[float, int]] = []
        at_least: list[tuple[float, int]] = []  # where runs within trainings differ by more
        # Variance from rows, minus the interaction of training and rows, which `trained` contains.
        shared = rows
        for one in means:
            n = len(one.values)
            if one.random and n > 1:
                between = float(np.var(one.values, ddof=1)) / n, n - 1
                trained.append(between)
                at_least.append(max(between, one.from_runs))
                alone = float(np.var(one.drawn, axis=1, ddof=1).mean())
                together = float(np.var(one.drawn.mean(axis=0), ddof=1))
                shared -= max(alone - together, 0.0) / (n - 1)
        parts = [(rows**0.5, num_groups - 1.0)]
        for found in (trained, at_least) if trained else ():
            variances = [*found, (max(shared, 0.0), num_groups - 1)]
            total = sum(variance for variance, _ in variances)
            below = sum(variance**2 / max(freedom, 1) for variance, freedom in variances)
            parts.append((total**0.5, total**2 / below if below else num_groups - 1.0))
        return cls(tuple((error, max(freedom, 1.0)) for error, freedom in parts))

    @property
    def standard_error(self) -> float:
        return max(error for error, _ in self.parts)

    def reach(self, *probabilities: float) -> float:
        """Sum of the t quantiles at `probabilities`, in the unit of the mean."""
        from scipy.special import stdtrit

        return max(
            error * sum(float(stdtrit(freedom, p)) for p in probabilities)
            for error, freedom in self.parts
        )

    def p(self, mean: float) -> float:
        """Two-sided p-value of a mean for the hypothesis that it is 0."""
        from scipy.special import stdtr

        if not mean:
            return 1.0
        return max(
            # Without any spread, as where a model is right on each of few rows: a sign test.
            float(2 * stdtr(freedom, -abs(mean) / error)) if error else 0.5**freedom
            for error, freedom in self.parts
        )


def _from_runs(trainings: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Variance of the mean over trainings that their runs make; its degrees of freedom."""
    freedom = sum(len(runs) - 1 for runs in trainings)
    if not freedom:
        return 0.0, 0
    squares = sum(float(np.var(runs)) * len(runs) for runs in trainings)
    each = float(np.mean([1 / len(runs) for runs in trainings])) / len(trainings)
    return squares / freedom * each, freedom


def _difference(
    measured: dict[str, _Measured], pair: tuple[str, str], num_groups: int, seed: int
) -> Difference:
    """One contrast, without correction for the number of contrasts."""
    candidate, reference = (measured[name] for name in pair)
    difference = candidate.mean - reference.mean
    paired = candidate.by_draw(reference)
    spread = _Spread.of([paired] if paired else candidate.minus(reference), num_groups)
    reach = spread.reach(TWO_SIDED)
    return Difference(
        candidate=pair[0],
        reference=pair[1],
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        standard_error=spread.standard_error,
        p=spread.p(difference),
        trainings=min((len(one.values) for one in (candidate, reference) if one.random), default=0),
        smallest_detectable=spread.reach(TWO_SIDED, POWER),
        verdict=UNCLEAR,
        hierarchical=_hierarchical([paired] if paired else [candidate, reference], seed),
    )


def _hierarchical(them: Sequence[_Measured], seed: int) -> tuple[float, float] | None:
    """The hierarchical interval of a score, or of the first's minus the second's."""
    if not any(one.random and 1 < len(one.values) < len(one.runs) for one in them):
        return None
    resamples = them[0].drawn.shape[1]
    rng = np.random.default_rng([seed, resamples])
    pretrainings: dict[tuple[str, ...], np.ndarray] = {}
    means = []
    for one in them:
        if one.starts not in pretrainings:
            pretrainings[one.starts] = drawn_pretrainings(len(one.starts), resamples, rng)
        means.append(resampled_means(one.within, pretrainings[one.starts], rng))
    resampled = means[0] if len(means) == 1 else means[0] - means[1]
    low, high = np.quantile(resampled, [1 - TWO_SIDED, TWO_SIDED])
    return float(low), float(high)


def _holm(differences: Sequence[Difference], metric: str) -> tuple[Difference, ...]:
    """The contrasts with verdicts, and p-values corrected for their number (Holm 1979)."""
    corrected = [0.0] * len(differences)
    largest = 0.0
    for place, i in enumerate(np.argsort([d.p for d in differences], kind="stable")):
        largest = max(largest, min(1.0, (len(differences) - place) * differences[i].p))
        corrected[i] = largest
    judged = []
    for difference, p in zip(differences, corrected, strict=True):
        found = BETTER if advantage(metric, difference.difference) > 0 else WORSE
        judged.append(replace(difference, p=p, verdict=found if p < 1 - CONFIDENCE else UNCLEAR))
    return tuple(judged)
