"""Noise in three groups: where it falls, what the network sees there, what it must predict.

Pure functions of arrays and a generator. A rewrite such as BERT's is a triple of them.
"""

from __future__ import annotations

import math

import numpy as np

# ---------------------------------------------------------------------------- where


def candidates(
    token_ids: np.ndarray, padding_mask: np.ndarray, special_ids: tuple[int, ...]
) -> np.ndarray:
    """Which tokens may be chosen: real ones that are not special.

    Args:
        token_ids: (B, T).
        padding_mask: (B, T), 1 = a real token.
        special_ids: Ids that are never chosen.

    Returns:
        (B, T) bool.
    """
    return (padding_mask > 0) & ~np.isin(token_ids, special_ids)


def num_slots(rate: float, length: int) -> int:
    """Predicted positions a row has room for: ⌈rate × T⌉, one at least."""
    return max(1, math.ceil(round(rate * length, 6)))


def budget(may_choose: np.ndarray, rate: float, slots: int) -> np.ndarray:
    """How many tokens to choose in each row: the rounded share of its candidates.

    One at least where there is a candidate (a short row must teach something), `slots` at most.

    Returns:
        (B,) int64.
    """
    available = may_choose.sum(axis=1)
    wanted = np.clip(np.rint(available * rate).astype(np.int64), 1, slots)
    return np.minimum(wanted, available)


def choose_tokens(
    may_choose: np.ndarray, num_chosen: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Single tokens, uniformly and without repetition.

    Args:
        may_choose: (B, T) bool.
        num_chosen: (B,) how many in each row, not more than it has candidates.
        rng: Source of chance.

    Returns:
        (B, T) bool with exactly `num_chosen` True a row.
    """
    keys = np.where(may_choose, rng.random(may_choose.shape), 2.0)
    rank = np.empty(may_choose.shape, np.int64)
    np.put_along_axis(rank, np.argsort(keys, axis=1), np.arange(may_choose.shape[1])[None], axis=1)
    return rank < num_chosen[:, None]


def units(may_choose: np.ndarray, unit_starts: np.ndarray) -> np.ndarray:
    """Which unit of its row each candidate belongs to.

    A unit is a run of candidates from a start up to the next; a window that begins within a word,
    or a word behind a special token, begins a unit too.

    Returns:
        (B, T) int64, -1 for tokens that may not be chosen.
    """
    before = np.zeros_like(may_choose)
    before[:, 1:] = may_choose[:, :-1]
    starts = may_choose & (unit_starts.astype(bool) | ~before)
    return np.where(may_choose, np.cumsum(starts, axis=1) - 1, -1)


def choose_units(
    may_choose: np.ndarray,
    unit_starts: np.ndarray,
    num_chosen: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Whole units in random order, as long as they fit in the row's budget of tokens.

    A unit that no longer fits is passed over for a shorter one, as in BERT's whole-word masking;
    a row whose every unit is longer than its budget gets none.

    Returns:
        (B, T) bool with at most `num_chosen` True a row.
    """
    num_rows, length = may_choose.shape
    unit = units(may_choose, unit_starts)
    rows = np.arange(num_rows)
    sizes = np.zeros((num_rows, length + 1), np.int64)
    np.add.at(sizes, (np.repeat(rows, length), unit.ravel()), 1)  # -1 counts in the last column
    sizes = sizes[:, :length]
    order = np.argsort(np.where(sizes > 0, rng.random(sizes.shape), 2.0), axis=1)
    left = num_chosen.astype(np.int64).copy()
    taken = np.zeros((num_rows, length + 1), bool)
    for rank in range(int((sizes > 0).sum(axis=1).max(initial=0))):
        candidate = order[:, rank]
        size = sizes[rows, candidate]
        fits = (size > 0) & (size <= left)
        taken[rows[fits], candidate[fits]] = True
        left -= np.where(fits, size, 0)
        if not left.any():
            break
    return np.take_along_axis(taken, unit, axis=1)  # unit -1 reads the last column, never taken


# ---------------------------------------------------------------------------- what is seen


def ordinary_ids(vocabulary_size: int, special_ids: tuple[int, ...]) -> np.ndarray:
    """Every id a random replacement may take: the vocabulary without the special ones."""
    return np.setdiff1d(np.arange(vocabulary_size, dtype=np.int32), special_ids)


def replace(
    token_ids: np.ndarray,
    chosen: np.ndarray,
    mask_id: int,
    replacement_ids: np.ndarray,
    rng: np.random.Generator,
    mask_share: float = 0.8,
    random_share: float = 0.1,
) -> np.ndarray:
    """Chosen tokens as the network sees them: mostly [MASK], some random, the rest unchanged.

    Args:
        token_ids: (B, T).
        chosen: (B, T) bool.
        mask_id: Id of [MASK].
        replacement_ids: Ids a random replacement is drawn from, uniformly.
        rng: Source of chance; drawn from for every position, so a row's noise does not depend on
            what was chosen in another.
        mask_share: Share of chosen tokens that become [MASK], 0-1.
        random_share: Share of chosen tokens that become a random one, 0-1.

    Returns:
        (B, T), a new array.
    """
    dice = rng.random(token_ids.shape)
    drawn = replacement_ids[rng.integers(0, len(replacement_ids), token_ids.shape)]
    seen = np.where(chosen & (dice < mask_share), mask_id, token_ids)
    is_random = chosen & (dice >= mask_share) & (dice < mask_share + random_share)
    return np.where(is_random, drawn, seen).astype(token_ids.dtype)


# ---------------------------------------------------------------------------- what is predicted


def slots(
    token_ids: np.ndarray, chosen: np.ndarray, num_slots: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The chosen positions in order, in a fixed number of slots a row.

    Args:
        token_ids: The clean text, (B, T).
        chosen: (B, T) bool, at most `num_slots` True a row.
        num_slots: M.

    Returns:
        Positions (B, M) int32, the tokens that stand there (B, M) int32, weights (B, M) float32;
        an unused slot holds 0, 0, 0.
    """
    # A stable sort of "not chosen" puts chosen positions first and keeps their order.
    positions = np.argsort(~chosen, axis=1, kind="stable")[:, :num_slots]
    used = np.take_along_axis(chosen, positions, axis=1)
    labels = np.take_along_axis(token_ids, positions, axis=1)
    return (
        np.where(used, positions, 0).astype(np.int32),
        np.where(used, labels, 0).astype(np.int32),
        used.astype(np.float32),
    )
