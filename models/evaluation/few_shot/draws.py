"""Which training rows a prompt shows as examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fourstage.errors import ContractViolation
from models.inputs.randomness import generator


def drawn(
    seed: int, row: int, count: int, labels: Sequence[str], balanced: bool = False
) -> list[int]:
    """Draw the examples of one row, without replacement.

    The first k of more examples are those of k, so that prompts with more examples only add some.

    Args:
        seed: Seed of the draws.
        row: Number of the row that is asked; each has its own examples.
        count: K, the number of examples.
        labels: Label of each row of the pool.
        balanced: Draw from the labels in turn, in a random order each time; as in the paper, any
            row is as likely as another otherwise.

    Returns:
        Places in the pool.

    Raises:
        ContractViolation: The pool has fewer rows.
    """
    if count > len(labels):
        raise ContractViolation(
            f"expected at most {len(labels):,} examples, the training rows with another text than"
            f" the rows that are asked, got {count:,}; lower `shots`"
        )
    order = generator(seed, "few-shot examples", row).permutation(len(labels))
    if not balanced:
        return order[:count].tolist()
    names, numbers = np.unique(np.asarray(labels), return_inverse=True)
    turn = np.zeros(len(labels), np.int64)  # how many of its label came before each
    for name in range(len(names)):
        places = np.flatnonzero(numbers[order] == name)
        turn[places] = np.arange(len(places))
    return order[np.argsort(turn, kind="stable")][:count].tolist()
