"""Vectors in the plane, for pictures."""

from __future__ import annotations

import numpy as np


def plane(vectors: np.ndarray) -> np.ndarray:
    """The first two principal components of vectors, (n, 2) float64; the same each time.

    Args:
        vectors: (n, D), two at least; with D = 1 the second component is 0.
    """
    from sklearn.decomposition import PCA

    count = min(2, *vectors.shape)
    with np.errstate(invalid="ignore"):  # shares of no variance, where all are the same
        points = PCA(count, svd_solver="full").fit_transform(vectors.astype(np.float64))
    return np.pad(points, ((0, 0), (0, 2 - count)))
