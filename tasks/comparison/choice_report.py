"""The page of a choice: what was tried, what each stage bought and cost, what was chosen."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.digests import write_atomically
from models.metrics import OF_LIKELIHOOD
from tasks.comparison.candidates import AS_WRITTEN, LABELS_ONLY
from tasks.comparison.choice_table import table_of
from tasks.comparison.comparison_report import difference_cells, headline
from tasks.comparison.finalists import finalists_of
from tasks.orchestration.posting import post
from tasks.planning.plan import plan_recipe
from tasks.reports.narration import OUTCOMES
from tasks.reports.tables import markdown_table, mean_of
from tasks.run.recipe_run import as_yaml

if TYPE_CHECKING:
    from tasks.comparison.model_choice import ModelChoice

PAGE, TABLE, CHOSEN = "page.md", "choice.json", "chosen.yaml"
NORMAL = 1.96  # of a normal distribution, 95 % are within so many standard deviations
UNLIKE = 0.25  # share of the rows that two candidates answer differently, to tell a difference


@task(name="show_choice", task_run_name="show-choice", cache_policy=NO_CACHE)
def show_choice(
    choice: ModelChoice, comparison: Mapping[str, Any], summary: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the page, the table and the chosen recipe, and post the page to Prefect.

    Returns:
        ``choice``, ``comparison`` and ``summary``, as plain JSON.
    """
    table = {"choice": table_of(choice), "comparison": comparison, "summary": summary}
    chosen = finalists_of(choice)[0]
    plan = plan_recipe(choice.recipe, chosen.overrides, choice.smoke)
    write_atomically(choice.folder / CHOSEN, as_yaml(plan))
    text = json.dumps(table, indent=1, ensure_ascii=False, sort_keys=True, default=str)
    write_atomically(choice.folder / TABLE, text + "\n")
    page = choice_page(table)
    write_atomically(choice.folder / PAGE, page)
    post(choice.whole.recipe.name, "choice", page, "Which recipe is best on these rows")
    return table


def choice_page(table: Mapping[str, Any]) -> str:
    """The page as Markdown."""
    choice, comparison = table["choice"], table["comparison"]
    parts = [
        f"# {sentence(table)}",
        f"Chosen on {_rows_that_chose(choice)}, in {choice['rounds']}"
        f" round{'s' * (choice['rounds'] > 1)}; the score of the best of several is too good an"
        f" estimate. {_judged(len(comparison['recipes']))} then judged once on the"
        f" {comparison['split']} rows: {headline(comparison)}",
        *_gate(table),
        time_taken(choice),
        *_apart(choice),
        *_once(choice["pretrained"]),
        "## What was tried",
        markdown_table(*round_cells(choice)),
    ]
    if choice["left_out"]:
        parts.append(
            "Left out, since the minutes were too few: "
            + "; ".join(
                f"{name} ({of['about']}) {_short(of['seconds'])}"
                for name, of in choice["left_out"].items()
            )
            + "."
        )
    if choice["diverged"]:
        parts.append("Left out, since their training diverged:")
        parts.append("\n".join(f"- {name}: {why}" for name, why in choice["diverged"].items()))
    if choice["unmade"]:
        parts.append("Left out, since they can't be made of this recipe:")
        parts.append("\n".join(_by_reason(choice["unmade"])))
    if bought := stage_cells(choice):
        parts += ["## What each stage bought", markdown_table(*bought), _caution(choice)]
    for metric in (each for each in comparison["metrics"] if comparison["differences"][each]):
        parts += [
            f"## {metric} on the {comparison['split']} rows",
            markdown_table(*difference_cells(comparison, metric)),
        ]
    if choice["rounds"] < choice["planned_rounds"]:
        parts.append(
            f"The minutes were over after round {choice['rounds']} of {choice['planned_rounds']}."
        )
    parts.append(f"The chosen recipe with every value: `{choice['folder']}/{CHOSEN}`.")
    return "\n\n".join(parts) + "\n"


def _short(seconds: float) -> str:
    return f"is {seconds / 60:.1f} minutes a round short" if seconds else "did not end in time"


def _gate(table: Mapping[str, Any]) -> list[str]:
    """What the gate decided and why, and what the choice made it ask."""
    gate = table["summary"].get("gate") or {}
    reason = gate.get("reason", "")
    said = [table["choice"]["gate"], f"The gate: {reason}" if reason else ""]
    told = [each.removesuffix(".") + "." for each in (*said, *gate.get("warnings", ())) if each]
    return [" ".join(told)] if gate and told else []


def time_taken(choice: Mapping[str, Any]) -> str:
    """What the minutes were spent on, and how many were used."""
    spent, given = choice["spent"], choice["minutes"]
    used = sum(spent.values()) / 60
    said = (
        f"Of {given:g} minutes {used:.1f} were used, from the command's start:"
        f" {spent['prepared'] / 60:.1f} to start and read the data, {spent['rounds'] / 60:.1f} for"
        f" candidates, {spent['judged'] / 60:.1f} for test rows and registration."
    )
    if used <= given:
        return said
    return (
        f"{said} These are more than you gave: training is stopped in time, but data, the first"
        " candidate, test rows and registration are not cut off."
    )


