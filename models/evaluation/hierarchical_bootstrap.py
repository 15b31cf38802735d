"""Hierarchical bootstrap: rows, pre-trainings, and fine-tunings within each pre-training.

A fine-tuned model owes its score to three draws of chance, one within the other. Each resample
repeats all of them: as many pre-trainings as there are, with replacement; of each that is drawn, as
many of its own fine-tunings, with replacement; and rows, the same for all of them.

The interval takes no distribution for granted and has no degrees of freedom. With few pre-trainings
it is too narrow, because n values drawn from n vary by (n - 1) / n of what they should: with two,
its variance between pre-trainings is half.

Reference:
    Davison and Hinkley 1997, Bootstrap Methods and their Application, section 3.8 (hierarchical
    data); Sellam et al. 2022, arXiv 2106.16163 (seeds and rows, resampled together).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def drawn_pretrainings(num: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """(resamples, num) numbers of pre-trainings, with replacement."""
    return rng.integers(num, size=(resamples, num))


def resampled_means(
    drawn: Sequence[np.ndarray], pretrainings: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(resamples,) means over pre-trainings of means over their fine-tunings, all resampled.

    Args:
        drawn: Of each pre-training, (fine-tunings, resamples) scores on resampled rows.
        pretrainings: (resamples, draws) numbers of pre-trainings (`drawn_pretrainings`); the same
            for two contenders that start from the same ones.
        rng: Draws the fine-tunings.
    """
    sizes = np.array([len(runs) for runs in drawn])
    scores = np.concatenate(list(drawn))  # (runs, resamples)
    first = np.cumsum(sizes) - sizes
    times = sizes[pretrainings]  # (resamples, draws)
    most = int(sizes.max())
    chosen = (rng.random((*pretrainings.shape, most)) * times[..., None]).astype(int)
    counts = np.arange(most) < times[..., None]  # (resamples, draws, most)
    resample = np.arange(len(pretrainings))[:, None, None]
    values = scores[first[pretrainings][..., None] + chosen, resample]
    return (np.where(counts, values, 0.0).sum(axis=-1) / times).mean(axis=-1)
