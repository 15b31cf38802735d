"""What is known of predicted rows beside the prediction: whose text it is, what the rivals say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.steps.fit_baseline import ANSWERS
from tasks.store.artifacts import Input


def texts_of(dataset: Input, ids: Sequence[str], markings: Sequence[str]) -> list[int]:
    """The number of each row's text; markings make no new text of a sentence."""
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
    """(rows,) what each cheap rival answers to the rows."""
    import pandas

    said = pandas.read_parquet(baseline.path(ANSWERS)).set_index("id").loc[list(ids)]
    return {rival: said[rival].to_numpy(object) for rival in said}
