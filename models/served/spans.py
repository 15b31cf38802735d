"""Spans of texts, predicted by a packaged model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from models.served.tags import likeliest_tags, tagged
from models.served.windows import most_context, windows
from models.served.words import word_spans, words_of

WINDOWS = 64  # read at a time


def predict_spans(
    texts: Sequence[str],
    count: Callable[[Sequence[str]], np.ndarray],
    read: Callable[[Sequence[Sequence[str]]], Mapping[str, np.ndarray]],
    head: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The spans of each text.

    Args:
        texts: Any texts.
        count: (W,) words → (W,) tokens of each.
        read: (B, W) words of windows, "" after the last → {name: (B, …)} the head's predictions.
        head: What the head's ``served()`` says.

    Returns:
        For each text ``spans``: dictionaries with ``start``, ``end`` (exclusive), ``type`` and
        ``text``; ``answer``: the same as JSON, ``[[start, end, "type"], …]``; ``score``: the
        probability that all tags are correct.
    """
    if not texts:
        return []
    words = [words_of(text) for text in texts]
    together = [word for own in words for word in own]
    counts = count(together) if together else np.zeros(0, np.int32)
    by_text = np.split(counts, np.cumsum([len(own) for own in words])[:-1])
    parts = [windows(lengths, head["room"], head["stride"]) for lengths in by_text]
    known = [  # text, and the numbers of the words of a window that have tokens
        (number, start + np.flatnonzero(lengths[start:end]))
        for number, (lengths, own) in enumerate(zip(by_text, parts, strict=True))
        for start, end in own
    ]
    found: list[list[tuple[np.ndarray, list[str]]]] = [[] for _ in texts]
    scores = np.zeros(len(texts))
    for begin in range(0, len(known), WINDOWS):
        some = known[begin : begin + WINDOWS]
        width = max(1, *(len(numbers) for _, numbers in some))
        table = [
            [words[text][n] for n in numbers] + [""] * (width - len(numbers))
            for text, numbers in some
        ]
        predicted = read(table)
        for place, (text, numbers) in enumerate(some):
            own = {name: value[place] for name, value in predicted.items()}
            tags, log_probability = likeliest_tags(
                own["tag_logits"][: len(numbers)], own.get("tag_transitions")
            )
            found[text].append((numbers, [head["tags"][tag] for tag in tags.tolist()]))
            scores[text] += log_probability
    answers = []
    for text, own, of_windows, score in zip(texts, found, parts, scores.tolist(), strict=True):
        places = word_spans(text)
        spans = tagged(own, most_context(of_windows, len(places)), places)
        answers.append(
            {
                "spans": [
                    {"start": start, "end": end, "type": kind, "text": text[start:end]}
                    for start, end, kind in spans
                ],
                "answer": json.dumps(spans, ensure_ascii=False),
                "score": float(np.exp(score)),
            }
        )
    return answers
