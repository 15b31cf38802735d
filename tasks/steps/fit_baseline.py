"""Fit the baselines of a dataset, once for all recipes and seeds compared with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tasks.steps.durable import durable
from tasks.store.artifacts import Findings
from tasks.store.kept import kept_rows
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from corpora.prepared import PreparedRow
    from models.evaluation.rivals import Rows

ANSWERS = "answers.parquet"  # id, and each baseline's answer


@durable()
def fit_baseline(step: Bound, folder: Path) -> Findings:
    """Fit the baselines, choose the best one and write their answers to all but the train rows."""
    import pandas

    from models.evaluation.rivals import fit

    data, settings = step.inputs["data"], step.step.settings
    of: dict[str, list[PreparedRow]] = {}
    for row in kept_rows(data, step.inputs["contract"]):
        of.setdefault(row.split, []).append(row)
    texts = {split: _texts(rows) for split, rows in of.items()}
    asked = [split for split in sorted(texts) if split != "train"]
    kind = settings.get("answers", "label")
    rival = fit(
        kind,
        texts["train"],
        texts.get("dev"),
        metric=settings["metric"],
        markings=settings["markings"],
    )
    rows = [row.id for split in asked for row in of[split]]
    pandas.DataFrame(
        {
            "id": rows,
            "cheap_baseline": [said for split in asked for said in rival.answer(texts[split])],
            "majority": [rival.majority] * len(rows),
        }
    ).to_parquet(folder / ANSWERS)
    return Findings({"answers": kind, "metric": settings["metric"], **rival.facts})


def _texts(rows: list[PreparedRow]) -> Rows:
    from models.evaluation.rivals import Rows

    columns = [[row.text for row in rows]]
    if rows[0].text_pair is not None:
        columns.append([row.text_pair or "" for row in rows])
    choices = [row.choices or () for row in rows]
    return Rows(tuple(columns), [row.label for row in rows], choices if any(choices) else None)
