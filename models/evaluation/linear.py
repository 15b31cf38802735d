"""Linear models fitted on one processor core."""

from __future__ import annotations

from typing import Any

import numpy as np


def fit_and_predict(model: Any, features: Any, labels: np.ndarray, asked: Any) -> np.ndarray:
    """Fit a scikit-learn classifier and let it answer.

    Its matrix products are too small to share: threads that wait for one another take 11 s where
    one takes 1.5 s as soon as anything else runs on the machine.

    Args:
        model: With ``fit`` and ``predict``.
        features: (rows, D) of the training rows, dense or sparse.
        labels: (rows,) their label ids.
        asked: (asked rows, D).

    Returns:
        (asked rows,) int64 label ids.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        return np.asarray(model.fit(features, labels).predict(asked))
