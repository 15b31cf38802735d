"""Terminal output of a run: a line per step, then the stage table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement

from corpora.picture_counts import picture_table
from fourstage.terminal import at_terminal, columns, say, terminal
from fourstage.text_width import padded, width, wrapped
from models.evaluation.rivals import SEES, names
from tasks.reports.attention_plot import attention_line
from tasks.reports.cards import left_out
from tasks.reports.few_shot_table import asked, curve, seen_before
from tasks.reports.layer_mix import mix_line
from tasks.reports.links import link_line
from tasks.reports.polysemy import senses_line
from tasks.reports.prototypes import prototypes_line
from tasks.reports.search_table import found, widen
from tasks.reports.stage_table import StageRow, brackets, stage_rows, stage_table_for_terminal
from tasks.reports.word_in_context import contexts_line
from tasks.reports.word_map import map_line
from tasks.reports.word_relations import relations_line
from tasks.store.ancestry import made_as
from tasks.store.artifacts import Artifact
from tasks.store.step_names import subject_of
from tasks.store.steps import Step

WIDTH = 40  # columns for a step's name
DOING = {
    "corpus": "reading and cleaning documents",
    "dataset": "reading and cleaning rows",
    "contract": "checking what the data promise",
    "baseline": "fitting the cheap baseline",
    "tokenizer": "learning the vocabulary",
    "tokens": "tokenising",
    "rows": "tokenising",
    "wide": "counting n-grams",
    "vectors": "learning word vectors",
    "stage": "training",
    "measurement": "measuring",
    "package": "packing the model",
    "evaluation": "predicting the test rows",
    "probe": "fitting a linear probe",
    "few_shot": "answering from prompts",
    "prototypes": "comparing with prototypes",
    "links": "ranking heads and tails",
    "word_relations": "comparing words",
    "word_in_context": "comparing words in sentences",
    "polysemy": "comparing senses of words",
    "word_map": "drawing words",
    "attention": "looking at attention",
}
OUTCOMES = {
    "promote": "promoted to champion",
    "keep": "the champion already",
    "refuse": "not promoted",
    "wait": "waits for somebody's approval",
}
LONGEST = 100  # columns before the second of two; a longer text moves only its own line
# Keeps paths and commands in one piece, so they can be copied.
UNBROKEN: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}


def doing(step: Step) -> str:
    """Description of the activity while a step is made."""
    return f"{step.name}: {DOING[step.kind]}"


def tell_step(artifact: Artifact, status: str, seconds: float) -> None:
    """Print a step's status, time and result, on one line if the terminal is wide enough."""
    time = f"{seconds:6.1f} s" if status == "made" else "        "
    word = made_as(artifact) if status == "made" else status
    _tell_pairs((f"{padded(artifact.name, WIDTH)} {word:<8} {time}", _result(artifact)))


def _tell_pairs(*pairs: tuple[str, str]) -> None:
    """Print two columns; in a narrow terminal, the second below the first."""
    left_width = max(width(left) for left, _ in pairs)
    needed = left_width + 2 + max(width(right) for _, right in pairs)
    if not at_terminal() or needed <= columns():
        for left, right in pairs:
            say(f"{padded(left, min(left_width, LONGEST))}  {right}".rstrip())
        return
    for left, right in pairs:
        say(left.rstrip())
        for line in wrapped(right, columns() - 6):
            say(f"      {line}")


def tell_summary(summary: Mapping[str, Any], recipe: str) -> None:
    """Print the stage table, the gate's decision, and commands for more details.

    Args:
        summary: The run's summary.
        recipe: The recipe as given on the command line, with its options.
    """
    console = Console(file=terminal(), width=None if terminal().isatty() else 160)
    console.print()
    _print_outcome(summary, console)
    if model := summary["gate"] and summary["model"]:
        address = f"models:/{model['name']}/{model['version']}"
        console.print("\nLook at it:")
        _tell_pairs(
            (f"  fourstage trace {address}", "where it comes from, every hop"),
            (
                f"  fourstage predict {model['name']}/{model['version']} {summary['example']}",
                "ask it",
            ),
            (f"  fourstage explain {recipe}", "why each step was made or reused"),
            ("  fourstage up", "Prefect's and MLflow's pages on this machine"),
        )
    _print_last(summary, console)


def outcome(summary: Mapping[str, Any]) -> str:
    """The summary as text for a page, without the commands."""
    text = StringIO()
    console = Console(file=text, width=120)
    _print_outcome(summary, console)
    _print_last(summary, console)
    return text.getvalue().rstrip()


