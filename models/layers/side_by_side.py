"""Texts that have the same beginning, read side by side as one row.

N texts of T new tokens each become N · T tokens of one row, so that attention reads what they share
once. A mask hides each from the others.

    beginning     texts             row                          "sat" sees
    the  cat      sat   on          the cat | sat on sleeps and  the cat sat
                  sleeps  and
"""

from __future__ import annotations

from typing import Any

from models.keras_ops import ops


def joined(x: Any, texts: Any) -> Any:
    """Vectors of N texts a row, (P · N, T, D) → (P, N · T, D)."""
    return x if _alone(texts) else ops.reshape(x, (-1, texts * ops.shape(x)[1], x.shape[2]))


def parted(x: Any, new: Any, texts: Any) -> Any:
    """Vectors of texts of T new tokens, (P, N · T, D) → (P · N, T, D)."""
    return x if _alone(texts) else ops.reshape(x, (-1, new, x.shape[2]))


def joined_pairs(x: Any, new: Any, texts: Any, other: float = 0) -> Any:
    """Numbers of each token for each place that it may see, (P · N, H, M, S + T), as one row's.

    Args:
        x: Of M tokens a text, for the S places of the beginning and for its own T.
        new: T.
        texts: N.
        other: Added for tokens of another text.

    Returns:
        (P, H, N · M, S + N · T).
    """
    if _alone(texts):
        return x
    _, heads, asking, total = ops.shape(x)
    x = ops.transpose(ops.reshape(x, (-1, texts, heads, asking, total)), (0, 2, 1, 3, 4))
    number = ops.arange(texts)
    apart = ops.cast(number[:, None] != number, x.dtype) * other  # (N, N)
    own = x[..., total - new :][..., None, :] + apart[:, None, :, None]  # (P, H, N, M, N, T)
    before = ops.reshape(x[..., : total - new], (-1, heads, texts * asking, total - new))
    own = ops.reshape(own, (-1, heads, texts * asking, texts * new))
    return ops.concatenate([before, own], axis=3)


def _alone(texts: Any) -> bool:
    """Whether it is known that each row has one text."""
    return isinstance(texts, int) and texts == 1
