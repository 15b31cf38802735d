"""The model card: description of a model, its data, its scores and its limits.

Markdown with measurements only (labels, counts, scores, digests), no user text.
Reference: Mitchell et al. 2019, arXiv 1810.03993 (contents of a model card).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fourstage.errors import listed
from models.evaluation.rivals import names
from tasks.reports.asking import READING_PICTURE, in_python, typed
from tasks.reports.score_plots import ClassifierAnswers, LabelScore, calibration_of, label_scores
from tasks.reports.stage_table import StageRow, brackets, stage_table
from tasks.reports.tables import markdown_table
from tasks.store.ancestry import Manifest, made_as
from tasks.store.model_facts import ModelFacts

CONFIDENCE = 0.95
MOST_NAMED = 30  # labels listed in a sentence
MOST_RESAMPLED = 200  # labels; with more, resampling the confusion counts takes minutes
WEAKEST = 5  # labels named in the limits
LONGEST_NAME = 60  # characters of a label
CALLING = "## How to call it"  # last section; other formats replace it


@dataclass(frozen=True)
class Interval:
    """A score or difference with its bootstrap interval over texts."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def model_card(
    facts: ModelFacts, title: str, *, called: str = "", answers: ClassifierAnswers | None = None
) -> str:
    """The model card as Markdown.

    Args:
        facts: Facts about the model.
        title: Its title, such as ``python-libraries version 3``.
        called: Its address, ``NAME/3``, for the example commands; empty for a network that is not
            registered.
        answers: Its stored predictions, for intervals and labels.
    """
    scores = label_scores(answers) if answers else []
    parts = [
        f"# {title}",
        _what_it_is(facts, answers),
        "## Data",
        _data(facts),
        *_scores(facts, answers),
        "## What each stage bought",
        _stages(facts),
        "## Limits",
        *_limits(facts, scores),
    ]
    if called:
        parts += [CALLING, _calling(called, facts)]
    return "\n\n".join(parts) + "\n"


def _what_it_is(facts: ModelFacts, answers: ClassifierAnswers | None) -> str:
    last = facts.stages[-1]
    network = last.settings.get("network", {})
    size = ", ".join(f"{name} {value}" for name, value in network.items())
    said = ["A", facts.family, "network", f"({size})" if size else ""]
    for tokenizer in facts.ancestry.vocabularies():
        pieces = tokenizer.facts.get("vocabulary_size")
        said.append(f"with a vocabulary of {pieces:,} pieces" if pieces else "")
    way = " → ".join(str(stage.stage) for stage in facts.stages)
    sentences = [f"{' '.join(filter(None, said))}, by the stages {way}."]
    if facts.starts:
        parts = (f"its {part} from {where}" for part, where in facts.starts.items())
        sentences.append(f"Parts of it did not start at random: {', '.join(parts)}.")
    if answers:
        # Rows and answers of the evaluation may lack labels that the model has.
        labels = [*answers.names, *facts.scores.get("labels_left_out", ())]
        names = [_short(name) for name in sorted({*labels})]
        sentences.append(
            f"It gives a text one of {len(names)} labels: {listed(names, MOST_NAMED)}."
        )
    commit = last.notes.get("git", {}).get("commit")
    sentences.append(f"Made by Fourstage{f', commit `{commit[:12]}`' if commit else ''}.")
    return " ".join(sentences)


def _data(facts: ModelFacts) -> str:
    rows = []
    read_by: dict[str, list[str]] = {}
    texts: dict[str, Manifest] = {}
    for stage in facts.weights_from:
        for text in facts.ancestry.read_by(stage, "corpus", "dataset"):
            texts[text.key] = text
            read_by.setdefault(text.key, []).append(str(stage.stage))
    for key, text in texts.items():
        source, counts = text.source, text.facts.get("counts", {})
        rows.append(
            (
                str(source.get("name", text.name)),
                ", ".join(read_by[key]),
                str(source.get("language", "–")),
                str(source.get("licence", "none named")),
                f"{counts['kept']:,} of {counts['read']:,}" if "kept" in counts else "–",
                f"`{str(text.settings.get('snapshot', ''))[:12]}`",
            )
        )
    head = ("source", "read by", "language", "licence", "documents or rows kept", "snapshot")
    return markdown_table(head, rows)


