"""Columns stored beside predictions: the number of a row's text, and the baselines' answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.steps.fit_baseline import ANSWERS
from tasks.store.artifacts import Input


def texts_of(dataset: Input, ids: Sequence[str], markings: Sequence[str]) -> list[int]:
    """The number of each row's text. Texts that differ only in markings share a number."""
    from corpora.identity import normal_form
    from corpora.prepared import prepared_rows

    asked = set(ids)
    text = {
        row.id: normal_form(row.whole, markings).replace(" ", "")
        for row in prepared_rows(dataset.folder)
        if row.id in asked
    }
    numbers: dict[str, int] = {}
    return [numbers.setdefault(text[name], len(numbers)) for name in ids]


def rivals_of(baseline: Input, ids: Sequence[str]) -> dict[str, np.ndarray]:
    """Answers of each baseline to the rows, (rows,), by baseline."""
    import pandas

    said = pandas.read_parquet(baseline.path(ANSWERS)).set_index("id").loc[list(ids)]
    return {rival: said[rival].to_numpy(object) for rival in said}
