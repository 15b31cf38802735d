"""Intrinsic tests of word vectors: similarity of pairs, and analogies.

Similarity: lines ``word⇥word⇥score``; the measure is Spearman's correlation of the scores with
cosines. Analogies: lines of four words under ``: section`` lines; a is to b as c is to the word
whose vector is most similar to b - a + c, with the three words of the question left out.

Reference:
    Finkelstein et al. 2002 (WordSim-353); Mikolov et al. 2013, arXiv 1301.3781, section 4.1.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from fourstage.errors import ContractViolation
from models.interchange.vector_files import TABLE
from models.protocols import Tokenizer
from models.stage_format import NETWORK

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


def similarity(path: Path, ids: Mapping[str, int], vectors: np.ndarray) -> Relations:
    """Compare cosines with people's scores.

    Args:
        path: A file of pairs and scores; lines that begin with # are comments.
        ids: {word: its row}.
        vectors: (V, D).

    Raises:
        ContractViolation: A line is not two words and a number.
    """
    from scipy.stats import spearmanr

    unit = unit_vectors(vectors)
    scores, cosines, skipped = [], [], 0
    for where, line in _lines(path):
        parts = line.split("\t")
        try:
            first, second, score = parts[0], parts[1], float(parts[2])
        except (IndexError, ValueError) as error:
            raise ContractViolation(f"{where}: expected word, word and score by tabs") from error
        found = known((first, second), ids)
        if found is None:
            skipped += 1
            continue
        scores.append(score)
        cosines.append(float(unit[found[0]] @ unit[found[1]]))
    if len(scores) < 2:
        return Relations(float("nan"), len(scores), skipped)
    agreement: Any = spearmanr(scores, cosines)  # whose fields SciPy's stubs do not know
    return Relations(float(agreement.statistic), len(scores), skipped)


def analogies(path: Path, ids: Mapping[str, int], vectors: np.ndarray) -> dict[str, Relations]:
    """Answer analogies, by section.

    Args:
        path: A file of four words a line; ``: name`` begins a section.
        ids: {word: its row}; only these rows are answers.
        vectors: (V, D).

    Raises:
        ContractViolation: A line is not four words.
    """
    unit = unit_vectors(vectors)
    answers = np.unique(list(ids.values()))
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
        found = known(words, ids)
        asked.setdefault(section, [])
        if found is None:
            skipped[section] = skipped.get(section, 0) + 1
        else:
            asked[section].append(found)
    result = {}
    for name, questions in asked.items():
        right = sum(
            _right(np.array(questions[at : at + BLOCK]), unit, answers)
            for at in range(0, len(questions), BLOCK)
        )
        score = right / len(questions) if questions else float("nan")
        result[name] = Relations(score, len(questions), skipped.get(name, 0))
    return result


def stage_relations(
    folder: Path, tokenizer: Tokenizer, path: Path
) -> tuple[str, Relations, dict[str, Relations]]:
    """The test that a file has, of the word vectors of a finished stage; see `relations`.

    Args:
        folder: The stage's folder, of a family with one vector a word.
        tokenizer: The recipe's tokenizer; special tokens are no words.
        path: The file.
    """
    return relations(path, *words_of_stage(folder, tokenizer))


def words_of_stage(folder: Path, tokenizer: Tokenizer) -> tuple[dict[str, int], np.ndarray]:
    """The words of a finished stage of a family with one vector a word: rows by word, and (V, D).

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer; special tokens are no words.
    """
    pieces = enumerate(tokenizer.served()["pieces"])
    ids = {piece: number for number, piece in pieces if number not in tokenizer.special_ids}
    return ids, load_file(folder / NETWORK)[TABLE]


def relations(
    path: Path, ids: Mapping[str, int], vectors: np.ndarray
) -> tuple[str, Relations, dict[str, Relations]]:
    """The test that a file has: analogies if it begins with ``:``, else similarity.

    Args:
        path: The file, perhaps compressed (``.gz``).
        ids: {word: its row}.
        vectors: (V, D).

    Returns:
        ``accuracy``, of all analogies, and the sections; or ``spearman``, and none.

    Raises:
        ContractViolation: A line is not what the test has.
    """
    first = next((line for _, line in _lines(path)), "")
    if not first.startswith(":"):
        return "spearman", similarity(path, ids, vectors), {}
    sections = analogies(path, ids, vectors)
    asked = sum(each.asked for each in sections.values())
    right = sum(each.score * each.asked for each in sections.values() if each.asked)
    skipped = sum(each.skipped for each in sections.values())
    whole = Relations(right / asked if asked else float("nan"), asked, skipped)
    return "accuracy", whole, sections


def _right(questions: np.ndarray, unit: np.ndarray, answers: np.ndarray) -> int:
    """How many (n, 4) questions are answered right."""
    a, b, c, wanted = questions.T
    scores = (unit[b] - unit[a] + unit[c]) @ unit[answers].T  # (n, answers)
    rows = np.arange(len(questions))
    for given in (a, b, c):
        scores[rows, np.searchsorted(answers, given)] = -np.inf
    return int((answers[scores.argmax(axis=1)] == wanted).sum())


def known(words: Iterable[str], ids: Mapping[str, int]) -> tuple[int, ...] | None:
    """The rows of words, as written or in lower case; None if one has none."""
    found = [ids.get(word, ids.get(word.lower())) for word in words]
    return None if None in found else tuple(i for i in found if i is not None)


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1, (V, D); those of length 0 stay as they are."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    yield f"{path}:{number}", line.rstrip("\r\n")
    except (UnicodeDecodeError, gzip.BadGzipFile) as error:
        raise ContractViolation(
            f"{path}: after line {number}: expected UTF-8, compressed where it ends in .gz"
        ) from error