def _scores(facts: ModelFacts, answers: ClassifierAnswers | None) -> list[str]:
    found = facts.scores
    if not found:
        return []
    few = answers is not None and len(answers.names) <= MOST_RESAMPLED
    intervals = score_intervals(answers, list(found["metrics"])) if answers and few else {}
    rows = []
    for metric, value in found["metrics"].items():
        ours, theirs, apart = intervals.get(metric, (None, None, None))
        baseline = found.get("baseline", {}).get(metric)
        majority = found.get("majority", {}).get(metric)
        rows.append(
            (
                metric,
                str(ours) if ours else f"{value:.3f}",
                str(theirs) if theirs else _figure(baseline),
                f"{apart.value:+.3f} ({apart.low:+.3f} to {apart.high:+.3f})" if apart else "–",
                _figure(majority),
            )
        )
    cheap, majority = names(found.get("answers", "label"))
    head = ("metric", "this model", "cheap baseline", "difference", majority or "majority")
    dataset = facts.dataset
    of = f" of {dataset.source.get('name', dataset.name)}" if dataset else ""
    told = [
        f"On {found.get('rows', 0):,} {found.get('split', 'test')} rows{of}"
        + (f"; the cheap baseline is {cheap} on the same rows." if cheap else ".")
    ]
    if intervals:
        told.append(f"In brackets: {CONFIDENCE:.0%} intervals of texts drawn anew.")
    if found.get("rows_clean") == 0:
        told.append("A training row has the text of each of them, so nothing is said of new texts.")
    elif found.get("rows_clean", found.get("rows")) != found.get("rows"):
        clean = ", ".join(f"{name} {x:.3f}" for name, x in found["metrics_clean"].items())
        told.append(f"On the {found['rows_clean']:,} rows whose text no training row has: {clean}.")
    if answers:
        told.append(_calibrated(answers))
    return ["## Scores", markdown_table(head, rows), " ".join(told)]


def _calibrated(answers: ClassifierAnswers) -> str:
    """How far the probabilities are to be trusted."""
    found = calibration_of(answers)
    right = float((answers.labels == answers.predicted).mean())
    return (
        f"Its answers have a probability of {right + found.overconfidence:.2f} on average and"
        f" {right:.2f} of them are right; expected calibration error {found.error:.3f} (Guo et al."
        " 2017)."
    )


def score_intervals(
    answers: ClassifierAnswers, metrics: Sequence[str]
) -> dict[str, tuple[Interval, Interval, Interval]]:
    """The model's score, the cheap baseline's and their difference, each with its interval."""
    import numpy as np

    from models.answers.label import Label
    from models.evaluation.resampling import resampled_scores, scores

    both = [answers.predicted, answers.baseline]
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]

    def interval(value: float, drawn: np.ndarray) -> Interval:
        return Interval(value, *(float(end) for end in np.quantile(drawn, ends)))

    found = {}
    for metric in metrics:
        ours, theirs = (scores(Label(), answers.labels, s, [metric])[metric] for s in both)
        drawn = resampled_scores(Label(), answers.labels, both, metric, groups=answers.texts)
        found[metric] = (
            interval(ours, drawn[0]),
            interval(theirs, drawn[1]),
            interval(ours - theirs, drawn[0] - drawn[1]),
        )
    return found


