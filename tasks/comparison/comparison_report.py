"""Report of a comparison: headline, score table, differences, plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from models.metrics import LOWER_IS_BETTER, PERPLEXITY, PERPLEXITY_A_WORD
from models.metrics import best as number_of_best
from tasks.comparison.comparison_table import unlike_tokenizers
from tasks.comparison.contests import PROBE_MEAN
from tasks.reports.tables import markdown_table, mean_of

Table = Mapping[str, Any]
FEW = 2  # trainings too few for an interval: Student's t with one degree of freedom
COSTS = {
    "teachers": ("its teacher", "C2"),
    "pretraining": ("pre-training", "C0"),
    "finetuning": ("fine-tuning, one seed", "C1"),
}


REVERSED = {"better": "worse", "worse": "better"}  # a contrast's verdict, the other way round


def headline(table: Table) -> str:
    """The headline: whether the best recipe beats the cheap baseline, and can be told from others.

    Where no baseline has the first metric, as none has a perplexity, it also says so of the first
    metric that one has.
    """
    metric, *others = table["metrics"]
    scored = [recipe for recipe in table["recipes"] if metric in recipe["metrics"]]
    means = [recipe["metrics"][metric]["mean"] for recipe in scored]
    best = scored[number_of_best(metric, means)]
    first = f"the {'lowest' if metric in LOWER_IS_BETTER else 'highest'} {metric}"
    rivals = [rival for rival in table["baselines"] if metric in rival["metrics"]]
    if not rivals:
        said = f"{best['name']} has {first}, {best['metrics'][metric]['mean']:.3f}."
        known = {name for rival in table["baselines"] for name in rival["metrics"]}
        also = [name for name in others if name in known]
        return f"{said} {headline({**table, 'metrics': also})}" if also else said
    cheap = next((rival for rival in rivals if rival["name"] == best["baseline"]), rivals[0])
    verdicts = {}
    for found in table["differences"][metric]:
        pair = found["candidate"], found["reference"]
        verdicts[pair] = found["verdict"]
        verdicts[pair[::-1]] = REVERSED.get(found["verdict"], found["verdict"])
    judged = verdicts.get((best["name"], cheap["name"]))
    ours, theirs = best["metrics"][metric]["mean"], cheap["metrics"][metric]
    if judged == "better":
        alike = [
            recipe["name"]
            for recipe in scored
            if verdicts.get((recipe["name"], best["name"])) == "not distinguishable"
        ]
        untold = f"; it can't be told from {' and '.join(alike)}" if alike else ""
        return (
            f"{best['name']} has {first}, {ours:.3f}, beyond chance better than {cheap['name']},"
            f" {theirs:.3f}{untold}."
        )
    if judged == "worse":
        return (
            f"{cheap['name']} wins: {metric} {theirs:.3f}; the best recipe, {best['name']},"
            f" gets {ours:.3f}."
        )
    if judged is None:
        return (
            f"{best['name']} has {first}, {ours:.3f}; {cheap['name']}, which it was"
            f" not judged against, gets {theirs:.3f}."
        )
    ahead = [
        f"{recipe['name']}, {recipe['metrics'][metric]['mean']:.3f}"
        for recipe in scored
        if verdicts.get((recipe["name"], cheap["name"])) == "better"
    ]
    if ahead:
        return (
            f"{best['name']} has {first}, {ours:.3f}, but can't be told from {cheap['name']},"
            f" {theirs:.3f}; beyond chance better than it: {'; '.join(ahead)}."
        )
    return (
        f"No recipe is beyond chance better than {cheap['name']}, which gets {metric} {theirs:.3f};"
        f" the best, {best['name']}, gets {ours:.3f}."
    )


def score_cells(table: Table) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the table of scores and costs, baselines last."""
    metrics = table["metrics"]
    unlike = unlike_tokenizers(table["recipes"])
    told = "heldout_loss_a_character" if unlike else "heldout_loss"
    corpora = list(dict.fromkeys(c for r in table["recipes"] for c in r[told]))
    head = (
        "recipe",
        "stages",
        "seeds",
        *metrics,
        "tokens",
        "steps",
        "seconds",
        *(f"{'nats a character' if unlike else 'loss'} on {corpus}" for corpus in corpora),
    )
    body = []
    for recipe in table["recipes"]:
        body.append(
            (
                recipe["name"],
                " → ".join(recipe["stages"]),
                str(len(recipe["seeds"])),
                *(mean_of(recipe["metrics"].get(metric)) for metric in metrics),
                f"{recipe['tokens']:,.0f}",
                f"{recipe['steps']:,.0f}",
                f"{recipe['seconds']:,.0f}",
                *(_loss(recipe, corpus, unlike) for corpus in corpora),
            )
        )
    blank = ("–",) * (3 + len(corpora))
    for rival in table["baselines"]:
        scores = (_of_baseline(rival, metric) for metric in metrics)
        body.append((rival["name"], "", "", *scores, *blank))
    return head, body


