"""TransE's loss: head + relation is nearer to the tail than where one of the entities is another.

Reference:
    Bordes et al. 2013, "Translating Embeddings for Modeling Multi-relational Data", NIPS, equations
    1 and 2 and algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fourstage.errors import RecipeError, UnknownNameError
from models.vectors.tables import Table

L1, L2 = "l1", "l2"
DISTANCES = (L1, L2)


@dataclass(frozen=True)
class Translation:
    """Settings of the loss and of its descent.

    Attributes:
        margin: γ, by how much a true triple has to be nearer than a corrupted one.
        distance: ``l1``, the sum of absolute differences, or ``l2``, the Euclidean distance.
        learning_rate: Rate of stochastic gradient descent, which stays the same.
    """

    margin: float
    distance: str
    learning_rate: float

    def check(self, where: str) -> None:
        """Check the ranges.

        Raises:
            RecipeError: A setting is out of its range.
            UnknownNameError: There is no such distance.
        """
        for name in ("margin", "learning_rate"):
            if not getattr(self, name) > 0:
                raise RecipeError(
                    f"{where}.{name}: expected a number above 0, got {getattr(self, name)}"
                )
        if self.distance not in DISTANCES:
            raise UnknownNameError(f"{where}.distance", self.distance, "a distance", DISTANCES)


@dataclass(frozen=True)
class TripleSums:
    """Sums over triples.

    Attributes:
        loss: Losses.
        right: Number of triples nearer than their corrupted ones.
        triples: Number of triples.
    """

    loss: float = 0.0
    right: float = 0.0
    triples: float = 0.0

    def __add__(self, other: TripleSums) -> TripleSums:
        return TripleSums(
            self.loss + other.loss, self.right + other.right, self.triples + other.triples
        )


def lengths(differences: np.ndarray, distance: str) -> np.ndarray:
    """Length of each difference, (…, D) → (…)."""
    if distance == L1:
        return np.abs(differences).sum(axis=-1)
    return np.linalg.norm(differences, axis=-1)


def slopes(differences: np.ndarray, distance: str) -> np.ndarray:
    """Gradient of each length, (…, D) → (…, D); 0 where a difference is 0."""
    if distance == L1:
        return np.sign(differences)
    return differences / np.maximum(np.linalg.norm(differences, axis=-1, keepdims=True), 1e-12)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1, (…, D) → (…, D)."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def corrupted(triples: np.ndarray, entities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each triple with its head or its tail, not both, replaced by an entity drawn at random.

    As in the paper, what comes out may happen to be true.

    Args:
        triples: (n, 3) heads, relations and tails.
        entities: (E,) those that are drawn.
        rng: Draws the place, then the entity.

    Reference:
        Bordes et al. 2013, equation 2.
    """
    found = triples.copy()
    places = 2 * rng.integers(0, 2, len(triples))
    found[np.arange(len(triples)), places] = entities[rng.integers(0, len(entities), len(triples))]
    return found


def compare(
    table: Table, true: np.ndarray, false: np.ndarray, settings: Translation, rate: float
) -> TripleSums:
    """Score triples against corrupted ones, Σ max(0, γ + d(h + r, t) - d(h' + r, t')), and descend.

    The vectors of entities that have moved get the length 1 again. The paper gives it to all of
    them before each update, which is the same: the others have it already.

    Args:
        table: Vectors of entities, whose length is 1, and of relations.
        true: (n, 3) triples.
        false: (n, 3) a corrupted one for each.
        settings: Margin and distance.
        rate: Learning rate; 0 changes nothing.
    """
    apart = [_apart(table, triples) for triples in (true, false)]  # (n, D) each
    near, far = (lengths(each, settings.distance) for each in apart)
    losses = np.maximum(0.0, settings.margin + near - far)
    wrong = losses > 0
    if rate and wrong.any():
        pull, push = (slopes(each[wrong], settings.distance) for each in apart)
        names = np.concatenate([true[wrong].T, false[wrong].T])  # (6, wrong)
        # Of head, relation and tail; then of those of the corrupted triple, which go away.
        gradients = np.stack([pull, pull, -pull, -push, -push, push])
        table.descend(names, gradients, np.ones(names.shape, np.float32), rate)
        moved = np.unique(names[[0, 2, 3, 5]])
        table.array[moved] = unit(table.array[moved])
    return TripleSums(float(losses.sum()), float((near < far).sum()), float(len(true)))


def _apart(table: Table, triples: np.ndarray) -> np.ndarray:
    """How far head + relation is from the tail, (n, 3) → (n, D)."""
    heads, relations, tails = triples.T
    return table.vectors(heads) + table.vectors(relations) - table.vectors(tails)
