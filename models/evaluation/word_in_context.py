"""Word in context: does a word mean the same in two sentences, by the cosine of its vectors?

For each layer, the answer is yes from a threshold on, which is chosen on other rows than those it
is judged on. The layer is chosen in the same way.

Reference:
    Pilehvar and Camacho-Collados 2019, "WiC: the Word-in-Context Dataset", NAACL, 4.1 (thresholds
    on cosines of contextual vectors).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.evaluation.marked_words import WordInContext
from models.evaluation.occurrences import AllLayers, cosines, occurrence_vectors
from models.protocols import Tokenizer
from models.training.trained_stage import load_stage

CHUNK = 512  # pairs whose vectors are in memory at a time
ALWAYS, NEVER = -1.0, 2.0  # thresholds at which every pair, and none, means the same


@dataclass(frozen=True)
class LayerAccuracy:
    """Accuracy of a layer.

    Attributes:
        layer: Its name (`AllLayers.names`).
        threshold: The cosine from which on a word means the same; from -1 on always, 2 is never.
        chosen: Accuracy on the rows by which the threshold was chosen, 0-1.
        accuracy: Accuracy on the others, 0-1.
    """

    layer: str
    threshold: float
    chosen: float
    accuracy: float


@dataclass(frozen=True)
class Judged:
    """Result of a test.

    Attributes:
        layers: In order.
        best: Number of the layer that is best on the rows by which thresholds were chosen.
        constant: Accuracy of the answer that is more frequent on those rows, 0-1.
        form: Accuracy of asking whether the word is written alike, or of the constant if that is
            better on those rows, 0-1.
        cosines: (pairs, layers) of the judged pairs.
    """

    layers: tuple[LayerAccuracy, ...]
    best: int
    constant: float
    form: float
    cosines: np.ndarray


def word_in_context(
    folder: Path,
    tokenizer: Tokenizer,
    choosing: Sequence[WordInContext],
    judged: Sequence[WordInContext],
    folders: Sequence[Path] = (),
) -> Judged:
    """Judge every layer of a finished stage.

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer.
        choosing: Pairs by which thresholds and the layer are chosen.
        judged: Other pairs.
        folders: Project folders, searched first.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    layers = AllLayers(stage.network)

    def measured(pairs: Sequence[WordInContext]) -> np.ndarray:
        found = []
        for start in range(0, len(pairs), CHUNK):
            some = pairs[start : start + CHUNK]
            both = [side for pair in some for side in (pair.first, pair.second)]
            vectors = occurrence_vectors(layers, both, stage.context)
            found.append(cosines(vectors[::2], vectors[1::2]))
        return np.concatenate(found)

    return judge(layers.names, choosing, measured(choosing), judged, measured(judged))


def judge(
    names: Sequence[str],
    choosing: Sequence[WordInContext],
    chosen_by: np.ndarray,
    judged: Sequence[WordInContext],
    found: np.ndarray,
) -> Judged:
    """Choose a threshold for each layer and a layer, and judge them.

    Args:
        names: Of the layers.
        choosing: Pairs by which is chosen.
        chosen_by: (choosing, layers) their cosines.
        judged: Other pairs.
        found: (judged, layers) their cosines.
    """
    same, truth = (np.array([pair.same for pair in pairs]) for pairs in (choosing, judged))
    forms, others = (np.array([float(p.same_form) for p in pairs]) for pairs in (choosing, judged))

    def accuracy(threshold: float, values: np.ndarray) -> float:
        return float(((values >= threshold) == truth).mean())

    layers = []
    for number, name in enumerate(names):
        threshold, chosen = best_threshold(chosen_by[:, number], same)
        layers.append(LayerAccuracy(name, threshold, chosen, accuracy(threshold, found[:, number])))
    return Judged(
        tuple(layers),
        best=int(np.argmax([layer.chosen for layer in layers])),
        constant=accuracy(ALWAYS if same.mean() >= 0.5 else NEVER, others),
        form=accuracy(best_threshold(forms, same)[0], others),
        cosines=found,
    )


def best_threshold(values: np.ndarray, same: np.ndarray) -> tuple[float, float]:
    """The threshold with the highest accuracy, the lowest of equals, and that accuracy.

    Args:
        values: (n,) cosines.
        same: (n,) bool, whether the answer should be yes.
    """
    distinct, place = np.unique(values, return_inverse=True)
    yes = np.bincount(place, weights=same, minlength=len(distinct))
    no = np.bincount(place, weights=~same, minlength=len(distinct))
    # Right answers if the first i of the distinct values are below the threshold.
    right = np.concatenate([[0], np.cumsum(no)]) + yes.sum() - np.concatenate([[0], np.cumsum(yes)])
    i = int(right.argmax())
    between = (distinct[1:] + distinct[:-1]) / 2
    threshold = [ALWAYS, *between.tolist(), NEVER][i]
    return threshold, float(right[i] / len(values))
