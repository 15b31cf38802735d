"""Tags of words and the spans they stand for, under the schemes IOB2 and BIOES.

words   Angela  Merkel  visited  New    York   .
IOB2    B-PER   I-PER   O        B-LOC  I-LOC  O
BIOES   B-PER   E-PER   O        B-LOC  E-LOC  O      (S-… for a span of one word)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

OUTSIDE = "O"
SCHEMES = {"iob2": "BI", "bioes": "BIES"}  # the prefixes of each

WordSpan = tuple[int, int, str]  # first word, word after the last, type


def tag_names(types: Sequence[str], scheme: str) -> tuple[str, ...]:
    """``O``, then the tags of each type in turn."""
    return (OUTSIDE, *(f"{prefix}-{kind}" for kind in types for prefix in SCHEMES[scheme]))


def allowed(tags: Sequence[str], scheme: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What may follow what.

    Args:
        tags: As `tag_names` gives them.
        scheme: ``iob2`` or ``bioes``.

    Returns:
        (K, K) bool: whether column follows row; (K,) bool: whether a text starts with a tag; (K,)
        bool: whether it ends with one.
    """
    closes = "E" in SCHEMES[scheme]
    inside = np.array([tag[0] in "IE" for tag in tags])
    opened = np.array([closes and tag[0] in "BI" for tag in tags])
    goes_on = np.array([[a != OUTSIDE and a[2:] == b[2:] for b in tags] for a in tags])
    if closes:
        follows = np.where(opened[:, None], inside[None] & goes_on, ~inside[None])
    else:
        follows = ~inside[None] | goes_on
    return follows, ~inside, ~opened


def tags_of(spans: Iterable[WordSpan], num_words: int, scheme: str) -> list[str]:
    """One tag per word; of spans that share a word, the first keeps it."""
    tags = [OUTSIDE] * num_words
    closes = "E" in SCHEMES[scheme]
    for start, end, kind in spans:
        if end <= start or any(tag != OUTSIDE for tag in tags[start:end]):
            continue
        tags[start:end] = [f"I-{kind}"] * (end - start)
        tags[start] = f"B-{kind}"
        if closes:
            tags[end - 1] = f"S-{kind}" if end - start == 1 else f"E-{kind}"
    return tags


def spans_of(tags: Sequence[str]) -> list[WordSpan]:
    """The spans that tags stand for, also of tags that are illegal under their scheme.

    As the CoNLL scorer reads them: a span goes on with ``I-`` or ``E-`` of its type and ends after
    ``E-`` or ``S-``; an ``I-`` or ``E-`` that goes on with nothing starts a span.
    """
    found: list[WordSpan] = []
    start, kind = -1, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        prefix, its = tag[0], tag[2:]
        if start >= 0 and not (prefix in "IE" and its == kind):
            found.append((start, place, kind))
            start = -1
        if tag == OUTSIDE:
            continue
        if start < 0:
            start, kind = place, its
        if prefix in "ES":
            found.append((start, place + 1, kind))
            start = -1
    return found


def best_tags(
    emissions: np.ndarray, pairs: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, float]:
    """The tag sequence of the highest score (Viterbi), and its log-probability.

    Args:
        emissions: (W, G), at least one word.
        pairs: (G, G) transition scores.
        first: (G,) start scores.
        last: (G,) end scores.

    Returns:
        (W,) int64 tags, and a number of at most 0.
    """
    emissions, pairs = emissions.astype(np.float64), pairs.astype(np.float64)
    best = everything = first + emissions[0]
    back = np.zeros(emissions.shape, np.int64)
    for word in range(1, len(emissions)):
        through = best[:, None] + pairs
        back[word] = through.argmax(axis=0)
        best = through.max(axis=0) + emissions[word]
        everything = np.logaddexp.reduce(everything[:, None] + pairs, axis=0) + emissions[word]
    best, everything = best + last, everything + last
    tags = np.empty(len(emissions), np.int64)
    tags[-1] = best.argmax()
    for word in range(len(emissions) - 1, 0, -1):
        tags[word - 1] = back[word, tags[word]]
    return tags, min(float(best.max() - np.logaddexp.reduce(everything)), 0.0)


def likeliest_tags(
    logits: np.ndarray, transitions: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """The tags of a window's words, and their log-probability.

    Args:
        logits: (W, G), of each word.
        transitions: (G + 2, G) of a CRF: from tag to tag, then of the start, then of the end; None
            without a CRF.
    """
    if not len(logits):
        return np.zeros(0, np.int64), 0.0
    if transitions is not None:
        return best_tags(logits, transitions[:-2], transitions[-2], transitions[-1])
    logits = logits.astype(np.float64)
    log_shares = logits - np.logaddexp.reduce(logits, axis=-1)[:, None]
    return logits.argmax(axis=-1), float(log_shares.max(axis=-1).sum())


def tagged(
    found: Sequence[tuple[np.ndarray, Sequence[str]]],
    read_in: np.ndarray,
    places: np.ndarray,
) -> list[list[Any]]:
    """The spans of a text, [start, end, type] in characters.

    A word without tokens has no tag, and a span goes on across it, as in training.

    Args:
        found: By window, numbers of words and their tags.
        read_in: (words,) the window whose tag of a word counts.
        places: (words, 2) where the words lie in the text.
    """
    tags: dict[int, str] = {}
    for number, (words, own) in enumerate(found):
        for word, tag in zip(words.tolist(), own, strict=True):
            if read_in[word] == number:
                tags[word] = tag
    read = sorted(tags)
    return [
        [int(places[read[start], 0]), int(places[read[end - 1], 1]), kind]
        for start, end, kind in spans_of([tags[word] for word in read])
    ]
