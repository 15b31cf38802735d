"""Vectors by word: those of a finished stage's vocabulary, and fastText's of any other word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

from models.interchange.vector_files import TABLE
from models.protocols import Tokenizer
from models.stage_format import NETWORK, SUBWORDS, head_file


@dataclass(frozen=True)
class WordTable:
    """Words and their vectors.

    Attributes:
        ids: {word: its row} of the vocabulary.
        vectors: (n, D).
        more: {word: its row} of words that are asked about, and are no answers.
    """

    ids: Mapping[str, int]
    vectors: np.ndarray
    more: Mapping[str, int]

    def row(self, word: str) -> int | None:
        """The row of a word as written, else in lower case; None if there is none."""
        return self.ids.get(word, self.ids.get(word.lower(), self.more.get(word)))


def word_table(
    folder: Path, tokenizer: Tokenizer, words: Iterable[str] = (), folders: tuple[Path, ...] = ()
) -> WordTable:
    """The vectors of a finished stage of a family with one vector a word.

    Args:
        folder: The stage's folder. Rows of n-grams in it are those of pre-training; fine-tuning
            does not change them.
        tokenizer: The recipe's tokenizer; special tokens are no words.
        words: Words that are asked about. Those that are not in the vocabulary have the vector of
            their n-grams, if the stage has such rows.
        folders: Project folders, searched first.
    """
    pieces = tokenizer.served()["pieces"]
    special = set(tokenizer.special_ids)
    ids = {piece: number for number, piece in enumerate(pieces) if number not in special}
    table = WordTable(ids, load_file(folder / NETWORK)[TABLE], {})
    if not head_file(folder, SUBWORDS).exists():
        return table
    asked = [word for word in dict.fromkeys(words) if table.row(word) is None]
    found = _of_ngrams(folder, tokenizer, table, asked, folders)
    if not found:
        return table
    more = {word: len(table.vectors) + place for place, word in enumerate(found)}
    return WordTable(ids, np.concatenate([table.vectors, [*found.values()]]), more)


def _of_ngrams(
    folder: Path,
    tokenizer: Tokenizer,
    table: WordTable,
    words: Iterable[str],
    folders: tuple[Path, ...],
) -> dict[str, np.ndarray]:
    """Vectors of words without a row; what is several words, or has no n-grams, has none."""
    from models.catalogue import find
    from models.tokenizers.wordpiece import word_counts
    from models.training.trained_stage import config_of
    from models.vectors.subwords import ROWS, subwords_of

    config = config_of(folder)
    family: Any = find("families", config["family"], folders)
    subwords = subwords_of(family.config_class(**config["network"]), tokenizer.vocabulary_size)
    assert subwords is not None, "rows of n-grams are of a network with buckets"
    own: Any = tokenizer  # of whole words, so it has a case
    found: dict[str, np.ndarray] = {}
    with safe_open(head_file(folder, SUBWORDS), "numpy") as file:
        rows = file.get_slice(ROWS)  # of which a few are read
        for word in words:
            parts = list(word_counts([word], lowercase=own.lowercase))
            row = table.ids.get(parts[0]) if len(parts) == 1 else None
            vector = table.vectors[row] if row is not None else None
            if row is None and len(parts) == 1:
                vector = subwords.unseen(parts[0], rows)
            if vector is not None:
                found[word] = vector
    return found


def nearest(
    table: WordTable, query: np.ndarray, without: Iterable[int], count: int
) -> list[tuple[str, float]]:
    """The words of the vocabulary whose vectors have the highest cosine with a vector.

    Args:
        table: The words.
        query: (D,) a vector of any length.
        without: Rows that are left out.
        count: How many words.

    Returns:
        Words with cosines, the nearest first; equally near ones by row.
    """
    words = sorted(table.ids, key=table.ids.__getitem__)
    rows = np.array([table.ids[word] for word in words])
    cosines = unit(table.vectors[rows]) @ unit(query[None])[0]
    cosines[np.isin(rows, list(without))] = -np.inf
    order = np.argsort(-cosines, kind="stable")[:count]
    return [(words[i], float(cosines[i])) for i in order if np.isfinite(cosines[i])]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, D) divided by their lengths; those of zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
