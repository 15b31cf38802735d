"""Intrinsic tests of word vectors: similarity of pairs, and analogies.

Similarity: lines ``word⇥word⇥score``; the measure is Spearman's correlation of the scores with
cosines. Analogies: lines of four words under ``: section`` lines; a is to b as c is to the word
whose vector is most similar to b - a + c, with the three words of the question left out.

Reference:
    Finkelstein et al. 2002 (WordSim-353); Mikolov et al. 2013, arXiv 1301.3781, section 4.1.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models.protocols import Tokenizer
from models.vectors.lookup import WordTable, unit, word_table

BLOCK = 512  # questions answered at a time


@dataclass(frozen=True)
class Relations:
    """Result of a test.

    Attributes:
        score: Spearman's correlation, or the share of analogies answered right; NaN if nothing was
            asked.
        asked: Number of lines whose words all have vectors.
        skipped: Number of the other lines.
    """

    score: float
    asked: int
    skipped: int


def similarity(path: Path, table: WordTable) -> Relations:
    """Compare cosines with people's scores.

    Args:
        path: A file of pairs and scores; lines that begin with # are comments.
        table: The words.

    Raises:
        ContractViolation: A line is not two words and a number.
    """
    from scipy.stats import spearmanr

    vectors = unit(table.vectors)
    scores, cosines, skipped = [], [], 0
    for where, line in _lines(path):
        parts = line.split("\t")
        try:
            first, second, score = parts[0], parts[1], float(parts[2])
        except (IndexError, ValueError) as error:
            raise ContractViolation(
                f"{where}: expected two words and a score, separated by tabs"
            ) from error
        if not math.isfinite(score):
            raise ContractViolation(
                f"{where}: expected a finite score, got {parts[2].strip()}; leave the line out"
            )
        found = _rows((first, second), table)
        if found is None:
            skipped += 1
            continue
        scores.append(score)
        cosines.append(float(vectors[found[0]] @ vectors[found[1]]))
    if len(scores) < 2:
        return Relations(float("nan"), len(scores), skipped)
    agreement: Any = spearmanr(scores, cosines)  # whose fields SciPy's stubs do not know
    return Relations(float(agreement.statistic), len(scores), skipped)


def analogies(path: Path, table: WordTable) -> dict[str, Relations]:
    """Answer analogies, by section.

    Args:
        path: A file of four words a line; ``: name`` begins a section.
        table: The words, of which those of the vocabulary are answers.

    Raises:
        ContractViolation: A line is not four words.
    """
    vectors = unit(table.vectors)
    known = set(table.ids.values())
    answers = np.array(sorted(known))
    asked: dict[str, list[tuple[int, ...]]] = {}
    skipped: dict[str, int] = {}
    section = ""
    for where, line in _lines(path):
        if line.startswith(":"):
            section = line[1:].strip()
            continue
        words = line.split()
        if len(words) != 4:
            raise ContractViolation(f"{where}: expected four words, got {len(words)}")
        found = _rows(words, table)
        asked.setdefault(section, [])
        if found is None or found[3] not in known:
            skipped[section] = skipped.get(section, 0) + 1
        else:
            asked[section].append(found)
    result = {}
    for name, questions in asked.items():
        right = sum(
            _right(np.array(questions[at : at + BLOCK]), vectors, answers)
            for at in range(0, len(questions), BLOCK)
        )
        score = right / len(questions) if questions else float("nan")
        result[name] = Relations(score, len(questions), skipped.get(name, 0))
    return result


def stage_relations(
    folder: Path, tokenizer: Tokenizer, path: Path, folders: tuple[Path, ...] = ()
) -> tuple[str, Relations, dict[str, Relations]]:
    """The test that a file has, of the word vectors of a finished stage; see `relations`.

    Args:
        folder: The stage's folder, of a family with one vector a word. With rows of n-grams, words
            that are not in the vocabulary have vectors, too; they are no answers.
        tokenizer: The recipe's tokenizer; special tokens are no words.
        path: The file.
        folders: Project folders, searched first.
    """
    words = {word for _, line in _lines(path) for word in line.split()}
    return relations(path, word_table(folder, tokenizer, sorted(words), folders))


def relations(path: Path, table: WordTable) -> tuple[str, Relations, dict[str, Relations]]:
    """The test that a file has: analogies if it begins with ``:``, else similarity.

    Args:
        path: The file, perhaps compressed (``.gz``).
        table: The words.

    Returns:
        ``accuracy``, of all analogies, and the sections; or ``spearman``, and none.

    Raises:
        ContractViolation: A line is not what the test has.
    """
    first = next((line for _, line in _lines(path)), "")
    if not first.startswith(":"):
        return "spearman", similarity(path, table), {}
    sections = analogies(path, table)
    asked = sum(each.asked for each in sections.values())
    right = sum(each.score * each.asked for each in sections.values() if each.asked)
    skipped = sum(each.skipped for each in sections.values())
    whole = Relations(right / asked if asked else float("nan"), asked, skipped)
    return "accuracy", whole, sections


def _right(questions: np.ndarray, vectors: np.ndarray, answers: np.ndarray) -> int:
    """How many (n, 4) questions are answered right."""
    a, b, c, wanted = questions.T
    scores = (vectors[b] - vectors[a] + vectors[c]) @ vectors[answers].T  # (n, answers)
    rows = np.arange(len(questions))
    for given in (a, b, c):
        own = np.isin(given, answers)
        scores[rows[own], np.searchsorted(answers, given[own])] = -np.inf
    return int((answers[scores.argmax(axis=1)] == wanted).sum())


def _rows(words: Iterable[str], table: WordTable) -> tuple[int, ...] | None:
    """The rows of words; None if one has none."""
    found = [table.row(word) for word in words]
    return None if None in found else tuple(i for i in found if i is not None)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    yield f"{path}:{number}", line.rstrip("\r\n")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ContractViolation(
            f"{path}: after line {number}: expected UTF-8, compressed and whole where it ends in"
            " .gz; get the file again"
        ) from error