def _print_outcome(summary: Mapping[str, Any], console: Console) -> None:
    metric = next((s["task_metric"]["name"] for s in summary["stages"] if s.get("task_metric")), "")
    rows = stage_rows(summary)
    for part in _parts_that_fit(rows, metric, console):
        console.print(stage_table_for_terminal(part, metric))
    if all(stage["status"] not in ("trained", "copied") for stage in summary["stages"]):
        console.print(
            "Nothing was trained: every stage was finished before, from the same data and settings"
            " by the same code, or code you accepted."
        )
    if said := brackets(rows, metric):
        console.print(f"[dim]{said}[/]")
    for note in summary["notes"]:
        console.print(f"\n{note}", highlight=False, markup=False)
    if search := summary["search"]:
        console.print(f"\nsearch: {found(search)}", highlight=False, markup=False)
        if said := widen(search):
            console.print(said, highlight=False, markup=False)
    if summary["metrics"]:
        console.print()
        cheap, majority = names(summary["answers"])
        seeing = summary["seeing_baseline"]
        for name, value in summary["metrics"].items():
            console.print(
                f"{name} on {summary['rows']:,} {summary['split']} rows: [bold]{value:.4f}[/]"
                + (
                    f"  ({cheap} {summary['baseline'][name]:.4f},"
                    + (f" {SEES} {seeing[name]:.4f}," if seeing else "")
                    + f" {majority} {summary['majority'][name]:.4f})"
                    if name in summary["baseline"]
                    else ""
                )
            )
        if said := left_out(summary):
            console.print(f"[dim]{escape(said)}[/]")
    cheap, majority = names("label")
    for dataset, probe in summary["probes"].items():
        ((metric, value),) = probe["metrics"].items()
        console.print(
            f"linear probe, {metric} on {probe['rows']:,} {probe['split']} rows of {dataset}:"
            f" [bold]{value:.4f}[/]  ({cheap} {probe['baseline'][metric]:.4f},"
            f" {majority} {probe['majority'][metric]:.4f})"
        )
    for dataset, facts in summary["few_shot"].items():
        console.print(f"\n{asked(dataset, facts)}: {curve(facts)}", highlight=False, markup=False)
        console.print(seen_before(facts), highlight=False, markup=False, style="dim")
    for dataset, facts in summary["prototypes"].items():
        console.print(
            f"prototypes, accuracy in {facts['episodes']:,} episodes of {facts['rows']:,}"
            f" {facts['split']} rows of {dataset}: {prototypes_line(facts)}",
            highlight=False,
            markup=False,
        )
    for dataset, facts in summary["links"].items():
        console.print(
            f"heads and tails of {facts['rows']:,} {facts['split']} triples of {dataset} among"
            f" {facts['entities']:,} entities: {link_line(facts)}",
            highlight=False,
            markup=False,
        )
    for source, facts in summary["word_relations"].items():
        console.print(f"{source}: {relations_line(facts)}", highlight=False, markup=False)
    for dataset, facts in summary["word_in_context"].items():
        console.print(f"{dataset}: {contexts_line(facts)}", highlight=False, markup=False)
    for word, facts in summary["polysemy"].items():
        console.print(f"{word}: {senses_line(facts)}", highlight=False, markup=False)
    gate, model = summary["gate"], summary["model"]
    if gate and model:
        version = f"{model['name']} version {model['version']}"
        console.print(f"\n[bold]{version}[/]: {OUTCOMES[gate['decision']]}")
        console.print(f"  {gate['reason']}", **UNBROKEN)


def _print_last(summary: Mapping[str, Any], console: Console) -> None:
    """Print warnings and a pending approval last, where they are not missed."""
    for warning in (summary["gate"] or {}).get("warnings", ()):
        console.print(f"\nWarning: {warning}", highlight=False, markup=False)
    if summary["gate"] and summary["gate"]["decision"] == "wait":
        version = f"{summary['model']['name']} version {summary['model']['version']}"
        reason = summary["gate"]["reason"]
        console.print(f"\n{version} {OUTCOMES['wait']}: {reason}", **UNBROKEN)


def _parts_that_fit(
    rows: Sequence[StageRow], metric: str, console: Console
) -> Iterator[Sequence[StageRow]]:
    """Split the stages into tables that fit the console's width."""
    many = len(rows)
    while many > 1 and any(
        Measurement.get(
            console, console.options, stage_table_for_terminal(rows[i : i + many], metric)
        ).minimum
        > console.width
        for i in range(0, len(rows), many)
    ):
        many -= 1
    for i in range(0, len(rows), many):
        yield rows[i : i + many]


