"""How much two models count in one answer: a factor on the scores of each, fitted to labelled rows.

    scores = b_0 · those of the network + b_1 · those of counted n-grams

The factors have the largest posterior density: the likelihood of the rows' labels, by a softmax of
the scores or, where a row has a set of labels, by a sigmoid of each; or of their numbers, which lie
around the scores with deviation 1, but with long tails, so that one wrong number decides little;
times a normal distribution around `EQUAL` with standard deviation `DEVIATION`. Few rows so leave
both near `EQUAL`, where they are without any.

Reference:
    Genest and Zidek 1986, Statistical Science 1(1), 3.3: the logarithmic opinion pool. A factor
    below 1 on a model that is too sure: Guo et al. 2017, arXiv 1706.04599, 4.2. The tails: Huber
    1964, Annals of Mathematical Statistics 35(1). The prior is ours.
"""

from __future__ import annotations

import numpy as np

EQUAL = (0.5, 0.5)  # factors without rows to learn from
DEVIATION = 0.5  # of the prior
TAIL = 3.0  # deviations from which on the loss of a number grows with its distance alone
LARGEST = 5.0


def fitted(network: np.ndarray, counted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The two factors, (2,) float32 from 0 to `LARGEST`.

    Args:
        network: (rows, N) scores of the network.
        counted: (rows, N) scores of the n-grams.
        labels: (rows,) label ids, -1 for none; of sets (rows, N), 1 where a row has the label and
            0 where it has not, -1 throughout for none; or (rows,) float, numbers, NaN for none.
    """
    from scipy.optimize import minimize

    if labels.dtype.kind == "f":
        known, nats = np.isfinite(labels), _of_numbers
    elif labels.ndim == 1:
        known, nats = labels >= 0, _of_labels
    else:
        known, nats = labels[:, 0] >= 0, _of_sets
    both = np.stack([network[known], counted[known]]).astype(np.float64)  # (2, rows, N)

    def loss(factors: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = nats(np.tensordot(factors, both, axes=1), labels[known])
        away = (factors - EQUAL) / DEVIATION
        gradient = np.tensordot(both, slope, axes=2) + away / DEVIATION
        return found + float(away @ away) / 2, gradient

    made = minimize(loss, EQUAL, jac=True, bounds=[(0.0, LARGEST)] * 2, method="L-BFGS-B")
    return made.x.astype(np.float32)


def _of_labels(scores: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum of -ln p of the labels by a softmax, and its slope on the scores (rows, N)."""
    from scipy.special import logsumexp

    logs = scores - logsumexp(scores, axis=1, keepdims=True)
    rows = np.arange(len(labels))
    slope = np.exp(logs)
    slope[rows, labels] -= 1
    return float(-logs[rows, labels].sum()), slope


def _of_sets(scores: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum of -ln p of each yes and no by a sigmoid, and its slope on the scores (rows, N)."""
    from scipy.special import expit

    nats = np.logaddexp(0.0, np.where(labels > 0, -scores, scores))
    return float(nats.sum()), expit(scores) - labels


def _of_numbers(scores: np.ndarray, numbers: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum of Huber's losses, and its slope on the scores (rows, 1)."""
    error = scores - numbers[:, None]
    slope = np.clip(error, -TAIL, TAIL)
    return float((slope * (error - slope / 2)).sum()), slope
