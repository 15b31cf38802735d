"""Noise for pre-training: choosing positions, corrupting the input, building the targets.

Pure functions of arrays and a random generator. BERT's masking, for example, is `choose_tokens`,
`replace` and `slots`.
"""

from __future__ import annotations

import math

import numpy as np

from fourstage.errors import RecipeError


def check_shares(objective: str, rate: float, mask_share: float, random_share: float) -> None:
    """Check the shares of an objective: of what it chooses, and of what becomes of that.

    Raises:
        RecipeError: A share is out of range.
    """
    if not 0.0 < rate < 1.0:
        raise RecipeError(f"objectives.{objective}.rate: expected a number in (0, 1), got {rate}")
    if min(mask_share, random_share) < 0.0 or mask_share + random_share > 1.0:
        raise RecipeError(
            f"objectives.{objective}: mask_share and random_share must not be negative nor exceed 1"
            f" together, got {mask_share} and {random_share}"
        )


# ---------------------------------------------------------------------------- chosen positions


def candidates(
    token_ids: np.ndarray, padding_mask: np.ndarray, special_ids: tuple[int, ...]
) -> np.ndarray:
    """The tokens that may be chosen: all but padding and special tokens.

    Args:
        token_ids: (B, T).
        padding_mask: (B, T), 1 = token, 0 = padding.
        special_ids: Ids that are never chosen.

    Returns:
        (B, T) bool.
    """
    return (padding_mask > 0) & ~np.isin(token_ids, special_ids)


def num_slots(rate: float, length: int) -> int:
    """Slots for predicted positions per row: ⌈rate × T⌉, at least one."""
    return max(1, math.ceil(round(rate * length, 6)))


def budget(may_choose: np.ndarray, rate: float, slots: int, up: bool = False) -> np.ndarray:
    """Number of tokens to choose in each row: rate × candidates, rounded.

    At least one if the row has a candidate, so that short rows count too; at most `slots`.

    Args:
        may_choose: (B, T) bool, the candidates.
        rate: Share of the candidates to choose, 0-1.
        slots: Most tokens per row.
        up: Round up instead of to the nearest number.

    Returns:
        (B,) int64.
    """
    return budget_of(may_choose.sum(axis=1), rate, slots, up)


def budget_of(available: np.ndarray, rate: float, slots: int, up: bool = False) -> np.ndarray:
    """`budget`, by the number of candidates of each row, (B,)."""
    share = np.round(available * rate, 6)
    wanted = np.clip((np.ceil if up else np.rint)(share).astype(np.int64), 1, slots)
    return np.minimum(wanted, available)


