"""Spans of each text: the names that were spans in training, wherever they stand again.

Reference:
    The baseline of CoNLL 2003: Tjong Kim Sang and De Meulder 2003, 5.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from models.answers.spans import Spans
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival
from models.served.words import word_spans

NAME = "names of training"
MAJORITY = "no spans"
SHARES = (0.1, 0.3, 0.5, 0.7)  # of its places at which a name must be a span
DEFAULT = 0.5

Words = tuple[str, ...]


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn names and their types; how often a name must be a span is chosen on the dev rows."""
    types: dict[Words, Counter[str]] = defaultdict(Counter)
    for text, answer in zip(train.columns[-1], train.answers, strict=True):
        for start, end, kind in json.loads(answer):
            types[_words(text[start:end])][kind] += 1
    types.pop((), None)
    every = _KnownSpans({name: kinds.most_common(1)[0][0] for name, kinds in types.items()})
    seen = Counter(name for text in train.columns[-1] for *_, name in every.among(_words(text)))

    def said(share: float, rows: RawRows) -> list[str]:
        names = _KnownSpans(
            {
                name: kind
                for name, kind in every.types.items()
                if types[name].total() >= share * seen[name]
            }
        )
        return [json.dumps(names.spans(text)) for text in rows.columns[-1]]

    share, score = DEFAULT, None
    if dev is not None:
        tried = {
            each: scores(Spans(), dev.answers, said(each, dev), [metric])[metric] for each in SHARES
        }
        share = max(tried, key=lambda each: tried[each])
        score = tried[share]
    return Rival(lambda rows: said(share, rows), "[]", {"share": share, "score": score})


class _KnownSpans:
    """Names with their types, found in texts."""

    def __init__(self, types: Mapping[Words, str]):
        self.types = types
        self._lengths: dict[str, set[int]] = defaultdict(set)
        for name in types:
            self._lengths[name[0]].add(len(name))

    def among(self, words: Words) -> Iterator[tuple[int, int, Words]]:
        """Each name: its first word, the word after its last, its words; longer ones first."""
        for start, word in enumerate(words):
            for length in sorted(self._lengths.get(word, ()), reverse=True):
                part = words[start : start + length]
                if len(part) == length and part in self.types:
                    yield start, start + length, part

    def spans(self, text: str) -> list[list[int | str]]:
        """The names of a text from left to right, the longest at each place."""
        places, free = word_spans(text).tolist(), 0
        found: list[list[int | str]] = []
        for start, end, part in self.among(_words(text)):
            if start >= free:
                found.append([places[start][0], places[end - 1][1], self.types[part]])
                free = end
        return found


def _words(text: str) -> Words:
    return tuple(text[start:end] for start, end in word_spans(text).tolist())