def _result(artifact: Artifact) -> str:
    facts, notes = artifact.facts, artifact.notes
    match artifact.kind:
        case "corpus" | "dataset":
            counts = facts["counts"]
            gone = {**counts["quarantined"], **counts["removed"]}
            parts = [f"{number:,} {reason}" for reason, number in gone.items()]
            what = "documents" if artifact.kind == "corpus" else "rows"
            said = f"{counts['kept']:,} of {counts['read']:,} {what} kept"
            if parts:
                said += f" ({', '.join(parts)})"
            if mended := counts.get("mended"):
                said += "; mended: " + ", ".join(
                    f"{rows['count']:,} {why}" for why, rows in mended.items()
                )
            if pictures := picture_table(counts):
                said += "; pictures: " + ", ".join(
                    f"{number:,} {what}" for what, number in pictures.items()
                )
            if artifact.kind == "corpus" and not counts["splits"]["heldout"]:
                said += "; none is held out: its loss, and forgetting it, can't be measured"
            if artifact.kind == "dataset" and not counts["splits"].get("dev"):
                said += "; no dev rows, on which a stage could be scored"
            return said
        case "contract":
            if facts["verdict"] == "green":
                aside = f", {facts['quarantined']:,} of {facts['rows']:,} rows quarantined"
                return "green" + (aside if facts["quarantined"] else "")
            more = shlex.join(["fourstage", "report", subject_of(artifact.name)])
            return f"{facts['verdict']}: {facts['reason']} More: {more}"
        case "tokenizer":
            return f"{facts['vocabulary_size']:,} pieces"
        case "tokens" | "rows":
            said = f"{sum(facts['tokens'].values()):,} tokens"
            if "names" in facts:
                found, linked = (facts["names"][each] for each in ("found", "linked"))
                said += f", {linked:,} of {found:,} names linked ({linked / max(1, found):.0%})"
            within = facts.get("spans_within_words", {"count": 0})
            if within["count"]:
                said += (
                    f"; {within['count']:,} spans begin or end within a word, where no tag does"
                    f" (first rows {', '.join(within['first_ids'])})"
                )
            return said
        case "stage" if "init" in notes:
            return f"from {notes['init']}"
        case "stage" if "weights_of" in notes:
            kept = notes["weights_of"][:12]
            return f"the weights of {kept}, as only settings of its answers differ"
        case "stage":
            said = f"{facts['steps']:,} steps, {notes['tokens_per_second']:,.0f} tokens/s"
            if (notes.get("trained_weights") or 0) < (notes.get("weights") or 0):
                said += f", {notes['trained_weights']:,} of {notes['weights']:,} weights trained"
            for what, cut in notes["metrics"].get("cut", {}).items():
                cut_ones = f"{cut['count']:,} {'training rows' if what == 'row' else 'targets'}"
                said += f", {cut_ones} truncated (the longest has {cut['longest']:,} tokens)"
            if unknown := notes["metrics"].get("triples_with_unknown_names"):
                said += f", {unknown:,} triples with names outside of the vocabulary left out"
            if blend := notes["metrics"].get("blend"):
                parts = f"{blend['network']:.2f} network + {blend['counted']:.2f} n-grams"
                said += f", answers by {parts}"
            if mixed := mix_line(artifact.folder):
                said += f"; {mixed}"
            return f"{said} ({_turns(facts['turns'])})" if facts.get("turns") else said
        case "measurement":
            losses, errors = facts["heldout_loss"], facts["heldout_error"]
            told = [
                f"{name} {value:.2f}" + (f" ± {errors[name]:.2f}" if name in errors else "")
                for name, value in losses.items()
            ]
            unmeasured = facts.get("not_measured", {})
            said = [f"{name} not measured ({why})" for name, why in unmeasured.items()]
            if not told and (metric := facts.get("task_metric")):
                return "; ".join([f"{metric['name']} {metric['value']:.4f}", *said])
            return "; ".join(["loss " + ", ".join(told), *said])
        case "baseline":
            of = facts.get("features", "").replace("both", "words and characters")
            called = names(facts["answers"])[0] + (f" of {of}" if of else "")
            if facts["score"] is None:
                return f"{called}; no dev rows to choose its settings by"
            return f"{called}, {facts['metric']} {facts['score']:.4f} on dev"
        case "wide":
            of = f", {facts['labels']} labels" if facts["labels"] else ""
            of += ", how alike two texts are" if facts.get("compared") else ""
            return f"{facts['ngrams']:,} n-grams of {facts['rows']:,} rows{of}"
        case "vectors":
            return (
                f"{facts['vectors']:,} of {facts['width']} numbers by {notes['family']}, from"
                f" {facts['tokens']:,} tokens"
            )
        case "evaluation":
            return ", ".join(f"{name} {value:.4f}" for name, value in facts["metrics"].items())
        case "probe":
            ((metric, score),) = facts["metrics"].items()
            return f"{metric} {score:.4f} ({names('label')[0]} {facts['baseline'][metric]:.4f})"
        case "few_shot":
            return f"{facts['metric']} {curve(facts)}"
        case "prototypes":
            return prototypes_line(facts)
        case "links":
            return link_line(facts)
        case "word_relations":
            return relations_line(facts)
        case "word_in_context":
            return contexts_line(facts)
        case "polysemy":
            return f"{len(facts['words']):,} words"
        case "word_map":
            return map_line(facts)
        case "attention":
            return attention_line(facts)
        case "package":
            return f"{facts['size_mb']:.1f} MB"
    return ""


def _turns(phases: Sequence[Mapping[str, int]]) -> str:
    """Updates of each objective in alternating training, by phase."""
    return ", ".join(
        f"{name} {' + '.join(f'{counts[name]:,}' for counts in phases)}" for name in phases[0]
    )
