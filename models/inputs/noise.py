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


def budget(may_choose: np.ndarray, rate: float, slots: int, up: bool = False) -> np.ndarray:
    """How many tokens to choose in each row: the share of its candidates, rounded, or rounded up.

    One at least where there is a candidate (a short row must teach something), `slots` at most.

    Returns:
        (B,) int64.
    """
    available = may_choose.sum(axis=1)
    share = np.round(available * rate, 6)
    wanted = np.clip((np.ceil if up else np.rint)(share).astype(np.int64), 1, slots)
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


SPAN_LENGTHS = 0.2 * 0.8 ** np.arange(10)  # SpanBERT: geometric over 1-10 words …
SPAN_LENGTHS /= SPAN_LENGTHS.sum()  # … renormalised, not clipped: a mean of 3.8 words
NGRAM_LENGTHS = np.array([6, 3, 2]) / 11  # ALBERT: p ∝ 1/n over 1-3 words


def choose_ngrams(
    may_choose: np.ndarray,
    unit_starts: np.ndarray,
    num_chosen: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Runs of one to three whole words, as long as they fit in the row's budget of tokens.

    A first word is drawn uniformly, then how many of the words up to the end of the text follow it.
    A run that is too long for the budget has fewer words; one that holds a chosen word is passed
    over.

    Returns:
        (B, T) bool with at most `num_chosen` True a row.

    Reference:
        Lan et al. 2020, arXiv 1909.11942, 4.1 (Eq. 1: n up to 3); ``create_pretraining_data.py``
        of google-research/albert.
    """
    num_rows, length = may_choose.shape
    rows, places = np.arange(num_rows), np.arange(length)
    words = _Words(may_choose, unit_starts, len(NGRAM_LENGTHS))
    anchors = may_choose & (words.first[rows[:, None], np.maximum(words.unit, 0)] == places)
    order = np.argsort(np.where(anchors, rng.random(may_choose.shape), 2.0), axis=1)
    chance = rng.random(may_choose.shape)
    shares = NGRAM_LENGTHS.cumsum()
    counts = np.arange(len(shares))
    left = num_chosen.astype(np.int64).copy()
    chosen = np.zeros((num_rows, length), bool)
    for rank in range(int(anchors.sum(axis=1).max(initial=0))):
        start = order[:, rank]
        usable = anchors[rows, start] & (left > 0)
        stop = words.ends(start, counts)  # (B, K)
        there = stop <= words.run_end[rows, start][:, None]
        total = shares[np.maximum(there.sum(axis=1), 1) - 1]
        drawn = (shares <= (chance[:, rank] * total)[:, None]).sum(axis=1)
        fits = there & (counts <= drawn[:, None]) & (stop <= (start + left)[:, None])
        stop = np.where(fits & usable[:, None], stop, start[:, None]).max(axis=1)
        run = (places >= start[:, None]) & (places < stop[:, None])
        run &= ~(run & chosen).any(axis=1, keepdims=True)
        chosen |= run
        left -= run.sum(axis=1)
        if not left.any():
            break
    return chosen


def choose_spans(
    may_choose: np.ndarray,
    unit_starts: np.ndarray,
    num_chosen: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Spans of a geometric number of words, until the row's budget of tokens is used up.

    A token that is not yet chosen is drawn uniformly and the span begins at its word; the last
    word may be cut by the budget.

    Returns:
        (B, T) bool with exactly `num_chosen` True a row.

    Differs from the paper's code:
        A span ends where it meets a chosen token instead of running over it. Spans that touch are
        one span to whatever reads them (`runs`), as the code's merging of intervals does.

    Reference:
        Joshi et al. 2020, arXiv 1907.10529, 3.1; ``masking.py`` of facebookresearch/SpanBERT.
    """
    num_rows, length = may_choose.shape
    rows, places = np.arange(num_rows), np.arange(length)
    words = _Words(may_choose, unit_starts, len(SPAN_LENGTHS))
    order = np.argsort(np.where(may_choose, rng.random(may_choose.shape), 2.0), axis=1)
    chance = rng.random(may_choose.shape)
    drawn = 1 + np.searchsorted(SPAN_LENGTHS.cumsum()[:-1], chance, side="right")
    counts = np.arange(len(SPAN_LENGTHS))
    left = num_chosen.astype(np.int64).copy()
    chosen = np.zeros((num_rows, length), bool)
    for rank in range(int(may_choose.sum(axis=1).max(initial=0))):
        anchor = order[:, rank]
        usable = may_choose[rows, anchor] & ~chosen[rows, anchor] & (left > 0)
        start = words.first[rows, np.where(usable, words.unit[rows, anchor], 0)]
        taken = (chosen & (places >= start[:, None])).argmax(axis=1)
        limit = np.minimum(words.run_end[rows, anchor], np.where(taken > start, taken, length))
        stop = words.ends(anchor, counts)
        fits = (counts < drawn[:, rank, None]) & (stop <= limit[:, None])
        stop = np.where(fits, stop, start[:, None]).max(axis=1)
        stop = np.where(usable, np.minimum(stop, start + left), start)
        chosen |= (places >= start[:, None]) & (places < stop[:, None])
        left -= stop - start
        if not left.any():
            break
    return chosen


class _Words:
    """Where the units of rows begin and end.

    Attributes:
        unit: As of `units`.
        first: (B, T) first place of each unit, T behind the last one.
        run_end: (B, T) end of the text that a place is in: behind a special token begins another.
    """

    def __init__(self, may_choose: np.ndarray, unit_starts: np.ndarray, most: int):
        num_rows, length = may_choose.shape
        self.unit = units(may_choose, unit_starts)
        self.first = np.full((num_rows, length), length)
        self._end = np.full((num_rows, length + most), length + 1)
        row, place = np.nonzero(may_choose)
        np.minimum.at(self.first, (row, self.unit[row, place]), place)
        self._end[row, self.unit[row, place]] = place + 1  # the last one written is the furthest
        closed = np.where(may_choose, length, np.arange(length)[None])
        self.run_end = np.minimum.accumulate(closed[:, ::-1], axis=1)[:, ::-1]

    def ends(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """(B, K) ends of the unit at each row's place and of the next ones."""
        rows = np.arange(len(places))
        number = np.maximum(self.unit[rows, places], 0)
        return self._end[rows[:, None], number[:, None] + counts]


def runs(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last position of the run of chosen tokens that each one belongs to.

    Args:
        chosen: (B, T) bool.

    Returns:
        Two (B, T) int64; meaningless where nothing is chosen.
    """
    places = np.broadcast_to(np.arange(chosen.shape[1]), chosen.shape)
    before, behind = np.zeros_like(chosen), np.zeros_like(chosen)
    before[:, 1:], behind[:, :-1] = chosen[:, :-1], chosen[:, 1:]
    first = np.maximum.accumulate(np.where(chosen & ~before, places, 0), axis=1)
    last = np.where(chosen & ~behind, places, chosen.shape[1])
    return first, np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]


def choose_triples(
    token_ids: np.ndarray,
    may_choose: np.ndarray,
    rate: float,
    num_triples: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Runs of three candidates, uniformly, none overlapping another.

    Three equal tokens cannot be shuffled and are no candidate.

    Args:
        token_ids: (B, T).
        may_choose: (B, T) bool.
        rate: Share of the places where three candidates stand together, 0-1; one at least.
        num_triples: Most of a row.
        rng: Source of chance.

    Returns:
        (B, T) bool: the first tokens of the chosen triples.
    """
    num_rows, length = token_ids.shape
    possible = np.zeros((num_rows, length), bool)
    a, b, c = (slice(i, length - 2 + i) for i in range(3))
    alike = (token_ids[:, a] == token_ids[:, b]) & (token_ids[:, b] == token_ids[:, c])
    possible[:, a] = may_choose[:, a] & may_choose[:, b] & may_choose[:, c] & ~alike
    left = budget(possible, rate, num_triples)
    order = np.argsort(np.where(possible, rng.random(possible.shape), 2.0), axis=1)
    rows = np.arange(num_rows)
    first = np.zeros((num_rows, length + 4), bool)  # two more on each side, never chosen
    for rank in range(int(possible.sum(axis=1).max(initial=0))):
        place = order[:, rank]
        near = first[rows[:, None], place[:, None] + np.arange(5)].any(axis=1)
        taken = possible[rows, place] & ~near & (left > 0)
        first[rows[taken], place[taken] + 2] = True
        left -= taken
        if not left.any():
            break
    return first[:, 2:-2]


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
    by_run: bool = False,
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
        by_run: Whether all tokens of a run of chosen ones share one fate, as SpanBERT's do.

    Returns:
        (B, T), a new array.
    """
    dice = rng.random(token_ids.shape)
    if by_run:
        dice = np.take_along_axis(dice, runs(chosen)[0], axis=1)
    drawn = replacement_ids[rng.integers(0, len(replacement_ids), token_ids.shape)]
    seen = np.where(chosen & (dice < mask_share), mask_id, token_ids)
    is_random = chosen & (dice >= mask_share) & (dice < mask_share + random_share)
    return np.where(is_random, drawn, seen).astype(token_ids.dtype)


# Every order of three but the one they have.
_ORDERS = np.array([[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])


def shuffle_triples(
    token_ids: np.ndarray, first: np.ndarray, num_triples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples of tokens in another order, in a fixed number of slots a row.

    A triple always looks different afterwards: where two of its tokens are equal and the drawn
    order would show nothing, it is turned by one place instead.

    Args:
        token_ids: (B, T).
        first: (B, T) bool, the first tokens of triples that do not overlap, not of one token.
        num_triples: S / 3.
        rng: Source of chance.

    Returns:
        Positions (B, S) int32, the tokens seen there (B, S) int32, weights (B, S) float32.
    """
    starts = np.argsort(~first, axis=1, kind="stable")[:, :num_triples]
    used = np.take_along_axis(first, starts, axis=1)
    starts = np.where(used, starts, 0)
    positions = starts[:, :, None] + np.arange(3)  # (B, S/3, 3)
    shape = positions.shape
    stood = np.take_along_axis(token_ids, positions.reshape(len(first), -1), axis=1).reshape(shape)
    orders = _ORDERS[rng.integers(0, len(_ORDERS), used.shape)]
    after = np.take_along_axis(stood, orders, axis=2)
    same = (after == stood).all(axis=2, keepdims=True)
    after = np.where(same, np.roll(stood, 1, axis=2), after)
    weights = np.repeat(used, 3, axis=1)
    flat = (len(first), -1)
    return (
        np.where(weights, positions.reshape(flat), 0).astype(np.int32),
        np.where(weights, after.reshape(flat), 0).astype(np.int32),
        weights.astype(np.float32),
    )


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
