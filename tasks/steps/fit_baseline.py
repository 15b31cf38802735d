"""Fit the baselines of a dataset, once for all recipes and seeds compared with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tasks.steps.durable import durable
from tasks.store.artifacts import Findings
from tasks.store.kept import kept_rows
from tasks.store.steps import Bound

if TYPE_CHECKING:
    import numpy as np

    from corpora.prepared import PreparedRow
    from models.evaluation.rivals import RawRows

ANSWERS = "answers.parquet"  # id, and each baseline's answer
SEEING = "seeing_baseline"  # the column of the one that reads pictures, if rows have some


@durable()
def fit_baseline(step: Bound, folder: Path) -> Findings:
    """Fit the baselines, choose the best one and write their answers to all but the train rows.

    Labels of rows with pictures have one more, which sees.
    """
    import pandas

    from models.evaluation import seen_words
    from models.evaluation.rivals import fit

    data, settings = step.inputs["data"], step.step.settings
    of: dict[str, list[PreparedRow]] = {}
    for row in kept_rows(data, step.inputs["contract"]):
        of.setdefault(row.split, []).append(row)
    pictured = any(row.picture is not None for row in of["train"])
    seeing = pictured and settings.get("answers", "label") == "label"
    texts = {split: _texts(rows, data.folder if seeing else None) for split, rows in of.items()}
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
    answers: dict[str, list[str]] = {
        "id": rows,
        "cheap_baseline": [said for split in asked for said in rival.answer(texts[split])],
        "majority": [rival.majority] * len(rows),
    }
    facts = {"answers": kind, "metric": settings["metric"], **rival.facts}
    if seeing:
        sees = seen_words.fit(
            texts["train"], texts.get("dev"), settings["metric"], settings["markings"]
        )
        answers[SEEING] = [said for split in asked for said in sees.answer(texts[split])]
        facts["seeing"] = dict(sees.facts)
    pandas.DataFrame(answers).to_parquet(folder / ANSWERS)
    return Findings(facts)


def _texts(rows: list[PreparedRow], pictured: Path | None = None) -> RawRows:
    """Rows as texts, and with the folder of the dataset the numbers of their pictures."""
    from models.evaluation.rivals import RawRows

    columns = [[row.text for row in rows]]
    if rows[0].text_pair is not None:
        columns.append([row.text_pair or "" for row in rows])
    choices = [row.choices or () for row in rows]
    return RawRows(
        tuple(columns),
        [row.label for row in rows],
        choices if any(choices) else None,
        None if pictured is None else _numbers(rows, pictured),
    )


def _numbers(rows: list[PreparedRow], dataset: Path) -> np.ndarray:
    """(rows, S) numbers of each row's picture."""
    import numpy as np

    from corpora.pictures import PreparedRegions
    from models.evaluation.seen_words import statistics

    regions = PreparedRegions(dataset)
    names = [str(row.picture) for row in rows]  # each has one: without, it is quarantined
    of = {name: statistics(*regions.of(name)) for name in dict.fromkeys(names)}
    return np.array([of[name] for name in names])
