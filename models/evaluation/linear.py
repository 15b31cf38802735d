"""Linear models, fitted on a single CPU core."""

from __future__ import annotations

from typing import Any

import numpy as np


def fit_and_predict(model: Any, features: Any, labels: np.ndarray, asked: Any) -> np.ndarray:
    """Fit a scikit-learn classifier and predict, with a single thread.

    The matrix products are too small for several threads: on a busy machine they take 11 s, because
    the threads wait for each other, where a single one takes 1.5 s.

    Args:
        model: A classifier with ``fit`` and ``predict``.
        features: (rows, D) features of the training rows, dense or sparse.
        labels: (rows,) labels of the training rows.
        asked: (rows to predict, D) features.

    Returns:
        (rows to predict,) labels.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        return np.asarray(model.fit(features, labels).predict(asked))
