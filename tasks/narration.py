"""A run as one reads it in a terminal: a line a step, then the table of what each stage bought."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from fourstage.terminal import say, terminal
from tasks.artifacts import Artifact
from tasks.start import made_as

WIDTH = 40


def tell_step(artifact: Artifact, status: str, seconds: float) -> None:
    """One line: the step, whether it was made, and what came out."""
    time = f"{seconds:6.1f} s" if status == "made" else "        "
    word = made_as(artifact) if status == "made" else status
    say(f"{artifact.name:<{WIDTH}} {word:<8} {time}  {_result(artifact)}".rstrip())


def tell_summary(summary: Mapping[str, Any], recipe: str) -> None:
    """The closing table, the gate's decision, and the commands that show more.

    Args:
        summary: Of the run.
        recipe: How the command named it, with its options.
    """
    from tasks.report import brackets, stage_table_for_terminal
    from tasks.summary import stage_rows

    metric = next((s["task_metric"]["name"] for s in summary["stages"] if s.get("task_metric")), "")
    console = Console(file=terminal(), width=None if terminal().isatty() else 160)
    console.print()
    rows = stage_rows(summary)
    console.print(stage_table_for_terminal(rows, metric))
    if all(stage["status"] != "trained" for stage in summary["stages"]):
        console.print(
            "Nothing was trained: every stage was finished before, from the same data and settings"
            " by the same code, or code you accepted."
        )
    if said := brackets(rows, metric):
        console.print(f"[dim]{said}[/]")
    for note in summary["notes"]:
        console.print(f"\n{note}", highlight=False, markup=False)
    if summary["metrics"]:
        console.print()
        for name, value in summary["metrics"].items():
            console.print(
                f"{name} on {summary['rows']:,} {summary['split']} rows: [bold]{value:.4f}[/]"
                f"  (TF-IDF + logistic regression {summary['baseline'][name]:.4f},"
                f" majority class {summary['majority'][name]:.4f})"
            )
    gate, model = summary["gate"], summary["model"]
    if gate and model:
        said = "promoted to champion" if gate["decision"] == "promote" else "not promoted"
        console.print(f"\n[bold]{model['name']} version {model['version']}[/]: {said}")
        for said in (gate["reason"], *gate["warnings"]):
            # Unbroken, so that a path or a command in it can be copied.
            console.print(f"  {said}", highlight=False, markup=False, soft_wrap=True)
        address = f"models:/{model['name']}/{model['version']}"
        console.print("\nLook at it:")
        for command, what in (
            (f"fourstage trace {address}", "where it comes from, every hop"),
            (f"fourstage predict {model['name']}/{model['version']} 'some text'", "ask it"),
            (f"fourstage explain {recipe}", "why each step was made or reused"),
            ("fourstage up", "Prefect's and MLflow's pages on this machine"),
        ):
            console.print(f"  {command:<58} {what}", highlight=False)


def _result(artifact: Artifact) -> str:
    details = artifact.details
    match artifact.kind:
        case "corpus" | "dataset":
            counts = details["counts"]
            gone = {**counts["quarantined"], **counts["removed"]}
            parts = [f"{number:,} {reason}" for reason, number in gone.items()]
            what = "documents" if artifact.kind == "corpus" else "rows"
            kept = f"{counts['kept']:,} of {counts['read']:,} {what} kept"
            said = f"{kept} ({', '.join(parts)})" if parts else kept
            if artifact.kind == "corpus" and not counts["splits"]["heldout"]:
                said += "; none is held out: its loss, and forgetting it, can't be measured"
            return said
        case "contract":
            said = f"{details['verdict']}: {details['reason']}"
            more = shlex.join(["fourstage", "report", artifact.name.removeprefix("contract ")])
            return said if details["verdict"] == "green" else f"{said} More: {more}"
        case "tokenizer":
            return f"{details['vocabulary_size']:,} pieces"
        case "tokens" | "rows":
            return f"{sum(details['tokens'].values()):,} tokens"
        case "stage" if "init" in details:
            return f"from {details['init']}"
        case "stage":
            said = f"{details['steps']:,} steps, {details['tokens_per_second']:,.0f} tokens/s"
            return f"{said} ({_turns(details['turns'])})" if details.get("turns") else said
        case "measurement":
            losses = details["heldout_loss"].items()
            return "loss " + ", ".join(f"{name} {value:.3f}" for name, value in losses)
        case "evaluation":
            return ", ".join(f"{name} {value:.4f}" for name, value in details["metrics"].items())
        case "package":
            return f"{details['size_mb']:.1f} MB"
    return ""


def _turns(phases: Sequence[Mapping[str, int]]) -> str:
    """Updates of each objective that took turns, phase by phase."""
    return ", ".join(
        f"{name} {' + '.join(f'{counts[name]:,}' for counts in phases)}" for name in phases[0]
    )