def choose_tokens(
    may_choose: np.ndarray, num_chosen: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Choose single tokens, uniformly and without repetition.

    Args:
        may_choose: (B, T) bool, the candidates.
        num_chosen: (B,) number of tokens per row, at most its number of candidates.
        rng: Random generator.

    Returns:
        (B, T) bool with exactly `num_chosen` True per row.
    """
    # Rank the tokens of a row by a random key; the key 2.0 ranks all others behind the candidates.
    keys = np.where(may_choose, rng.random(may_choose.shape), 2.0)
    rank = np.empty(may_choose.shape, np.int64)
    np.put_along_axis(rank, np.argsort(keys, axis=1), np.arange(may_choose.shape[1])[None], axis=1)
    return rank < num_chosen[:, None]


def choose_fragment(
    lengths: np.ndarray, sizes: np.ndarray, width: int, rng: np.random.Generator
) -> np.ndarray:
    """Choose one run of tokens in each row; all starts after the first token are equally likely.

    Args:
        lengths: (B,) tokens of each row, which is padded on the right.
        sizes: (B,) tokens to choose, fewer than the row has.
        width: T.
        rng: Random generator.

    Returns:
        (B, T) bool with exactly `sizes` True per row, and never the first token.

    Reference:
        Song et al. 2019, arXiv 1905.02450, 3.1.
    """
    starts = 1 + np.floor(rng.random(len(lengths)) * (lengths - sizes)).astype(np.int64)
    places = np.arange(width)
    return (places >= starts[:, None]) & (places < (starts + sizes)[:, None])


def units(may_choose: np.ndarray, unit_starts: np.ndarray) -> np.ndarray:
    """Number of the unit (word, phrase, entity) that each candidate belongs to, from 0 per row.

    A unit runs from its start to the next start or to a token that may not be chosen. The first
    candidate of a row, and one after a special token, always starts a unit:

        tokens       [CLS] ##ing the cat ##s [SEP] on
        may_choose     0     1    1   1   1    0   1
        unit_starts    0     0    1   1   0    0   1
        unit          -1     0    1   2   2   -1   3

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
    """Choose whole units in random order, up to `num_chosen` tokens per row.

    A unit that does not fit in the rest of the budget is skipped, as in BERT's whole-word masking.
    In a row whose units are all longer than the budget, nothing is chosen.

    Args:
        may_choose: (B, T) bool, the candidates.
        unit_starts: (B, T), non-zero where a unit starts.
        num_chosen: (B,) budget of tokens per row.
        rng: Random generator.

    Returns:
        (B, T) bool with at most `num_chosen` True per row.
    """
    num_rows, length = may_choose.shape
    unit = units(may_choose, unit_starts)
    rows = np.arange(num_rows)
    sizes = np.zeros((num_rows, length + 1), np.int64)
    np.add.at(sizes, (np.repeat(rows, length), unit.ravel()), 1)  # unit -1: the last column
    sizes = sizes[:, :length]
    # All rows at once: step `rank` tries the unit at that place of each row's random order.
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
    return np.take_along_axis(taken, unit, axis=1)  # unit -1: the last column, always False


SPAN_LENGTHS = 0.2 * 0.8 ** np.arange(10)  # SpanBERT: geometric over 1-10 words …
SPAN_LENGTHS /= SPAN_LENGTHS.sum()  # … renormalised, not clipped: a mean of 3.8 words
NGRAM_LENGTHS = np.array([6, 3, 2]) / 11  # ALBERT: p ∝ 1/n over n = 1, 2, 3 words


def choose_ngrams(
    may_choose: np.ndarray,
    unit_starts: np.ndarray,
    num_chosen: np.ndarray,
    rng: np.random.Generator,
    lengths: np.ndarray = NGRAM_LENGTHS,
) -> np.ndarray:
    """Choose runs of one to three whole words, up to `num_chosen` tokens per row.

    The first word of a run is drawn uniformly, then the number of words. A run that exceeds the
    budget or the text loses words at its end; a run with a word that is already chosen is skipped.

    Example: the words are a | b1 b2 | c. The draw is b with two words, so the run is b1 b2 c. A
    budget of 2 cuts it to b1 b2; with a budget of 1, it is skipped.

    Args:
        may_choose: (B, T) bool, the candidates.
        unit_starts: (B, T), non-zero where a word starts.
        num_chosen: (B,) budget of tokens per row.
        rng: Random generator.
        lengths: Probabilities of 1, 2, 3 … words.

    Returns:
        (B, T) bool with at most `num_chosen` True per row.

    Reference:
        Lan et al. 2020, arXiv 1909.11942, 4.1 (Eq. 1: n up to 3); ``create_pretraining_data.py``
        of google-research/albert.
    """
    num_rows, length = may_choose.shape
    rows, places = np.arange(num_rows), np.arange(length)
    words = _Words(may_choose, unit_starts, len(lengths))
    anchors = may_choose & (words.first[rows[:, None], np.maximum(words.unit, 0)] == places)
    # All rows at once: step `rank` tries the word at that place of each row's random order.
    order = np.argsort(np.where(anchors, rng.random(may_choose.shape), 2.0), axis=1)
    chance = rng.random(may_choose.shape)
    shares = lengths.cumsum()
    counts = np.arange(len(shares))
    left = num_chosen.astype(np.int64).copy()
    chosen = np.zeros((num_rows, length), bool)
    for rank in range(int(anchors.sum(axis=1).max(initial=0))):
        start = order[:, rank]
        usable = anchors[rows, start] & (left > 0)
        stop = words.ends(start, counts)  # (B, K): ends of runs of 1, 2, 3 words
        there = stop <= words.run_end[rows, start][:, None]
        # Draw among the lengths that the text has room for; `drawn` is the length minus one.
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
    """Choose spans of a geometric number of words, exactly `num_chosen` tokens per row.

    A token that is not yet chosen is drawn uniformly; the span starts at the first token of its
    word. The budget may cut the last span within a word.

    Example: the words are a | b1 b2 | c. The draw is b2 with two words, so the span is b1 b2 c. A
    budget of 1 cuts it to b1.

    Args:
        may_choose: (B, T) bool, the candidates.
        unit_starts: (B, T), non-zero where a word starts.
        num_chosen: (B,) budget of tokens per row.
        rng: Random generator.

    Returns:
        (B, T) bool with exactly `num_chosen` True per row.

    Differs from the paper's code:
        A span ends before a chosen token instead of running over it. Adjacent spans count as one
        (`runs`); the paper's code merges them, too.

    Reference:
        Joshi et al. 2020, arXiv 1907.10529, 3.1; ``masking.py`` of facebookresearch/SpanBERT.
    """
    num_rows, length = may_choose.shape
    rows, places = np.arange(num_rows), np.arange(length)
    words = _Words(may_choose, unit_starts, len(SPAN_LENGTHS))
    # All rows at once: step `rank` tries the token at that place of each row's random order.
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
        # `taken`: the next chosen position after the start, or 0 if there is none.
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


def choose_spaced_spans(
    may_choose: np.ndarray,
    num_chosen: np.ndarray,
    rng: np.random.Generator,
    *,
    longest: int = 5,
    spacing: int = 6,
) -> np.ndarray:
    """Choose spans of tokens with context around each, exactly `num_chosen` tokens per row.

    From the start of a row on, a span of n tokens is drawn with p ∝ 1/n, and `spacing` times as
    many tokens of context beside it, divided by chance between its left and its right. What of the
    budget is left at the row's end is filled with single tokens drawn uniformly. Of a span, tokens
    that may not be chosen are left out.

        a b c d e f g h i j k l m n     n = 2: 12 tokens of context, 5 of them before
        . . . . . x x . . . . . . .

    Args:
        may_choose: (B, T) bool, the candidates.
        num_chosen: (B,) budget of tokens per row, at most its number of candidates.
        rng: Random generator.
        longest: Tokens of the longest span.
        spacing: Tokens of context for each token of a span.

    Returns:
        (B, T) bool with exactly `num_chosen` True per row.

    Differs from the authors' code:
        A span is of tokens, as in the paper; there it is of whole words.

    Reference:
        Yang et al. 2019, arXiv 1906.08237, A.4; ``data_utils.py`` of zihangdai/xlnet
        (``mask_alpha`` 6, ``mask_beta`` 1).
    """
    num_rows, length = may_choose.shape
    shares = 1.0 / np.arange(1, longest + 1)
    limits = np.cumsum(shares / shares.sum())[:-1]
    drawn = 1 + np.searchsorted(limits, rng.random((num_rows, length)), side="right")
    chance = rng.random((num_rows, length))
    single = rng.random((num_rows, length))
    chosen = np.zeros((num_rows, length), bool)
    for row in range(num_rows):
        left, at = int(num_chosen[row]), 0
        for size, share in zip(drawn[row].tolist(), chance[row].tolist(), strict=True):
            size = min(size, left)
            before = int(share * size * spacing)
            start = at + before
            at = start + size + size * spacing - before
            if not size or start + size > length:
                break
            chosen[row, start : start + size] = may_choose[row, start : start + size]
            left -= int(chosen[row, start : start + size].sum())
        rest = np.flatnonzero(may_choose[row] & ~chosen[row])
        chosen[row, rest[np.argsort(single[row, rest], kind="stable")[:left]]] = True
    return chosen


class _Words:
    """Starts and ends of the units of each row. Ends are exclusive.

    Attributes:
        unit: (B, T) unit of each position, -1 for none (`units`).
        first: (B, T) first position of unit u at column u; T for units that do not exist.
        run_end: (B, T) end of the run of candidates that a position is in.

    For the row [CLS] a b1 b2 [SEP] c:

        unit     -1 0 1 1 -1 2
        first     1 2 5 6  6 6
        run_end   0 4 4 4  4 6
    """

    def __init__(self, may_choose: np.ndarray, unit_starts: np.ndarray, most: int):
        num_rows, length = may_choose.shape
        self.unit = units(may_choose, unit_starts)
        self.first = np.full((num_rows, length), length)
        self._end = np.full((num_rows, length + most), length + 1)
        row, place = np.nonzero(may_choose)
        np.minimum.at(self.first, (row, self.unit[row, place]), place)
        self._end[row, self.unit[row, place]] = place + 1  # later writes win: a unit's last token
        closed = np.where(may_choose, length, np.arange(length)[None])
        self.run_end = np.minimum.accumulate(closed[:, ::-1], axis=1)[:, ::-1]

    def ends(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Ends of the unit at each row's position, and of the following units.

        Args:
            places: (B,) one position per row.
            counts: (K,) how many units further; 0 is the unit itself.

        Returns:
            (B, K); T + 1 for units that do not exist.
        """
        rows = np.arange(len(places))
        number = np.maximum(self.unit[rows, places], 0)
        return self._end[rows[:, None], number[:, None] + counts]


def runs(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last position of the run of chosen tokens that each chosen token belongs to.

        chosen  0 1 1 0 1
        first   . 1 1 . 4
        last    . 2 2 . 4

    Args:
        chosen: (B, T) bool.

    Returns:
        Two (B, T) int64 arrays, undefined at positions that are not chosen.
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
    """Choose triples of consecutive candidates, uniformly and without overlap.

    Three equal tokens are never chosen: shuffling would not change them.

    Args:
        token_ids: (B, T).
        may_choose: (B, T) bool, the candidates.
        rate: Triples per position where one can start, 0-1; at least one triple per row.
        num_triples: Most triples per row.
        rng: Random generator.

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
    # Position p is column p + 2. Triples that start at p - 2 … p + 2, columns p … p + 4, overlap.
    first = np.zeros((num_rows, length + 4), bool)
    for rank in range(int(possible.sum(axis=1).max(initial=0))):
        place = order[:, rank]
        near = first[rows[:, None], place[:, None] + np.arange(5)].any(axis=1)
        taken = possible[rows, place] & ~near & (left > 0)
        first[rows[taken], place[taken] + 2] = True
        left -= taken
        if not left.any():
            break
    return first[:, 2:-2]


# ---------------------------------------------------------------------------- network input


def ordinary_ids(vocabulary_size: int, special_ids: tuple[int, ...]) -> np.ndarray:
    """Ids for random replacements: the vocabulary without special tokens."""
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
    """Corrupt the chosen tokens: most become [MASK], some a random token, the rest stay.

    Args:
        token_ids: (B, T).
        chosen: (B, T) bool.
        mask_id: Id of [MASK].
        replacement_ids: Ids from which random replacements are drawn uniformly.
        rng: Random generator. It draws for every position, so that a row's noise does not depend
            on the choices in other rows.
        mask_share: Share of chosen tokens that become [MASK], 0-1.
        random_share: Share of chosen tokens that become a random token, 0-1.
        by_run: Treat all tokens of a run of chosen tokens alike, as in SpanBERT.

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


# All orders of three tokens except the original one.
_ORDERS = np.array([[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])


def shuffle_triples(
    token_ids: np.ndarray, first: np.ndarray, num_triples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shuffle triples of tokens, in a fixed number of slots per row.

    A triple always changes. If two of its tokens are equal and the drawn order leaves it the same,
    it is rotated by one position: a a b → b a a.

    Args:
        token_ids: (B, T).
        first: (B, T) bool, the first tokens of non-overlapping triples, none of three equal tokens.
        num_triples: S / 3, slots for triples per row.
        rng: Random generator.

    Returns:
        Positions (B, S) int32, shuffled tokens (B, S) int32, loss weights (B, S) float32.
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


# ---------------------------------------------------------------------------- targets


def slots(
    token_ids: np.ndarray, chosen: np.ndarray, num_slots: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The chosen positions in order, in a fixed number of slots per row.

    Args:
        token_ids: Token ids before noise, (B, T).
        chosen: (B, T) bool, at most `num_slots` True per row.
        num_slots: M.

    Returns:
        Positions (B, M) int32, original tokens (B, M) int32, loss weights (B, M) float32; all 0 in
        an unused slot.
    """
    # A stable sort by "not chosen" puts the chosen positions first, in order.
    positions = np.argsort(~chosen, axis=1, kind="stable")[:, :num_slots]
    used = np.take_along_axis(chosen, positions, axis=1)
    labels = np.take_along_axis(token_ids, positions, axis=1)
    return (
        np.where(used, positions, 0).astype(np.int32),
        np.where(used, labels, 0).astype(np.int32),
        used.astype(np.float32),
    )
