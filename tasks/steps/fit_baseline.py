"""Fit the baselines of a dataset, once for all recipes and seeds compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.steps.durable import durable
from tasks.store.artifacts import Findings
from tasks.store.kept import kept_rows
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from corpora.prepared import PreparedRow
    from models.evaluation.baseline import Texts

ANSWERS = "answers.parquet"  # id, and each baseline's answer


@durable()
def fit_baseline(step: Bound, folder: Path) -> Findings:
    """Fit the baselines, choose the best one and write their answers to all but the train rows."""
    import pandas

    from models.evaluation.baseline import cheap_baseline, majority

    data, settings = step.inputs["data"], step.step.settings
    of: dict[str, list[PreparedRow]] = {}
    for row in kept_rows(data, step.inputs["contract"]):
        of.setdefault(row.split, []).append(row)
    names = data.facts["labels"]
    number = {name: i for i, name in enumerate(names)}
    texts = {split: _texts(rows, number) for split, rows in of.items()}
    asked = [split for split in sorted(texts) if split != "train"]
    found, choice = cheap_baseline(
        texts["train"],
        texts.get("dev"),
        [texts[split] for split in asked],
        metric=settings["metric"],
        markings=settings["markings"],
    )
    known = texts["train"].labels[texts["train"].labels >= 0]
    rows = [row.id for split in asked for row in of[split]]
    said = np.concatenate(found) if found else np.zeros(0, np.int64)
    pandas.DataFrame(
        {
            "id": rows,
            "cheap_baseline": [names[i] for i in said],
            "majority": [names[i] for i in majority(known, len(rows))],
        }
    ).to_parquet(folder / ANSWERS)
    return Findings({"metric": settings["metric"], **vars(choice)})


def _texts(rows: list[PreparedRow], number: Mapping[str, int]) -> Texts:
    from models.evaluation.baseline import Texts

    columns = [[row.text for row in rows]]
    if rows[0].text_pair is not None:
        columns.append([row.text_pair or "" for row in rows])
    labels = np.array([number.get(row.label, -1) for row in rows], np.int64)
    return Texts(tuple(columns), labels)
