"""A text for each row: what was written for the most similar training row, or the row's beginning.

The first is a translation memory, which knows the words of the other language; the second is the
lead, a summary that is hard to beat in news (Nallapati et al. 2017, arXiv 1611.04230).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from models.answers.text import Text, texts_of
from models.evaluation.ngram_features import Grams
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival, most_frequent
from models.served.words import word_spans

NAME = "nearest text or beginning"
MAJORITY = "most frequent text"
_AT_ONCE = 200  # rows compared with all training rows in one product


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Index the training rows by their words; choose on the dev rows, the nearest without any."""
    grams = Grams("words", markings, seen=0)
    known = grams.fit(train.columns).T.tocsr()
    written = [texts_of(answer)[0] for answer in train.answers]
    length = max(1, int(np.median([len(word_spans(text)) for text in written])))

    def nearest(rows: RawRows) -> list[str]:
        found: list[str] = []
        for start in range(0, len(rows), _AT_ONCE):
            some = rows.only(range(start, min(start + _AT_ONCE, len(rows))))
            likeness = grams.of(some.columns) @ known
            found += [written[row] for row in np.asarray(likeness.argmax(axis=1)).ravel()]
        return found

    def beginning(rows: RawRows) -> list[str]:
        return [_first_words(text, length) for text in rows.columns[0]]

    ways: dict[str, Callable[[RawRows], list[str]]] = {"nearest": nearest, "beginning": beginning}

    def said(way: str, rows: RawRows) -> list[str]:
        return [json.dumps([text], ensure_ascii=False) for text in ways[way](rows)]

    chosen, score = "nearest", None
    if dev is not None:
        tried = {way: scores(Text(), dev.answers, said(way, dev), [metric])[metric] for way in ways}
        chosen, score = max(tried, key=lambda way: tried[way]), max(tried.values())
    return Rival(
        lambda rows: said(chosen, rows),
        json.dumps([most_frequent(written)], ensure_ascii=False),
        {"way": chosen, "words": length, "score": score},
    )


def _first_words(text: str, number: int) -> str:
    places = word_spans(text)
    return text[: places[min(number, len(places)) - 1][1]] if len(places) else ""