def _rows_that_chose(choice: Mapping[str, Any]) -> str:
    said = f"{choice['dev_rows']:,} dev rows"
    if not choice["folds"]:
        return said
    return f"{said} and {choice['train_rows']:,} train rows in {choice['folds']} folds"


def _judged(number: int) -> str:
    return "The only one was" if number == 1 else "The last two were"


def _by_reason(unmade: Mapping[str, str]) -> list[str]:
    """A line for each reason, with the candidates that have it."""
    names: dict[str, list[str]] = {}
    for name, why in unmade.items():
        names.setdefault(why, []).append(name)
    return [f"- {', '.join(who)}: {why}" for why, who in names.items()]


def _apart(choice: Mapping[str, Any]) -> list[str]:
    """What the dev rows can tell apart, or which way is better."""
    if choice["metric"] in OF_LIKELIHOOD:
        return [f"Of {choice['metric']} lower is better."]
    rows = choice["dev_rows"] + (choice["train_rows"] if choice["folds"] else 0)
    return [
        "On so many rows two candidates can be told apart if their shares of right answers"
        f" differ by about {least_difference(rows):.3f} or more and they answer a"
        " quarter of the rows differently; a smaller difference may be chance."
    ]


def least_difference(rows: int) -> float:
    """The least difference of two shares of right answers that is not within 95 % of chance.

    Each of the rows that two candidates answer differently is a draw of 1 or -1, as in McNemar's
    test (1947).

    Args:
        rows: Number of rows, at least 1.
    """
    return NORMAL * math.sqrt(UNLIKE / rows)


def _once(pretrained: Sequence[str]) -> list[str]:
    """What the intervals don't have in them."""
    if not pretrained:
        return []
    who = f"{' and '.join(pretrained)} {'are' if len(pretrained) > 1 else 'is'} pre-trained"
    return [
        f"{who} at one seed; runs differ only in the seeds of fine-tuning, so the chance of"
        " pre-training is not in the intervals below."
    ]


def _caution(choice: Mapping[str, Any]) -> str:
    """How far the scores of the first round can be trusted."""
    many = len(choice["seeds"]) if choice["rounds"] == 1 else 1
    seeds = "at one seed" if many == 1 else f"at {many} seeds"
    small = (
        "small differences"
        if choice["metric"] in OF_LIKELIHOOD
        else "differences of a point or two"
    )
    return (
        f"Scores of the first round, the only one that tried all of them, {seeds} and with the"
        f" shortest budgets: {small} are often chance. `fourstage compare`"
        " with `--variant no-STAGE:stages.STAGE=` and several seeds tests one."
    )


def sentence(table: Mapping[str, Any]) -> str:
    """What was chosen and what became of it, without a full stop."""
    choice = table["choice"]
    best = next(each for each in choice["candidates"] if each["name"] == choice["chosen"])
    said = f"{best['name']}: {best['about']}"
    gate = table["summary"].get("gate") or {}
    became = OUTCOMES.get(gate.get("decision", ""), "no model is registered")
    return f"{said}; {became}"


def round_cells(choice: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the rounds, the chosen candidate first."""
    numbers = range(choice["rounds"])
    head = (
        "candidate",
        *(f"round {n + 1}: {choice['metric']}, minutes" for n in numbers),
        "tokens",
        "what it is",
    )
    body = []
    for each in choice["candidates"]:
        cells = [f"{mean_of(of)}, {of['seconds'] / 60:.1f}" for of in each["rounds"]] + ["–"] * (
            choice["rounds"] - len(each["rounds"])
        )
        body.append((each["name"], *cells, f"{each['rounds'][-1]['tokens']:,}", each["about"]))
    return head, body


def stage_cells(
    choice: Mapping[str, Any],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]] | None:
    """Dev score of the first round without each stage, and what the stage adds; None for none."""
    first = {each["name"]: each["rounds"][0] for each in choice["candidates"]}
    whole = first.get(AS_WRITTEN)
    parts = (LABELS_ONLY, *(f"no-{stage}" for stage in choice["stages"]))
    without = [name for name in first if name in parts]
    if whole is None or not without:
        return None
    head = ("candidate", choice["metric"], "as written, than it", "minutes saved")
    body = [
        (
            name,
            f"{first[name]['mean']:.4f}",
            f"{whole['mean'] - first[name]['mean']:+.4f}",
            f"{(whole['seconds'] - first[name]['seconds']) / 60:.1f}",
        )
        for name in without
    ]
    return head, [(AS_WRITTEN, f"{whole['mean']:.4f}", "", ""), *body]
