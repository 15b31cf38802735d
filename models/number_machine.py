"""Ridge regression for the wide part of a head that answers with a number.

    one text    counts → TF-IDF, each kind of a row to length 1   ─┐
    two texts   counts of both → how alike they are (A)           ─┴→ ridge → number

Numbers are in standard deviations of the training rows'. The penalty is the one under which rows
are foretold best by a regression that has not seen them; nor any other row of their text.

Reference:
    Hoerl and Kennard 1970, Technometrics 12(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.linear_machine import folds_of

PENALTIES = (0.1, 1.0, 10.0)


def regressed(
    features: Any, numbers: np.ndarray, groups: Sequence[Any]
) -> tuple[np.ndarray, float, np.ndarray]:
    """Weights (D,), bias, and for each row the number foretold without its text, (rows,).

    Args:
        features: (rows, D), dense or sparse.
        numbers: (rows,), NaN for a row that nothing is learned from.
        groups: (rows,) rows of equal value are of one text.
    """
    known = np.isfinite(numbers)
    fold = folds_of(groups)
    tried = []
    for penalty in PENALTIES:
        unseen = np.zeros(len(numbers))
        for own in np.unique(fold):
            held = fold == own
            if not (known & ~held).any():
                continue  # a single text: nothing is held out
            weights, bias = _fitted(features[known & ~held], numbers[known & ~held], penalty)
            unseen[held] = features[held] @ weights + bias
        tried.append((float(np.square(unseen - numbers)[known].mean()), penalty, unseen))
    _, penalty, unseen = min(tried, key=lambda each: each[0])
    return *_fitted(features[known], numbers[known], penalty), unseen


def _fitted(features: Any, numbers: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    from sklearn.linear_model import Ridge
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        machine = Ridge(alpha=penalty, random_state=0).fit(features, numbers)
    return machine.coef_, float(machine.intercept_)
