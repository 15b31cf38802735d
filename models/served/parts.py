"""Parts of passages that answer questions, predicted by a packaged model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from models.served.windows import most_context, windows
from models.served.words import word_spans, words_of

WINDOWS = 64  # read at a time

Window = tuple[np.ndarray, np.ndarray, np.ndarray]  # numbers of words; (words + 1,) logits, twice


def best_part(
    found: Sequence[Window],
    read_in: np.ndarray,
    places: np.ndarray,
    text: str,
    *,
    longest: int,
    threshold: float,
    may_be_nothing: bool,
) -> tuple[list[list[Any]], float, float]:
    """The best part of a passage, or nothing.

    Args:
        found: By window, numbers of words, and the logits of start and end: of "no answer", then of
            each word.
        read_in: (words,) the window in which a part may start with a word.
        places: (words, 2) where the words lie in the passage.
        text: The passage.
        longest: Words of the longest part.
        threshold: Nats by which "no answer" must score higher.
        may_be_nothing: Whether there may be no answer.

    Returns:
        ``[[start, text]]`` or ``[]``; its probability; nats by which "no answer" scores higher.
    """
    best: tuple[float, int, int] | None = None
    nothing, total = np.inf, -np.inf
    for number, (words, starts, ends) in enumerate(found):
        starts, ends = starts.astype(np.float64), ends.astype(np.float64)
        nothing = min(nothing, starts[0] + ends[0])
        scores = starts[1:, None] + ends[None, 1:]  # (words, words): first word, last word
        lengths = np.arange(len(words))[None] - np.arange(len(words))[:, None]
        able = (lengths >= 0) & (lengths < longest)
        scores = np.where(able & (read_in[words] == number)[:, None], scores, -np.inf)
        if not np.isfinite(scores).any():
            continue
        total = np.logaddexp(total, np.logaddexp.reduce(scores, axis=None))
        first, last = np.unravel_index(scores.argmax(), scores.shape)
        if best is None or scores[first, last] > best[0]:
            best = float(scores[first, last]), int(words[first]), int(words[last])
    may_be_nothing = may_be_nothing or best is None
    total = np.logaddexp(total, nothing) if may_be_nothing else total
    if best is None:
        return [], 1.0, 0.0
    score, first_word, last_word = best
    ahead = float(nothing - score)
    if may_be_nothing and ahead > threshold:
        return [], float(np.exp(nothing - total)), ahead
    start, end = int(places[first_word, 0]), int(places[last_word, 1])
    return [[start, text[start:end]]], float(np.exp(score - total)), ahead


def predict_parts(
    pairs: Sequence[tuple[str, str]],
    count: Callable[[Sequence[str]], np.ndarray],
    read: Callable[[Sequence[str], Sequence[Sequence[str]]], Mapping[str, np.ndarray]],
    head: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The part of each passage that answers its question.

    Args:
        pairs: Questions with their passages.
        count: (W,) words or texts → (W,) tokens of each.
        read: (B,) questions, (B, W) words of windows, "" after the last → {name: (B, …)} the head's
            predictions.
        head: What the head's ``served()`` says.

    Returns:
        For each pair ``text``, ``start`` and ``end`` of the part, None if there is no answer;
        ``answer``: the same as JSON, ``[[start, "text"]]`` or ``[]``; ``score``: its probability.
    """
    answers = []
    for question, text in pairs:
        words, places = words_of(text), word_spans(text)
        counts = count([question, *words])
        room = head["length"] - 3 - min(int(counts[0]), (head["length"] - 3) // 2)
        lengths = counts[1:]
        parts = windows(lengths, room, head["stride"])
        known = [start + np.flatnonzero(lengths[start:end]) for start, end in parts]
        found: list[Window] = []
        for begin in range(0, len(known), WINDOWS):
            some = known[begin : begin + WINDOWS]
            width = max(1, *map(len, some))
            table = [[words[n] for n in own] + [""] * (width - len(own)) for own in some]
            predicted = read([question] * len(some), table)
            found += [
                (
                    own,
                    predicted["start_logits"][place][: len(own) + 1],
                    predicted["end_logits"][place][: len(own) + 1],
                )
                for place, own in enumerate(some)
            ]
        best, probability, _ = best_part(
            found,
            most_context(parts, len(places)),
            places,
            text,
            longest=head["longest_answer"],
            threshold=head["no_answer_threshold"],
            may_be_nothing=head["may_be_nothing"],
        )
        start, said = best[0] if best else (0, "")
        answers.append(
            {
                "text": said if best else None,
                "start": start if best else None,
                "end": start + len(said) if best else None,
                "answer": json.dumps(best, ensure_ascii=False),
                "score": probability,
            }
        )
    return answers
