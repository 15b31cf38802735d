"""A choice as plain JSON: the rounds, what they cost, and which candidate is chosen."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from tasks.comparison.choice_gate import told
from tasks.comparison.finalists import seeds_of_both
from tasks.comparison.halving import FINALISTS
from tasks.comparison.model_choice import ModelChoice
from tasks.comparison.participants import pretraining_stages


def table_of(choice: ModelChoice) -> dict[str, Any]:
    """The rounds as plain JSON, for the page: a row per candidate in the order of their ranks.

    Besides, the recipe's ``stages`` before the labels, and which finalists are ``pretrained``.
    """
    state = choice.state
    rows: dict[str, dict[str, Any]] = {}
    turns = [turn for turn in state["rounds"] if turn["number"] > 0]
    for turn in turns:
        for name, tried in turn["tried"].items():
            scores = tried["scores"]
            row = rows.setdefault(name, {"name": name, "rounds": []})
            row["rounds"].append(
                {
                    "mean": fmean(scores),
                    "deviation": stdev(scores) if len(scores) > 1 else None,
                    "tokens": tried["tokens"],
                    "seconds": tried["seconds"],
                }
            )
    ranked = list(dict.fromkeys(name for turn in reversed(turns) for name in turn["best"]))
    left_out = {n: s for turn in turns for n, s in turn["left_out"].items()}
    diverged = {n: why for turn in state["rounds"] for n, why in turn["diverged"].items()}
    return {
        "metric": choice.metric,
        "minutes": choice.minutes,
        "spent": state["took"] or choice.spent,
        "gate": told(choice.plans[ranked[0]]),
        "dev_rows": state["rows"]["dev"],
        "train_rows": state["rows"].get("train", 0),
        "folds": state["rounds"][-1]["folds"],
        "rounds": state["rounds"][-1]["number"],
        "planned_rounds": len(state["rounds"][-1]["sizes"]),
        "seeds": seeds_of_both(state["rounds"][-1]),
        "chosen": ranked[0],
        "stages": [stage.name for stage in pretraining_stages(choice.whole.recipe)],
        "pretrained": [n for n in turns[-1]["best"][:FINALISTS] if choice.is_pretrained(n)],
        "candidates": [{**rows[name], "about": choice.candidates[name].about} for name in ranked],
        "left_out": {
            name: {"about": choice.candidates[name].about, "seconds": seconds}
            for name, seconds in left_out.items()
            if name not in rows
        },
        "diverged": diverged,
        "unmade": dict(choice.unmade),
        "folder": str(choice.folder),
    }