def probe_cells(table: Table) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the probes: mean per pre-training, score per dataset."""
    probes = table["probes"]
    head = ("recipe", "each pre-training", *(f"{name} {probes[name]['metric']}" for name in probes))
    body = []
    for recipe in table["recipes"]:
        score = recipe["metrics"].get(PROBE_MEAN)
        if score is not None:
            each = "  ".join(f"{value:.4f}" for value in score["trainings"])
            parts = (f"{score['parts'][name]:.4f}" for name in probes)
            body.append((recipe["name"], each, *parts))
    for rival in (each for each in table["baselines"] if PROBE_MEAN in each["parts"]):
        parts = (f"{rival['parts'][PROBE_MEAN][name]:.4f}" for name in probes)
        body.append((rival["name"], "", *parts))
    return head, body


def difference_cells(table: Table, metric: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the contrasts on one metric."""
    percent = f"{table['confidence']:.0%}"
    nested = _has_hierarchical(table, metric)
    head = (
        *("is", "than", "difference", f"{percent} interval"),
        *(("hierarchical bootstrap",) if nested else ()),
        *("p", "detectable", "verdict"),
    )
    body = [
        (
            found["candidate"],
            found["reference"],
            f"{found['difference']:+.4f}",
            *_inference(found, nested),
            found["verdict"],
        )
        for found in table["differences"][metric]
    ]
    return head, body


def _has_hierarchical(table: Table, metric: str) -> bool:
    return any(found["hierarchical"] for found in table["differences"][metric])


def _inference(found: Mapping[str, Any], nested: bool) -> tuple[str, ...]:
    """Intervals, p and detectable difference; for two trainings, Student's t says only p."""
    ends = found["hierarchical"]
    more = (_interval(*ends) if ends else "–",) if nested else ()
    p = "< .0001" if found["p"] < 0.0001 else f"{found['p']:.4f}"
    if found["trainings"] == FEW:
        return "two are too few", *more, p, "–"
    interval = _interval(found["low"], found["high"])
    return interval, *more, p, f"{found['smallest_detectable']:.4f}"


def _interval(low: float, high: float) -> str:
    return f"{low:+.4f} to {high:+.4f}"


def explanation(table: Table) -> str:
    """Explanation of the numbers for first-time readers."""
    equal = {"tokens": "equal tokens", "time": "equal time"}.get(table["equal"], "as written")
    parts = []
    if probes := table["probes"]:
        told = (f"{name} ({n['rows']:,}; {n['texts']:,} texts)" for name, n in probes.items())
        parts.append(
            f"{PROBE_MEAN}: what the network knows after pre-training, before it is fine-tuned."
            " Logistic regression on its frozen vectors learns from the train rows of each data set"
            f" and is scored on the {table['split']} rows: {', '.join(told)}. Mean over the data"
            " sets ± standard deviation over pre-trainings; fine-tunings of one pre-training share"
            " its probes, which count once."
        )
    if table["dataset"]:
        parts.append(
            f"{'Other scores' if probes else 'Scores'} on {table['rows']:,} {table['split']} rows"
            f" of {table['dataset']} ({table['texts']:,} texts; {table['rows_clean']:,} rows whose"
            " text is in no training row): mean ± standard deviation over seeds."
        )
    if any(metric.startswith("prototypes/") for metric in table["metrics"]):
        parts.append(
            "prototypes/…: accuracy of the pre-trained network in episodes of so many classes"
            " (ways) and rows of each (shots); the nearest mean of their vectors answers. The"
            " baseline there is TF-IDF vectors in the same episodes, without an SVM; fine-tunings"
            " of one pre-training count once."
        )
    if lower := [metric for metric in table["metrics"] if metric in LOWER_IS_BETTER]:
        parts.append(
            f"{' and '.join(lower)}: lower is better, so that a verdict of better means lower. The"
            " cheap baseline has no probabilities, and so none of it."
        )
    if PERPLEXITY in table["metrics"] and len({r["tokenizer"] for r in table["recipes"]}) > 1:
        parts.append(
            f"{PERPLEXITY} is of tokens, which are not the same here, as the tokenizers are not:"
            f" compare {PERPLEXITY_A_WORD}, or a metric of texts where there are no blanks."
        )
    parts += [
        f"Pre-training budgets: {equal}. Tokens, steps and seconds are one recipe's at one seed,"
        f" all its stages; those it shares with others are counted in full. {_unit(table)}",
        "Differences: other rows (paired bootstrap over texts,"
        f" {table['resamples']:,} resamples) and other trainings (runs that share a pre-training"
        " count as one), with Student's t. The interval is each contrast's own; *p* is corrected"
        f" (Holm) for the {_contrasts(table)}, and below {1 - table['confidence']:.2f} the verdict"
        " is better or worse. *Detectable* is for planning: the true difference that such a"
        f" contrast finds with {table['power']:.0%} power, were it the only one.",
        *(
            [
                "Hierarchical bootstrap: each resample draws pre-trainings, fine-tunings of each"
                " and texts, with replacement; recipes with the same pre-trainings draw them"
                f" together. The interval has {table['confidence']:.0%} of the resamples. With few"
                " pre-trainings it is too narrow, so that the verdict is by *p*."
            ]
            if any(_has_hierarchical(table, metric) for metric in table["metrics"])
            else []
        ),
        f"Machine: {table['machine']['processor']}, {table['machine']['cores']} cores,"
        f" {', '.join(sorted({recipe['precision'] for recipe in table['recipes']}))}.",
        *table["notes"],
    ]
    return "\n".join(f"- {part}" for part in parts)


