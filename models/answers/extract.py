"""Answers that are parts of a passage, scored as SQuAD and CMRC do.

An answer is JSON, ``[[start, "text"], …]``: all reference answers, or the predicted one; ``[]`` is
"no answer". The best reference counts.

Reference:
    ``exact_match`` and ``f1``: Rajpurkar et al. 2016, arXiv 1606.05250, 4.2, and 2018,
    arXiv 1806.03822, by the official script. ``cmrc_exact_match`` and ``cmrc_f1``: Cui et al. 2019,
    arXiv 1810.07366, 4.1, by the official script: characters in place of words, and the longest
    common run in place of the common words.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, ClassVar

import numpy as np

from models.protocols import Column, Metric

# The sums of a row: all rows, then those whose question has an answer, then the others.
_ROWS, _ANSWERED = 0, 5
_SCORES = ("exact_match", "f1", "cmrc_exact_match", "cmrc_f1")


def _share(score: int, of: int) -> Metric:
    def metric(sums: np.ndarray) -> np.ndarray:
        return sums[..., of + 1 + score] / np.maximum(sums[..., of], 1)

    return metric


def _no_answer_accuracy(sums: np.ndarray) -> np.ndarray:
    """Share of the unanswerable questions that get no answer."""
    rows = sums[..., _ROWS] - sums[..., _ANSWERED]
    right = sums[..., _ROWS + 1] - sums[..., _ANSWERED + 1]
    return right / np.maximum(rows, 1)


class Extract:
    """A kind of answer: a part of the passage, or none.

    Attributes:
        metrics: {name: metric of (..., 10) sums: rows and the four scores, of all rows and of those
            whose question has an answer}.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        **{name: _share(number, _ROWS) for number, name in enumerate(_SCORES)},
        "has_answer_exact_match": _share(0, _ANSWERED),
        "has_answer_f1": _share(1, _ANSWERED),
        "no_answer_accuracy": _no_answer_accuracy,
    }
    usual: ClassVar[tuple[str, ...]] = ("exact_match", "f1")
    is_class: ClassVar[bool] = False
    is_served: ClassVar[bool] = True

    @staticmethod
    def names(answers: Iterable[str]) -> tuple[str, ...]:
        """``no_answer`` if some question has none."""
        return ("no_answer",) if any(answer == "[]" for answer in answers) else ()

    @staticmethod
    def statistics(true: Column, answers: Sequence[Column]) -> list[Any]:
        """Each row's scores; again if its question has an answer.

        Args:
            true: (rows,) reference answers.
            answers: One (rows,) column of predicted answers per model.

        Returns:
            One sparse (rows, 10) matrix per model.
        """
        from scipy.sparse import csr_array

        right = [_texts(answer) for answer in true]
        found = []
        for column in answers:
            table = np.zeros((len(right), 10))
            for row, (references, answer) in enumerate(zip(right, column, strict=True)):
                said = (_texts(answer) or [""])[0]
                scores = [1.0, *_best(said, references)]
                table[row, :_ANSWERED] = scores
                table[row, _ANSWERED:] = scores if references else 0.0
            found.append(csr_array(table))
        return found


def _texts(answer: str) -> list[str]:
    return [text for _, text in json.loads(answer or "[]")]


def _best(said: str, references: Sequence[str]) -> list[float]:
    """The four scores of an answer against the reference it fits best."""
    if not references or not said:
        return [float(not references and not said)] * 4
    scores: tuple[Callable[[str, str], float], ...] = (_exact, _f1, _cmrc_exact, _cmrc_f1)
    return [max(score(said, reference) for reference in references) for score in scores]


def _normal(text: str) -> str:
    """Lower case, without punctuation, English articles and repeated blanks (SQuAD)."""
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def _exact(said: str, reference: str) -> float:
    return float(_normal(said) == _normal(reference))


def _f1(said: str, reference: str) -> float:
    """F1 of the words in common."""
    words, right = _normal(said).split(), _normal(reference).split()
    if not words or not right:
        return float(words == right)
    both = sum((Counter(words) & Counter(right)).values())
    return 2 * both / (len(words) + len(right))


_CMRC_SIGNS = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")


def _unsigned(text: str) -> str:
    """Lower case, without the signs that CMRC ignores."""
    return text.lower().strip().translate(_CMRC_SIGNS)


def _cmrc_exact(said: str, reference: str) -> float:
    return float(_unsigned(said) == _unsigned(reference))


def _segments(text: str) -> list[str]:
    """Chinese characters; other text by words and signs, where CMRC's script has NLTK's rules."""
    return re.findall(r"[\u4e00-\u9fa5]|[^\W\u4e00-\u9fa5]+|[^\w\s]", _unsigned(text))


def _cmrc_f1(said: str, reference: str) -> float:
    """F1 of the longest common run of characters."""
    left, right = _segments(said), _segments(reference)
    if not left or not right:
        return float(left == right)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return 2 * matcher.find_longest_match().size / (len(left) + len(right))
