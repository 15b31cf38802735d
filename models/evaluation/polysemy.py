"""Polysemy: are the vectors of a word nearer to each other within a sense than between senses?

In a table of vectors a word has one, so that all cosines are 1; how far a layer tells senses apart
is what context adds.

Reference:
    Peters et al. 2018, arXiv 1802.05365, table 4 (nearest neighbours of "play"); Ethayarajh 2019,
    arXiv 1909.00512 (self-similarity by layer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.evaluation.marked_words import Occurrence
from models.evaluation.occurrences import AllLayers, cosines, occurrence_vectors
from models.evaluation.plane import plane
from models.protocols import Tokenizer
from models.training.trained_stage import load_stage


@dataclass(frozen=True)
class LayerSenses:
    """How a layer tells the senses of a word apart.

    Attributes:
        layer: Its name (`AllLayers.names`).
        within: Mean cosine of two occurrences of the same sense.
        between: Mean cosine of two occurrences of different senses.
        nearest: Number of the nearest other occurrence of each one; of equals the first.
        same_sense: Occurrences whose nearest ones all have the same sense as they.
        points: (n, 2) the occurrences in the plane.
    """

    layer: str
    within: float
    between: float
    nearest: list[int]
    same_sense: int
    points: np.ndarray


def polysemy(
    folder: Path,
    tokenizer: Tokenizer,
    words: Mapping[str, Sequence[tuple[str, Occurrence]]],
    folders: Sequence[Path] = (),
) -> dict[str, list[LayerSenses]]:
    """How every layer of a finished stage tells senses apart, by word.

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer.
        words: By word, its occurrences with the sense of each.
        folders: Project folders, searched first.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    layers = AllLayers(stage.network)
    found = {}
    for word, occurrences in words.items():
        senses = [sense for sense, _ in occurrences]
        vectors = occurrence_vectors(layers, [each for _, each in occurrences], stage.context)
        found[word] = [
            told_apart(name, vectors[:, number], senses) for number, name in enumerate(layers.names)
        ]
    return found


def told_apart(layer: str, vectors: np.ndarray, senses: Sequence[str]) -> LayerSenses:
    """How vectors tell senses apart.

    Args:
        layer: Name of the layer.
        vectors: (n, D) of occurrences.
        senses: (n,) of two senses or more, each with two occurrences or more.
    """
    near = cosines(vectors[:, None], vectors[None])  # (n, n)
    of = np.array(senses)
    alike = of[:, None] == of[None]
    other = ~np.eye(len(of), dtype=bool)
    others = np.where(other, near, -np.inf)
    nearest = others == others.max(axis=1, keepdims=True)  # (n, n), more than one where equal
    return LayerSenses(
        layer,
        float(near[alike & other].mean()),
        float(near[~alike].mean()),
        nearest.argmax(axis=1).tolist(),
        int((alike | ~nearest).all(axis=1).sum()),
        plane(vectors),
    )
