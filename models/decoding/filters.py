"""What the settings of generation do to the log probabilities of the next token."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from models.decoding.settings import Generation

NEVER = -np.inf
GROUP = 32  # values, of which only the highest is compared at first


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """(…, V) logits → (…, V) log probabilities in the same precision; sums are float64."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    total = np.exp(logits).sum(axis=-1, keepdims=True, dtype=np.float64)
    return logits - np.log(total).astype(logits.dtype)


def likeliest(log_p: np.ndarray, count: int) -> np.ndarray:
    """Places of the `count` highest of (n,) values, the highest first; of equals the first."""
    # At least `count` values are no lower than the `count`-th of the groups' highest.
    groups = len(log_p) // GROUP
    highest = log_p[: groups * GROUP].reshape(GROUP, groups).max(axis=0)
    if count <= groups:
        least = np.partition(highest, groups - count)[groups - count]
        places = np.flatnonzero(log_p >= least)
    else:
        places = np.arange(len(log_p))
    return places[np.argsort(-log_p[places], kind="stable")[:count]]


def allowed(
    log_p: np.ndarray,
    tokens: Sequence[int],
    new: int,
    stops: Collection[int],
    settings: Generation,
) -> np.ndarray:
    """Log probabilities without the tokens that may not follow.

    Args:
        log_p: (V,) of the next token.
        tokens: Prompt and new tokens so far.
        new: How many of them are new.
        stops: Ids that end a text.
        settings: Those of generation.

    Returns:
        (V,), `NEVER` where a stop would come too early or an n-gram would come again. Others keep
        their log probability: what is left is not scaled to sum to 1.
    """
    banned = list(stops) if new < settings.min_new_tokens else []
    banned += repeats(tokens, settings.no_repeat_ngram)
    if not banned:
        return log_p
    log_p = log_p.copy()
    log_p[banned] = NEVER
    return log_p


def repeats(tokens: Sequence[int], n: int) -> list[int]:
    """The tokens that would repeat an n-gram of `tokens`; none for n = 0."""
    if n == 0 or len(tokens) < n:
        return []
    last = tuple(tokens[len(tokens) - n + 1 :])
    return [
        tokens[i + n - 1]
        for i in range(len(tokens) - n + 1)
        if tuple(tokens[i : i + n - 1]) == last
    ]


def drawn_from(log_p: np.ndarray, settings: Generation) -> np.ndarray:
    """The distribution that a token is drawn from.

    Args:
        log_p: (V,) log probabilities, up to a constant.
        settings: Temperature, then top-k, then nucleus.

    Returns:
        (V,) probabilities with sum 1.
    """
    scaled = np.asarray(log_p, np.float64) / settings.temperature
    order = likeliest(scaled, settings.top_k or len(scaled))
    p = np.exp(log_softmax(scaled[order]))
    # The token that reaches top_p is the last one kept.
    count = int(np.searchsorted(np.cumsum(p), settings.top_p - 1e-12)) + 1
    found = np.zeros_like(scaled)
    found[order[:count]] = p[:count] / p[:count].sum()
    return found
