"""Columns stored beside predictions: the number of a row's text, and the baselines' answers.

What is drawn together in a bootstrap has one number. Rows of a group, such as sentences of an
abstract, are right or wrong together, as rows of a text are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.steps.fit_baseline import ANSWERS
from tasks.store.artifacts import Input

LEAST_GROUPS = 20  # of fewer, a bootstrap that draws them tells next to nothing


def texts_of(dataset: Input, ids: Sequence[str], markings: Sequence[str]) -> list[int]:
    """The number of each row's text. Texts that differ only in markings share a number.

    If the source names groups, a group counts as one text, unless the rows have few of them.
    """
    from corpora.identity import normal_form
    from corpora.prepared import GROUPS, prepared_groups, prepared_rows

    if GROUPS in dataset.outputs:
        groups = prepared_groups(dataset.folder)
        if len({groups[name] for name in ids}) >= LEAST_GROUPS:
            return _numbered([groups[name] for name in ids])
    asked = set(ids)
    text = {
        row.id: normal_form(row.whole, markings).replace(" ", "")
        for row in prepared_rows(dataset.folder)
        if row.id in asked
    }
    return _numbered([text[name] for name in ids])


def _numbered(values: Sequence[str]) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def rivals_of(baseline: Input, ids: Sequence[str]) -> dict[str, np.ndarray]:
    """Answers of each baseline to the rows, (rows,), by baseline."""
    import pandas

    said = pandas.read_parquet(baseline.path(ANSWERS)).set_index("id").loc[list(ids)]
    return {rival: said[rival].to_numpy(object) for rival in said}
