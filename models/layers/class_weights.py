"""Weights of classes in a loss, so that rare ones count as much as frequent ones.

    weight of class n = number of answers / (number of classes · answers of class n)

All answers of a class weigh the same together as those of any other one. A label that rows have or
have not is two classes; its weights relate as its rows without to its rows with, which is the
``pos_weight`` that others use.

Reference:
    King and Zeng 2001, "Logistic Regression in Rare Events Data", 3.2; the formula is
    scikit-learn's ``class_weight="balanced"``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models.keras_ops import ops

CLASS_WEIGHTS = ("none", "balanced")


def balanced(counts: np.ndarray) -> np.ndarray:
    """Weights of classes, (…, N) float32.

    Args:
        counts: (…, N) answers of each class in the training rows. One without any counts as if it
            had one.
    """
    total = counts.sum(axis=-1, keepdims=True)
    return (total / (counts.shape[-1] * np.maximum(counts, 1))).astype(np.float32)


def weights_of(classes: Any, table: np.ndarray, place: str) -> Any:
    """The weight of each answer, (…) float32.

    Args:
        classes: (…) int32 numbers of the right classes, from 0.
        table: Weights of classes, `balanced`, of any shape; a class's number is its place in the
            flat table. Without a class where a trained head is rebuilt for prediction, without
            training rows.
        place: The setting, for the message.

    Raises:
        RecipeError: The table has no class.
    """
    if not table.size:
        raise RecipeError(
            f"{place}: 'balanced' needs the training rows, got none; a head rebuilt without them"
            " predicts, and has no loss"
        )
    return ops.take(ops.convert_to_tensor(table.reshape(-1)), classes)