def _unit(table: Table) -> str:
    if unlike_tokenizers(table["recipes"]):
        return (
            "Losses are held-out, at the end of pre-training, in nats a character, because tokens"
            " are not the same; none where an objective's loss is no cross-entropy of tokens."
        )
    return (
        "Losses are held-out, at the end of pre-training, in nats a hidden token; in brackets,"
        " against guessing by how often each token occurs."
    )


def _contrasts(table: Table) -> str:
    counts = {len(found) for found in table["differences"].values()}
    if len(counts) > 1:  # some are not of all metrics: a baseline has no perplexity
        return "contrasts of each metric"
    (count,) = counts
    return "one contrast" if count == 1 else f"{count} contrasts"


def markdown(table: Table, picture: str | None = None) -> str:
    """The complete report as Markdown.

    Args:
        table: As returned by `tasks.comparison.comparison_table.judge`.
        picture: Address of the plot.
    """
    parts = ["## Comparison", headline(table)]
    for title, cells in cells_for(table):
        parts += [f"### {title}"] if title else []
        parts.append(markdown_table(*cells))
    if picture:
        parts.append(f"![Scores and cost]({picture})")
    parts.append(explanation(table))
    return "\n\n".join(parts) + "\n"


def plot(table: Table) -> bytes:
    """The plot as a PNG: first score of each run with mean and interval, and each recipe's cost."""
    from tasks.reports.plots import figure, png

    metric = table["metrics"][0]
    recipes = table["recipes"][::-1]
    places = range(len(recipes))
    drawn = figure(10, 1.6 + 0.45 * len(recipes))
    scores, costs = drawn.subplots(1, 2, sharey=True)
    for place, recipe in zip(places, recipes, strict=True):
        score = recipe["metrics"].get(metric)
        if score is None:
            continue
        reach = [[score["mean"] - score["low"]], [score["high"] - score["mean"]]]
        scores.errorbar(
            score["mean"], place, xerr=reach, fmt="D", color="C0", capsize=4, markersize=6
        )
        spots = [place + 0.18] * len(score["values"])
        scores.plot(score["values"], spots, "o", color="C1", markersize=4, alpha=0.8)
    rivals = [rival for rival in table["baselines"] if metric in rival["metrics"]]
    for rival, style in zip(rivals, cycle(("--", ":", "-.")), strict=False):
        scores.axvline(rival["metrics"][metric], linestyle=style, color="grey", label=rival["name"])
    scores.set_yticks(list(places), [recipe["name"] for recipe in recipes])
    dots = "pre-trainings" if metric == PROBE_MEAN else "seeds"
    better = " (lower is better)" if metric in LOWER_IS_BETTER else ""
    scores.set_xlabel(
        f"{metric}{better}: {dots} (dots), mean and {table['confidence']:.0%} interval"
    )
    scores.legend(fontsize=7, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    ends = [0.0] * len(recipes)
    for part, (label, colour) in COSTS.items():
        minutes = [recipe[part]["seconds"] / 60 for recipe in recipes]
        if any(minutes):
            costs.barh(list(places), minutes, left=ends, height=0.5, label=label, color=colour)
        ends = [end + more for end, more in zip(ends, minutes, strict=True)]
    costs.set_xlabel("minutes of training")
    costs.legend(fontsize=7, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    for axes in (scores, costs):
        axes.spines[["top", "right"]].set_visible(False)
    drawn.tight_layout()
    return png(drawn)


def _loss(recipe: Table, corpus: str, per_character: bool) -> str:
    if per_character:
        return _score_of(recipe["heldout_loss_a_character"].get(corpus), 3)
    loss, unigram = recipe["heldout_loss"].get(corpus), recipe["unigram_loss"].get(corpus)
    if loss is None:
        return "–"
    return f"{loss:.2f}" if unigram is None else f"{loss:.2f} ({loss - unigram:+.2f})"


def _of_baseline(rival: Mapping[str, Any], metric: str) -> str:
    if metric not in rival["metrics"]:
        return "–"
    deviation = rival["deviations"].get(metric)
    return mean_of({"mean": rival["metrics"][metric], "deviation": deviation})


def _score_of(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def cells_for(table: Table) -> Sequence[tuple[str, tuple[tuple[str, ...], list[tuple[str, ...]]]]]:
    """Title, header and rows of every table."""
    found = [("", score_cells(table))]
    if table["probes"]:
        found.append(("probes", probe_cells(table)))
    found += [(metric, difference_cells(table, metric)) for metric in table["metrics"]]
    return found