def _stages(facts: ModelFacts) -> str:
    rows, metric = [], ""
    before: Mapping[str, float] = {}
    for number, stage in enumerate(facts.stages):
        measured = facts.measurements.get(stage.key)
        losses: Mapping[str, float] = measured.facts["heldout_loss"] if measured else {}
        found = (measured.facts.get("task_metric") if measured else None) or {}
        metric = found.get("name", metric)
        now = {f"loss on {corpus}": loss for corpus, loss in losses.items()}
        if found:
            now[found["name"]] = found["value"]
        if number == 0 and measured:
            guessed = facts.corpora(measured).items()
            before = {f"loss on {c}": loss for c, (_, loss) in guessed if loss is not None}
        rows.append(
            StageRow(
                str(stage.stage),
                made_as(stage),
                stage.facts.get("steps"),
                stage.notes.get("tokens_per_second"),
                losses,
                found.get("value"),
                {name: now[name] - before[name] for name in now if name in before},
                measured.facts["heldout_error"] if measured else {},
            )
        )
        before = now or before
    told = brackets(rows, metric)
    return stage_table(rows, metric) + (f"\n\n{told[:1].upper()}{told[1:]}." if told else "")


def _limits(facts: ModelFacts, labels: Sequence[LabelScore]) -> list[str]:
    last, found = facts.stages[-1], facts.scores
    languages = ", ".join(facts.ancestry.languages()) or "text of no stated language"
    lines = [f"It has read {languages}; nothing is known of other languages."]
    if phases := last.settings.get("phases"):
        lines.append(
            f"A text is read up to {max(phase[0] for phase in phases)} pieces; what comes after"
            " that decides nothing."
        )
    trained = sum(stage.facts.get("tokens", 0) for stage in facts.weights_from)
    lines.append(f"Its network was trained on {trained:,} tokens in all.")
    if labels:
        weak = sorted((s for s in labels if s.rows), key=lambda score: score.f1)[:WEAKEST]
        told = ", ".join(f"{_short(s.name)} {s.f1:.2f} ({s.rows:,} rows)" for s in weak)
        lines.append(f"Its weakest labels, by F1: {told}.")
        behind = [s for s in labels if s.f1 < s.baseline_f1]
        if behind:
            lines.append(
                f"The cheap baseline has a higher F1 on {len(behind)} of {len(labels)} labels:"
                f" {', '.join(_short(s.name) for s in behind[:MOST_NAMED])}."
            )
    # Slices by label are left out: the weakest labels are listed above.
    slices = {n: s for n, s in found.get("slices", {}).items() if not n.startswith("label/")}
    for name, scores in slices.items():
        told = ", ".join(f"{metric} {value:.3f}" for metric, value in scores.items())
        lines.append(f"On rows of {name.replace('/', ' ')}: {told}.")
    for corpus, rise in found.get("forgetting", {}).items():
        side = "above" if rise > 0 else "below"
        lines.append(
            f"Its loss on {corpus} is {abs(rise):.3f} nats {side} the best of the stages before its"
            " last."
        )
    if latency := found.get("latency_ms"):
        lines.append(
            f"One text took {latency['p50']:.1f} ms (95 % of them under {latency['p95']:.1f} ms)"
            " where it was evaluated; the packaged model has"
            f" {found.get('size_mb', 0):.1f} MB."
        )
    return ["\n".join(f"- {line}" for line in lines)]


def _calling(called: str, facts: ModelFacts) -> str:
    assert facts.evaluation is not None, "what is registered was evaluated"
    answers, (package,) = facts.evaluation.facts["answers"], facts.ancestry.of_kind("package")
    row = in_python(answers, package.settings)
    imports = ["import base64", "from pathlib import Path", ""] if READING_PICTURE in row else []
    lines = [*imports, "import mlflow", "", f'model = mlflow.pyfunc.load_model("models:/{called}")']
    told = (
        "label, score and the probability of every label"
        if answers == "label"
        else "answer and score"
    )
    code = "\n".join([*lines, f"model.predict([{row}])  # {told}"])
    return f"""```sh
fourstage predict {called} {typed(answers, package.settings)}
DO_NOT_TRACK=true mlflow models serve --model-uri models:/{called} --env-manager local
fourstage trace models:/{called}
```

```python
{code}
```"""


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _short(name: str) -> str:
    """A label's name on one line, as plain text in Markdown."""
    flat = " ".join(name.split())
    return f"`{flat[:LONGEST_NAME].replace('`', chr(39))}`"
