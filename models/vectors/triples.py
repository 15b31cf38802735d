"""Triples of a knowledge graph: texts of three names, a head, a relation and a tail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fourstage.errors import ContractViolation

NAMES = 3  # of a triple


def triples_of(where: str, texts: Iterable[np.ndarray]) -> np.ndarray:
    """Triples in the order of their texts, (n, 3) int32.

    Args:
        where: What the texts are, for messages.
        texts: Token ids of each.

    Raises:
        ContractViolation: A text has another number of names.
    """
    found = list(texts)
    wrong = next((i for i, ids in enumerate(found) if len(ids) != NAMES), None)
    if wrong is not None:
        raise ContractViolation(
            f"{where}: expected texts of {NAMES} names with blanks between them, head,"
            f" relation and tail; text number {wrong + 1} has {len(found[wrong])} tokens. The"
            " tokenizer for names is `scheme: name`"
        )
    return np.array(found, np.int32).reshape(-1, NAMES)


def known(triples: np.ndarray, unknown_id: int) -> np.ndarray:
    """Which triples have three names of the vocabulary, (n, 3) → (n,) bool."""
    return (triples != unknown_id).all(axis=1)


def entities_of(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Heads and tails, each once, in order; (E,).

    Args:
        parts: (n, 3) triples each, with names of the vocabulary alone.

    Raises:
        ContractViolation: A name is an entity here and a relation there, but has one vector.
    """
    every = np.concatenate(parts)
    entities, relations = np.unique(every[:, [0, 2]]), np.unique(every[:, 1])
    both = np.intersect1d(entities, relations)
    if len(both):
        raise ContractViolation(
            f"{len(both):,} names are entities of some triples and relations of others; a name has"
            " one vector: give the relations names of their own"
        )
    return entities
