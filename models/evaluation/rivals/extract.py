"""A part of each passage: the words next to most of the question's rare words.

Reference:
    The sliding window of Richardson et al. 2013, "MCTest", 4.1, as a baseline of SQuAD by
    Rajpurkar et al. 2016, arXiv 1606.05250, 5.1.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from models.answers.extract import Extract
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival
from models.served.words import word_spans

NAME = "sliding window"
MAJORITY = "no answer"
NEAR = 8  # words on each side of an answer in which the question's words count, less and less
QUANTILES = 20  # borders tried for the score below which there is no answer


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn how rare words are, how long answers, and on the dev rows when there is none."""
    passages = [set(_words(text)) for text in dict.fromkeys(train.columns[-1])]
    counts = Counter(word for words in passages for word in words)
    rare = {word: math.log((1 + len(passages)) / count) for word, count in counts.items()}
    unknown = math.log(1 + len(passages))
    given = [json.loads(answer) for answer in train.answers]
    lengths = [len(_words(answer[0][1])) for answer in given if answer]
    length = max(1, int(np.median(lengths))) if lengths else 1
    may_be_nothing = any(not answer for answer in given)

    def best(question: str, passage: str) -> tuple[float, str]:
        """Its score and the answer."""
        asked, words = set(_words(question)), _words(passage)
        if not words:
            return 0.0, "[]"
        places = word_spans(passage).tolist()
        value = np.array([rare.get(word, unknown) if word in asked else 0.0 for word in words])
        nearness = 1 - np.abs(np.arange(-NEAR, NEAR + 1)) / (NEAR + 1)
        near = np.convolve(value, nearness)[NEAR : NEAR + len(words)]
        sums = np.concatenate([[0.0], np.cumsum(near - 2 * value)])  # asked is not the answer
        starts = np.arange(max(1, len(words) - length + 1))
        ends = np.minimum(starts + length, len(words))
        scored = sums[ends] - sums[starts]
        at = int(scored.argmax())
        start, end = places[starts[at]][0], places[ends[at] - 1][1]
        return float(scored[at]), json.dumps([[start, passage[start:end]]], ensure_ascii=False)

    def read(rows: RawRows) -> list[tuple[float, str]]:
        return [best(*row) for row in zip(*rows.columns[-2:], strict=True)]

    def said(border: float, found: Sequence[tuple[float, str]]) -> list[str]:
        return [part if score >= border or not may_be_nothing else "[]" for score, part in found]

    # It learns so little of the training rows that they can choose the border, too.
    chosen_on = dev or train
    found = read(chosen_on)
    borders = [0.0]
    if may_be_nothing:
        reached = np.array([score for score, _ in found])
        steps = np.quantile(reached, np.linspace(0, 1, QUANTILES))
        borders += [*steps.tolist(), float(reached.max()) + 1.0]
    tried = [
        scores(Extract(), chosen_on.answers, said(b, found), [metric])[metric] for b in borders
    ]
    border, score = borders[int(np.argmax(tried))], max(tried) if dev is not None else None
    return Rival(lambda rows: said(border, read(rows)), "[]", {"border": border, "score": score})


def _words(text: str) -> list[str]:
    return [text[start:end].lower() for start, end in word_spans(text).tolist()]
